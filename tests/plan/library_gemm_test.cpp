// Products of matrices as calls of the kernel library. kernels/gemm_test.cpp checks the numbers; here: which calls.
#include <gtest/gtest.h>

#include "run_library.h"
#include "tenon/loop/pack.h"
#include "tests/kernels/numbers.h"

namespace tenon::plan {
namespace {

using loop::Gemm;
using Int = int64_t;

struct Product {
  Buffers<float> buffers;
  Gemm step;
  Int batch, m, n, k;

  Product(Int batch, Int m, Int n, Int k) : batch(batch), m(m), n(n), k(k) {
    kernels::Numbers numbers(5);
    auto value = [&] { return numbers.below(9) - 4; };
    step.a = buffers.add({batch, m, k}, value);
    step.b = buffers.add({batch, k, n}, value);
    step.out = buffers.add({batch, m, n}, value);
  }
  float at(const loop::Operand& o, Int b, Int i, Int j) const {
    return buffers.values(o)[static_cast<size_t>(o.offset.as_int() + b * o.strides[0].as_int() +
                                                 i * o.strides[1].as_int() + j * o.strides[2].as_int())];
  }
  std::vector<float> expected() const {
    std::vector<float> out = buffers.values(step.out);
    for (Int b = 0; b < batch; ++b)
      for (Int i = 0; i < m; ++i)
        for (Int j = 0; j < n; ++j) {
          float sum = 0;
          for (Int p = 0; p < k; ++p) sum += at(step.a, b, i, p) * at(step.b, b, p, j);
          sum = sum * static_cast<float>(step.alpha) + at(step.out, b, i, j) * static_cast<float>(step.beta);
          out[static_cast<size_t>(b * step.out.strides[0].as_int() + i * step.out.strides[1].as_int() +
                                  j * step.out.strides[2].as_int())] = sum;
        }
    return out;
  }
  void check(const std::vector<loop::Step>& steps, const sym::Bindings& symbols = {}) const {
    for (tenon_target target : kernels::targets())
      EXPECT_EQ(buffers.run(steps, step.out.buffer, target, 2, symbols), expected()) << "target " << target;
  }
};

std::vector<std::string> functions(const Product& p) {
  std::vector<std::string> out;
  for (const LibraryCall& c : library_calls(p.buffers.program, p.step).calls) out.emplace_back(c.function);
  return out;
}
using Names = std::vector<std::string>;

TEST(LibraryGemm, AFewRowsNeedNoPacking) {
  Product p(2, 40, 30, 20);
  EXPECT_EQ(functions(p), Names{"gemm_unpacked_f32"});
  p.check({p.step});
}

TEST(LibraryGemm, ManyRowsArePackedIntoATemporary) {
  Product p(2, 70, 30, 20);
  EXPECT_EQ(functions(p), (Names{"gemm_pack_f32", "gemm_f32"}));
  EXPECT_EQ(library_calls(p.buffers.program, p.step).temporaries[0], SymInt(2 * 2 * 20 * 16 * 4));
  p.check({p.step});
}

TEST(LibraryGemm, ScalesAndAdds) {
  Product p(1, 5, 6, 7);
  p.step.alpha = 2, p.step.beta = 3;
  p.check({p.step});
}

TEST(LibraryGemm, AResultOfColumnsIsTheTransposedProduct) {
  Product p(2, 70, 60, 20);
  p.step.out.strides = {70 * 60, 1, 70};
  EXPECT_EQ(functions(p), (Names{"gemm_pack_f32", "gemm_f32"}));
  p.check({p.step});
}

TEST(LibraryGemm, AColumnTimesATransposedMatrixStreams) {
  Product p(1, 90, 1, 20);
  p.step.a.strides = {0, 1, 90};
  EXPECT_EQ(functions(p), Names{"gemm_unpacked_f32"});
  p.check({p.step});
}

TEST(LibraryGemm, AStepPacksForMany) {
  for (bool shared : {false, true}) {
    Product p(3, 50, 33, 20);
    if (shared) p.step.b.strides[0] = 0;
    loop::Pack pack = loop::pack_of(p.step, 0);
    pack.to = p.buffers.add(loop::packed_sizes(pack), [] { return 9; }).buffer;
    p.check({pack, loop::with_packed(p.step, pack.to)});
  }
}

void check_symbolic_rows(const Product& p) {
  const SymInt m = SymInt::symbol("s0");
  Product s = p;
  for (loop::Operand* o : {&s.step.a, &s.step.out}) {
    o->sizes[1] = m;
    o->strides[0] = m * o->sizes[2];
    s.buffers.program.buffers[o->buffer].sizes = o->sizes;
    s.buffers.program.buffers[o->buffer].strides = o->strides;
  }
  for (tenon_target target : kernels::targets())
    EXPECT_EQ(s.buffers.run({s.step}, s.step.out.buffer, target, 1, {{m, p.m}}), p.expected());
}

TEST(LibraryGemm, TheNumberOfRowsMayBeASymbol) {
  check_symbolic_rows({1, 50, 33, 20});
  check_symbolic_rows({1, 60, 530, 500});
  check_symbolic_rows({1, 50, 0, 20});
}

TEST(LibraryGemm, ARightSideBeyondTheCachesIsReadOneTileAtATime) {
  auto blocks = [](Product p) { return library_calls(p.buffers.program, p.step).calls.back().extent; };
  EXPECT_EQ(blocks({1, 128, 768, 768}), SymInt(4 * 16));  // 48 columns
  EXPECT_EQ(blocks({1, 128, 768, 256}), SymInt(4 * 4));   // 192 columns
  EXPECT_EQ(blocks({1, 49, 768, 768}), SymInt(4));        // one block of rows: nothing is read twice
  Product p(1, 60, 530, 500);
  p.check({p.step});
}

void expect_error(const Product& p, const char* message) {
  try {
    library_calls(p.buffers.program, p.step);
    FAIL() << "expected: " << message;
  } catch (const Error& e) { EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what(); }
}

TEST(LibraryGemm, SizesThatDoNotBelongTogetherAreRefused) {
  Product p(1, 3, 4, 5);
  p.step.b.sizes[1] = 6;
  expect_error(p, "the inner size is 5 and 6");
  p = Product(1, 3, 4, 5);
  p.step.a.offset = 1;
  expect_error(p, "the left matrix [1, 3, 5] is read from f32[1, 3, 5]");
  p = Product(1, 3, 4, 5);
  p.buffers.program.buffers[p.step.b.buffer].dtype = DType::f64;
  expect_error(p, "expected the right matrix of f32, got f64");
  p = Product(1, 3, 4, 5);
  p.step = loop::with_packed(p.step, p.step.a.buffer);
  expect_error(p, "80 packed elements are read from f32[1, 3, 5]");
}

}  // namespace
}  // namespace tenon::plan
