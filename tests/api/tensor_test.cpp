#include <gtest/gtest.h>
#include <tenon/complex.h>
#include <tenon/tenon.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

namespace {

using tenon::ErrorKind;
using tenon::Tensor;

template <class F>
std::string call_error(F&& f) {
  try {
    f();
  } catch (const tenon::Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::call);
    return e.what();
  }
  return "no error";
}

TEST(Tensor, IsMadeFromListsAndVectors) {
  Tensor rows = tenon::tensor({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
  EXPECT_EQ(rows.dim(), 2);
  EXPECT_EQ(rows.size(0), 2);
  EXPECT_EQ(rows.size(-1), 3);
  EXPECT_EQ(rows.dtype(), tenon::f32);
  EXPECT_EQ(rows.vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  std::vector<int64_t> numbers{7, 8};
  EXPECT_EQ(tenon::tensor(numbers).span<int64_t>()[1], 8);
  EXPECT_EQ(tenon::tensor(std::vector<bool>{true, false}).dtype(), tenon::boolean);
  EXPECT_EQ(tenon::scalar(2.5).dim(), 0);
}

TEST(Tensor, OverForeignMemoryIsThatMemoryAndGivesItBack) {
  float memory[6] = {1, 2, 3, 4, 5, 6};
  int freed = 0;
  {
    Tensor t = tenon::from_blob(memory, {2, 3}, tenon::f32, [&](void* p) { freed += p == memory; });
    Tensor copy = t;
    copy.mutable_data<float>()[5] = 60;
    EXPECT_EQ(t.data<float>(), memory);
  }
  EXPECT_EQ(memory[5], 60);
  EXPECT_EQ(freed, 1);
}

TEST(Tensor, WithStridesIsCopiedInOrder) {
  int32_t memory[6] = {1, 2, 3, 4, 5, 6};
  Tensor columns = tenon::from_blob(memory, {3, 2}, {1, 3}, tenon::i32);
  EXPECT_FALSE(columns.is_contiguous());
  EXPECT_EQ(columns.vector<int32_t>(), (std::vector<int32_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(call_error([&] { columns.span<int32_t>(); }),
            "a tensor i32[3, 2][1, 3] is not contiguous, so it is no span; use contiguous() first");
}

TEST(Tensor, ConvertsAndGivesItsNumber) {
  EXPECT_EQ(tenon::tensor({1.75f}).to(tenon::i64).item<int>(), 1);
  EXPECT_EQ(tenon::tensor({3}).item<double>(), 3.0);
  EXPECT_EQ(tenon::scalar(1.0f).to(tenon::bf16).data<uint16_t>()[0], 0x3f80);
  EXPECT_EQ(tenon::full({2}, 1.5, tenon::f16).to(tenon::f32).span<float>()[1], 1.5f);
}

TEST(Tensor, AWrongRequestSaysWhatToDo) {
  Tensor t = tenon::zeros({2, 3});
  EXPECT_EQ(call_error([&] { t.data<double>(); }),
            "a tensor f32[2, 3] has no elements of type f64; convert it with to(tenon::f64) first");
  EXPECT_EQ(call_error([&] { t.size(2); }), "a tensor f32[2, 3] has no dimension 2; it has 2");
  EXPECT_EQ(call_error([&] { t.item<float>(); }), "item() is of tensors with one element, got f32[2, 3]");
  EXPECT_NE(call_error([&] { Tensor().dtype(); }), "no error");
  EXPECT_NE(call_error([&] { tenon::empty({int64_t{1} << 40, int64_t{1} << 40}); }), "no error");
  EXPECT_NE(call_error([&] { tenon::empty({-1}); }), "no error");
  EXPECT_NE(call_error([&] { tenon::from_blob(nullptr, {1}, tenon::f32); }), "no error");
  EXPECT_NE(call_error([&] { tenon::tensor({{1, 2}, {3}}); }), "no error");
}

std::string printed(const Tensor& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}

// What print() of PyTorch 2.15 shows for the same tensors.
TEST(Tensor, IsPrintedAsPyTorchPrintsIt) {
  float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(printed(tenon::tensor({1.0f, 2.0f, -3.0f})), "tensor([ 1.,  2., -3.])");
  EXPECT_EQ(printed(tenon::tensor({0.5f, 1234.5f})), "tensor([5.0000e-01, 1.2345e+03])");
  EXPECT_EQ(printed(tenon::tensor({{0.1f, 22.25f}, {-3.0f, 0.0f}})),
            "tensor([[ 0.1000, 22.2500],\n        [-3.0000,  0.0000]])");
  EXPECT_EQ(printed(tenon::tensor({1.0f, inf, -inf, std::nanf("")})), "tensor([1., inf, -inf, nan])");
  EXPECT_EQ(printed(tenon::scalar(3.5)), "tensor(3.5000, dtype=torch.float64)");
  EXPECT_EQ(printed(tenon::tensor({true, false})), "tensor([ True, False])");
  EXPECT_EQ(printed(tenon::zeros({0, 3})), "tensor([], size=(0, 3))");
  EXPECT_EQ(printed(tenon::zeros({0}, tenon::i64)), "tensor([], dtype=torch.int64)");
  EXPECT_EQ(printed(tenon::tensor({std::complex<float>(1, -2), std::complex<float>(0.5f, 3)})),
            "tensor([1.0000-2.j, 0.5000+3.j])");
  std::vector<int64_t> many(2000);
  std::iota(many.begin(), many.end(), 0);
  EXPECT_EQ(printed(tenon::tensor(many)), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
  EXPECT_EQ(printed(tenon::tensor(std::vector<int64_t>(many.begin(), many.begin() + 30))),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])");
  EXPECT_EQ(printed(tenon::zeros({2, 1, 2}, tenon::f64)),
            "tensor([[[0., 0.]],\n\n        [[0., 0.]]], dtype=torch.float64)");
  EXPECT_EQ(printed(tenon::zeros({40, 40}, tenon::i32)),
            "tensor([[0, 0, 0,  ..., 0, 0, 0],\n        [0, 0, 0,  ..., 0, 0, 0],\n        [0, 0, 0,  ..., 0, 0, 0],\n"
            "        ...,\n        [0, 0, 0,  ..., 0, 0, 0],\n        [0, 0, 0,  ..., 0, 0, 0],\n"
            "        [0, 0, 0,  ..., 0, 0, 0]], dtype=torch.int32)");
}

}  // namespace
