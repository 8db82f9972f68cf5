// Complex matrices as real ones of twice the size: each number x + iy is the block [x -y; y x]. Products, inverses and
// triangular factors of such matrices are those of what they stand for; each eigenvalue and singular value is there
// twice.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

Tensor embedded(const Tensor& a);
/// The same of a Hermitian matrix, whose diagonal is real whatever it holds.
Tensor embedded_hermitian(const Tensor& a);
/// What an embedded matrix stands for, from the first column of each block, column-major as LAPACK gives it.
Tensor extracted(const Tensor& a);
/// The same from the first row of each block.
Tensor extracted_from_rows(const Tensor& a);
/// Every second number of a last dimension.
Tensor each_once(const Tensor& values);
/// The column of the complex matrix, counted from 1, for one of the embedded.
Tensor info_of_blocks(const Tensor& info);

}  // namespace tenon
