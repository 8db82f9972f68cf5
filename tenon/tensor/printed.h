// A tensor as PyTorch prints it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tenon/tensor/dtype.h"

namespace tenon {

/// The elements of a tensor, dense and widened.
struct PrintedTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> sizes;
  std::vector<double> real, imaginary;  // of floats; of complex numbers both
  std::vector<int64_t> integers;        // of others; of u64 the bits
};

/// Laid out as PyTorch does with its default options: four digits, 80 columns, and of more than a thousand elements the
/// first and last three in each dimension. `suffixes` follow the dtype: requires_grad=True.
std::string printed(const PrintedTensor& tensor, const std::vector<std::string>& suffixes = {});

}  // namespace tenon
