#include "tests/kernels/host_call.h"

namespace tenon::kernels {
namespace {

TEST(Host, places_that_are_not_zero_are_counted_then_allocated) {
  std::vector<float> x = {0, 1, -0.0f, 2, 0, 3};
  for (tenon_target target : targets()) {
    HostRun run("nonzero", target, {tensor_of(x.data(), TENON_F32, {2, 3})}, {unknown(TENON_I64)});
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(run.values<int64_t>(0), (std::vector<int64_t>{0, 1, 1, 0, 1, 2}));
  }
}

TEST(Host, unique_sorts_with_nan_last_and_says_where_each_element_went) {
  double nan = __builtin_nan("");
  std::vector<double> x = {3, nan, 1, 3, nan, 2};
  std::vector<int64_t> inverse(6);
  for (tenon_target target : targets()) {
    HostRun run("unique", target, {tensor_of(x.data(), TENON_F64, {6})},
                {unknown(TENON_F64), tensor_of(inverse.data(), TENON_I64, {6}), unknown(TENON_I64)}, {1, 1, 1});
    EXPECT_EQ(run.status, 0);
    std::vector<double> values = run.values<double>(0);
    ASSERT_EQ(values.size(), 5u);
    EXPECT_EQ(values[0], 1);
    EXPECT_EQ(values[2], 3);
    EXPECT_NE(values[3], values[3]);
    EXPECT_EQ(inverse, (std::vector<int64_t>{2, 3, 0, 2, 4, 1}));
    EXPECT_EQ(run.values<int64_t>(2), (std::vector<int64_t>{1, 1, 2, 1, 1}));
  }
}

TEST(Host, a_mask_beside_an_index_chooses_rows_and_columns) {
  std::vector<int32_t> x = {0, 1, 2, 3, 4, 5};
  std::vector<uint8_t> mask = {1, 0, 1};
  std::vector<int64_t> column = {-1};
  for (tenon_target target : targets()) {
    HostRun run("index_by_masks", target,
                {tensor_of(x.data(), TENON_I32, {3, 2}), tensor_of(mask.data(), TENON_BOOL, {3}),
                 tensor_of(column.data(), TENON_I64, {1})},
                {unknown(TENON_I32)});
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(run.values<int32_t>(0), (std::vector<int32_t>{1, 5}));
  }
}

TEST(Host, an_index_out_of_range_is_refused_with_its_numbers) {
  std::vector<float> x(6);
  std::vector<uint8_t> mask = {1, 1, 1};
  std::vector<int64_t> column = {2};
  HostRun run("index_by_masks", TENON_TARGET_PORTABLE,
              {tensor_of(x.data(), TENON_F32, {3, 2}), tensor_of(mask.data(), TENON_BOOL, {3}),
               tensor_of(column.data(), TENON_I64, {1})},
              {unknown(TENON_F32)});
  EXPECT_EQ(run.status, TENON_KERNEL_REFUSED);
  EXPECT_EQ(std::vector<int64_t>(run.counts, run.counts + 4), (std::vector<int64_t>{1, 2, 1, 2}));
}

TEST(Host, a_singular_matrix_is_refused_where_errors_are_checked) {
  std::vector<double> a = {1, 2, 2, 4}, inverse(4);
  int32_t info = 0;
  auto invert = [&](bool check) {
    return HostRun("linalg_inv", TENON_TARGET_PORTABLE, {tensor_of(a.data(), TENON_F64, {2, 2})},
                   {tensor_of(inverse.data(), TENON_F64, {2, 2}), tensor_of(&info, TENON_I32, {})}, {check});
  };
  HostRun checked = invert(true);
  EXPECT_EQ(checked.status, TENON_KERNEL_REFUSED);
  EXPECT_EQ(std::vector<int64_t>(checked.counts, checked.counts + 3), (std::vector<int64_t>{1, 0, 2}));
  EXPECT_EQ(invert(false).status, 0);
  EXPECT_EQ(info, 2);
}

TEST(Host, results_are_written_by_their_strides) {
  std::vector<double> a = {4, 2, 2, 5};
  double factor[5] = {0, 0, 0, 0, -7};  // column-major, something behind it
  int32_t info = -1;
  for (tenon_target target : targets()) {
    tenon_tensor out = tensor_of(factor, TENON_F64, {2, 2});
    out.strides[0] = 1;
    out.strides[1] = 2;
    HostRun run("linalg_cholesky", target, {tensor_of(a.data(), TENON_F64, {2, 2})},
                {out, tensor_of(&info, TENON_I32, {})}, {0, 1});
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(std::vector<double>(factor, factor + 5), (std::vector<double>{2, 1, 0, 2, -7}));
  }
}

TEST(Host, sizes_that_do_not_go_together_touch_nothing) {
  std::vector<double> a(6), b(4), out(4);
  HostRun run("linalg_solve_triangular", TENON_TARGET_PORTABLE,
              {tensor_of(a.data(), TENON_F64, {2, 3}), tensor_of(b.data(), TENON_F64, {2, 2})},
              {tensor_of(out.data(), TENON_F64, {2, 2})}, {0, 1, 0});
  EXPECT_EQ(run.status, TENON_KERNEL_ARITHMETIC);
}

TEST(Host, elements_may_be_computed_in_any_order_and_of_any_dtype) {
  std::vector<int16_t> a = {12, -18, 0, 7};
  std::vector<int64_t> b = {8}, out(4);
  for (tenon_target target : targets()) {
    HostRun run("gcd", target, {tensor_of(a.data(), TENON_I16, {4}), tensor_of(b.data(), TENON_I64, {1})},
                {tensor_of(out.data(), TENON_I64, {4})}, {}, 4);
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(out, (std::vector<int64_t>{4, 2, 8, 1}));
  }
}

TEST(Host, factorizations_are_the_same_bits_on_every_target) {
  std::vector<double> a;
  for (int i = 0; i < 30 * 30; ++i) a.push_back(static_cast<double>(i * 7919 % 1000) / 500 - 1);
  std::vector<std::vector<double>> results;
  for (tenon_target target : targets()) {
    std::vector<double> all(4 * 900 + 60);
    HostRun svd("linalg_svd", target, {tensor_of(a.data(), TENON_F64, {30, 30})},
                {tensor_of(&all[0], TENON_F64, {30, 30}), tensor_of(&all[900], TENON_F64, {30}),
                 tensor_of(&all[930], TENON_F64, {30, 30})},
                {0, 1, 0});
    HostRun eigh("linalg_eigh", target, {tensor_of(a.data(), TENON_F64, {30, 30})},
                 {tensor_of(&all[1830], TENON_F64, {30}), tensor_of(&all[1860], TENON_F64, {30, 30})}, {1, 'L', 1});
    HostRun exponential("linalg_matrix_exp", target, {tensor_of(a.data(), TENON_F64, {30, 30})},
                        {tensor_of(&all[2760], TENON_F64, {30, 30})});
    EXPECT_EQ(svd.status | eigh.status | exponential.status, 0);
    results.push_back(all);
  }
  for (const auto& r : results) EXPECT_EQ(std::memcmp(r.data(), results[0].data(), r.size() * sizeof(double)), 0);
}

}  // namespace
}  // namespace tenon::kernels
