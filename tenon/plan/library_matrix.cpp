#include "tenon/plan/library_matrix.h"

#include "kernels/gemm.h"
#include "tenon/plan/chunks.h"

namespace tenon::plan {

void MatrixChecks::packed(const loop::Operand& o, DType dtype, SymInt elements) {
  const loop::Buffer& b = buffer(o);
  require(b.dtype == dtype, "dtypes that do not belong together: expected a packed operand of ", dtype, ", got ",
          b.dtype);
  holds(sym::le(o.offset + elements, count(b.sizes)),
        text("sizes that do not belong together: ", elements, " packed elements are read from ", b.dtype, b.sizes));
}

SymInt MatrixChecks::epilogue(const loop::Epilogue& e, SymInt channels, const loop::Operand& result,
                              std::vector<LibraryArg>& args) {
  int64_t flags = e.relu ? kernels::epilogue_relu : 0;
  if (e.has_bias) {
    flags |= kernels::epilogue_bias;
    same(e.bias, {channels}, "the bias");
    operand(e.bias, dtype(result), "the bias");
    args.push_back(read(e.bias));
  }
  if (e.has_residual) {
    flags |= kernels::epilogue_residual;
    same(e.residual, result.sizes, "the residual");
    operand(e.residual, dtype(result), "the residual");
    args.push_back(read(e.residual));
  }
  return flags;
}

SymInt block_columns(SymInt rows, SymInt columns, SymInt terms) {
  if (rows.is_int() && columns.is_int() && terms.is_int())
    return kernels::gemm_columns(rows.as_int(), columns.as_int(), terms.as_int());
  return kernels::gemm_far_columns;
}

SymInt column_blocks(SymInt rows, SymInt columns, SymInt terms) {
  return sym::ceil_div(columns, block_columns(rows, columns, terms));
}

SymInt row_blocks(SymInt rows) {
  if (rows.is_int()) return kernels::gemm_row_blocks(rows.as_int());
  return sym::ceil_div(rows, kernels::gemm_block_rows) +
         sym::min(sym::floor_div(rows, kernels::gemm_block_rows + 1), 1);
}

bool has_whole_rows(SymInt rows, SymInt columns, SymInt terms) {
  if (!columns.is_int()) return false;
  const int64_t n = columns.as_int();
  if (!rows.is_int() || !terms.is_int()) return n <= kernels::gemm_far_columns;  // no block has fewer
  return n <= kernels::gemm_columns(rows.as_int(), n, terms.as_int());
}

SymInt block_grain(SymInt blocks, SymInt rows, SymInt work) {
  const SymInt costs = sym::max(sym::min(rows, kernels::gemm_block_rows), 4);
  return fair_grain(blocks, costs * work, 1 << 16);
}

}  // namespace tenon::plan
