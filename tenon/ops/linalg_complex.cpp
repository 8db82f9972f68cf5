#include "tenon/ops/linalg_complex.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/diagonal.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/views.h"

namespace tenon {
namespace {

Tensor in_blocks(const Tensor& re, const Tensor& im) {
  Tensor first = stack(std::vector<Tensor>{re, -im}, -1), second = stack(std::vector<Tensor>{im, re}, -1);
  Sizes sizes = joined(batch_of(re.sizes()), {re.size(-2) * 2, re.size(-1) * 2});
  return reshape(stack(std::vector<Tensor>{first, second}, -3), sizes);
}

// [..., row, row in the block, column, column in the block]
Tensor blocks(const Tensor& a) {
  SymInt rows = sym::floor_div(a.size(-2), 2), columns = sym::floor_div(a.size(-1), 2);
  return reshape(a, joined(batch_of(a.sizes()), {rows, 2, columns, 2}));
}

Tensor joined_columns(const Tensor& re, const Tensor& im) {
  return joined({column_major_copy(re), column_major_copy(im)});
}

}  // namespace

Tensor embedded(const Tensor& a) { return in_blocks(real(a), imag(a)); }

Tensor embedded_hermitian(const Tensor& a) {
  Tensor im = imag(a);
  return in_blocks(real(a), im - diag_embed(diagonal(im, 0, -2, -1)));
}

Tensor extracted(const Tensor& a) {
  Tensor column = select(blocks(a), -1, 0);
  return joined_columns(select(column, -2, 0), select(column, -2, 1));
}

Tensor extracted_from_rows(const Tensor& a) {
  Tensor row = select(blocks(a), -3, 0);
  return joined_columns(select(row, -1, 0), neg(select(row, -1, 1)));
}

Tensor each_once(const Tensor& values) {
  Sizes pairs = joined(batch_of(values.sizes(), 1), {sym::floor_div(values.size(-1), 2), 2});
  return clone(select(reshape(values, pairs), -1, 0), kw("memory_format", MemoryFormat::contiguous));
}

Tensor info_of_blocks(const Tensor& info) { return to(floor_divide(info + 1, 2), DType::i32); }

}  // namespace tenon
