// What tests/record/record_training.py recorded of real PyTorch.
#pragma once
#include <gtest/gtest.h>
#include <tenon/nn.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <cmath>

using Tensors = std::map<std::string, tenon::Tensor>;

inline Tensors recorded(const std::string& file) {
  return tenon::load_tensors(std::string(TENON_TEST_DATA) + "/training/" + file + ".npz");
}

/// The tensors whose names begin so, under the rest of their names.
inline Tensors below(const Tensors& all, const std::string& prefix) {
  Tensors out;
  for (const auto& [name, tensor] : all)
    if (name.starts_with(prefix)) out.emplace(name.substr(prefix.size()), tensor);
  return out;
}

inline void expect_close(const tenon::Tensor& got, const tenon::Tensor& expected, const std::string& what,
                         double tolerance = 1e-9) {
  ASSERT_TRUE(got.defined()) << what << " is none";
  ASSERT_TRUE(std::ranges::equal(got.sizes(), expected.sizes()))
      << what << ": " << describe(tenon::Value(got)) << ", expected " << describe(tenon::Value(expected));
  std::vector<double> a = got.detach().to(tenon::f64).contiguous().vector<double>(),
                      b = expected.to(tenon::f64).contiguous().vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance * (1 + std::abs(b[i])))
        << what << " at " << i << ": " << a[i] << ", expected " << b[i];
}
