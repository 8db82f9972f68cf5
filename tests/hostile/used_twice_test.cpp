// Each value is used twice by the next one, so whatever walks an expression as a tree takes 2^n steps.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tenon/base/file.h"
#include "tenon/pipeline.h"
#include "tests/hostile/scaling.h"

namespace tenon::scaling {
namespace {

std::string called_with_itself(ProgramText& p, size_t i, const std::string& from, std::string_view op,
                               const TensorMeta& meta) {
  std::string name = text("d", i);
  p.tensor(name, meta);
  p.node(text("torch.ops.aten.", op), {{"self", as_tensor(from)}, {"other", as_tensor(from)}}, {as_tensor(name)});
  return name;
}

void go_to_kernels(const std::string& bytes) {
  std::string path = text(testing::TempDir(), "tenon_twice_", ::getpid(), ".pt2");
  write_file_atomically(path, bytes);
  ExportedProgram program = open_program(path);
  Walk walk(program);
  show(walk, StageName::kernels);
  ::unlink(path.c_str());
}

TEST(UsedTwice, values) {
  for (const char* op : {"add.Tensor", "mul.Tensor", "sub.Tensor", "maximum.default"})
    expect_linear(
        [&](size_t n) {
          ProgramText p = start();
          TensorMeta turned = f32({2, 3});
          turned.strides = {1, 2};
          p.user_input("turned", turned);  // two loops, and what the outer one loads early
          p.tensor("both", f32({2, 3}));
          p.node("torch.ops.aten.add.Tensor", {{"self", as_tensor("x")}, {"other", as_tensor("turned")}},
                 {as_tensor("both")});
          std::string last = "both";
          for (size_t i = 0; i < n; ++i) last = called_with_itself(p, i, last, op, f32({2, 3}));
          return finished(p, last);
        },
        16, go_to_kernels);
}

// Made of the numbers of rows alone, which kernels see through.
TEST(UsedTwice, indices) {
  for (const char* op : {"add.Tensor", "mul.Tensor", "sub.Tensor", "maximum.default"})
    expect_linear(
        [&](size_t n) {
          ProgramText p = start();
          TensorMeta rows = make_meta(DType::i64, {1});
          p.tensor("rows", rows);
          p.node("torch.ops.aten.arange.default", {{"end", R"({"as_int": 1})"}, {"dtype", R"({"as_scalar_type": 5})"}},
                 {as_tensor("rows")});
          std::string last = "rows";
          for (size_t i = 0; i < n; ++i) last = called_with_itself(p, i, last, op, rows);
          p.tensor("y", f32({1, 3}));
          p.node("torch.ops.aten.index_select.default",
                 {{"self", as_tensor("x")}, {"dim", R"({"as_int": 0})"}, {"index", as_tensor(last)}}, {as_tensor("y")});
          p.user_output("y");
          return p.archive();
        },
        16, go_to_kernels);
}

}  // namespace
}  // namespace tenon::scaling
