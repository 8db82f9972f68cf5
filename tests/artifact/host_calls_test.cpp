// Programs that call host functions: the interpreter and the compiled file give the same results and refuse with the
// same words.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon::artifact {
namespace {

class HostCalls : public testing::Test {
 protected:
  void program(std::string_view graph) {
    exported_.emplace(program_of(graph));
    Walk walk(*exported_);
    Compilable made = prepare_to_compile(walk);
    compiled_ = CompiledProgram::open(compile_program(*made.executable, *made.state, {}), {});
    state_.emplace(compiled_);
    session_.emplace(compiled_);
  }
  std::vector<CallArg> interpreted(const std::vector<CallArg>& inputs) {
    return run_program(*exported_, inputs).outputs;
  }
  std::vector<CallArg> compiled(const std::vector<CallArg>& inputs) { return session_->run(*state_, inputs).outputs; }
  void expect_equal(const std::vector<CallArg>& inputs) {
    std::vector<CallArg> a = interpreted(inputs), b = compiled(inputs);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      Tensor x = contiguous_copy(a[i].as<Tensor>()), y = contiguous_copy(b[i].as<Tensor>());
      ASSERT_EQ(x.sizes(), y.sizes());
      for (size_t d = 0; d < x.rank(); ++d)
        if (x.numel().as_int() > 0 && x.sizes()[d].as_int() > 1) {
          EXPECT_EQ(a[i].as<Tensor>().strides()[d].as_int(), b[i].as<Tensor>().strides()[d].as_int()) << i;
        }
      size_t bytes = static_cast<size_t>(x.numel().as_int()) * item_size(x.dtype());
      EXPECT_EQ(std::memcmp(x.bytes(), y.bytes(), bytes), 0) << "result " << i;
    }
  }
  template <class F>
  std::string refusal(F&& run) {
    try {
      run();
    } catch (const Error& e) { return e.what(); }
    return "";
  }

 private:
  std::optional<ExportedProgram> exported_;
  std::shared_ptr<const CompiledProgram> compiled_;
  std::optional<CompiledState> state_;
  std::optional<CompiledSession> session_;
};

TEST_F(HostCalls, sizes_that_only_the_data_tell_go_on) {
  program(
      "%x: f32[2, 2] = input()\n"
      "%y: i64[u0, 2][1, u0] = aten::nonzero(%x)\n"
      "%z: i64[u0, 2][1, u0] = aten::neg(%y)\n"
      "return %y, %z\n");
  expect_equal({floats({2, 2}, {0, 1, 0, 2})});
  expect_equal({floats({2, 2}, {0, 0, 0, 0})});
  expect_equal({floats({2, 2}, {1, 1, -1, 2})});
}

TEST_F(HostCalls, a_function_of_elements_is_cut_as_it_may) {
  program(
      "%x: f32[s0, 100] = input()\n"
      "%y: f32[s0, 100] = aten::special_i0e(%x)\n"
      "return %y\n");
  for (int64_t rows : {2, 11, 64}) expect_equal({counting({rows, 100})});
}

TEST_F(HostCalls, a_matrix_that_has_no_inverse_gets_the_same_sentence) {
  program(
      "%a: f32[2, 2, 2] = input()\n"
      "%y: f32[2, 2, 2][4, 1, 2], %i: i32[2] = aten::linalg_inv_ex(%a, check_errors=true)\n"
      "return %y\n");
  expect_equal({floats({2, 2, 2}, {1, 2, 3, 4, 0, 1, 1, 0})});
  std::vector<CallArg> singular = {floats({2, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 4})};
  std::string said = refusal([&] { compiled(singular); });
  EXPECT_EQ(said, "aten::linalg_inv_ex: matrix 1 is singular: no pivot in column 2");
  EXPECT_NE(refusal([&] { interpreted(singular); }).find("matrix 1 is singular: no pivot in column 2"),
            std::string::npos);
}

TEST_F(HostCalls, sizes_that_turn_out_not_to_fit_are_refused) {
  program(
      "%a: f32[s0, s1] = input()\n"
      "%y: f32[s0, s1][1, s0], %i: i32[] = aten::linalg_inv_ex(%a)\n"
      "return %y\n");
  expect_equal({floats({2, 2}, {1, 2, 3, 4})});
  std::vector<CallArg> oblong = {counting({2, 3})};
  EXPECT_NE(refusal([&] { interpreted(oblong); }), "");
  EXPECT_NE(refusal([&] { compiled(oblong); }), "");
}

TEST_F(HostCalls, a_function_of_elements_takes_as_many_as_the_data_told) {
  program(
      "%x: f32[2, 2] = input()\n"
      "%y: i64[u0, 2][1, u0] = aten::nonzero(%x)\n"
      "%z: i64[u0, 2][1, u0] = aten::gcd(%y, %y)\n"
      "return %z\n");
  expect_equal({floats({2, 2}, {0, 1, 0, 2})});
  expect_equal({floats({2, 2}, {0, 0, 0, 0})});
}

TEST_F(HostCalls, what_is_absent_stays_absent) {
  program(
      "%x: i64[5] = input()\n"
      "%y: i64[u0] = aten::bincount(%x, None, 3)\n"
      "return %y\n");
  expect_equal({integers({5}, {0, 1, 1, 6, 0})});
  expect_equal({integers({5}, {0, 0, 0, 0, 0})});
  EXPECT_EQ(refusal([&] {
              compiled({integers({5}, {0, -4, 0, 0, 0})});
            }),
            "aten::bincount: expected numbers that are not negative, got -4");
}

}  // namespace
}  // namespace tenon::artifact
