#include "kernels/gemm.h"
#include "tenon/base/error.h"
#include "tenon/loop/pack.h"
#include "tenon/plan/library_matrix.h"

namespace tenon::plan {
namespace {

using kernels::GemmPackParams;
using kernels::GemmParams;
using loop::Operand;

/// The same product of the transposed sides.
loop::Gemm transposed(loop::Gemm g) {
  std::swap(g.a, g.b);
  for (Operand* o : {&g.a, &g.b, &g.out, &g.epilogue.residual}) {
    if (o->sizes.size() != 3) continue;  // no residual
    std::swap(o->sizes[1], o->sizes[2]);
    std::swap(o->strides[1], o->strides[2]);
  }
  return g;
}

/// Rows of the result that lie side by side are stored as they are computed; so are they read of a left side whose
/// columns do, where the result has few columns.
bool better_transposed(const loop::Gemm& g) {
  if (g.packed || g.epilogue.has_bias) return false;
  const SymInt one = 1, m = g.out.sizes[1], n = g.out.sizes[2];
  if (n == one && m != one) return g.a.strides[1] == one;
  return g.out.strides[2] != one && g.out.strides[1] == one && n != one && m != one;
}

std::string_view half_suffix(DType dtype) { return dtype == DType::f16 ? "_f16" : "_bf16"; }

LibraryCall pack_call(const Checks& checks, const Operand& from, DType to_dtype, LibraryArg to, SymInt batch) {
  const SymInt k = from.sizes[1], n = from.sizes[2], panels = sym::ceil_div(n, kernels::gemm_panel);
  LibraryCall call;
  const DType dtype = checks.dtype(from);
  if (!is_half(to_dtype) && dtype == to_dtype) call.function = text("gemm_pack", checks.suffix(from));
  else {
    require(is_half(to_dtype) && (dtype == to_dtype || dtype == DType::f32),
            "dtypes that do not belong together: a right side of ", dtype, " cannot be packed as ", to_dtype);
    call.function = text("gemm_pack", dtype == to_dtype ? "" : "_f32", half_suffix(to_dtype));
  }
  to.written = true;
  call.args = {read(from), to};
  Words<GemmPackParams> words;
  words.add(batch, k, n, from.offset, from.strides, SymInt(0), panels * k * SymInt(kernels::gemm_panel));
  call.params = std::move(words).take();
  call.extent = batch * panels;
  call.grain =
      sym::max(sym::floor_div(1 << 13, k * SymInt(kernels::gemm_panel) + 1) + 1, kernels::gemm_panels_together);
  return call;
}

}  // namespace

LibraryCalls calls_of(const loop::Program& program, const loop::Gemm& given) {
  LibraryCalls out;
  MatrixChecks checks(program, out);
  checks.same(given.a.sizes[0], given.out.sizes[0], "the batch");
  checks.same(given.b.sizes[0], given.out.sizes[0], "the batch");
  checks.same(given.a.sizes[1], given.out.sizes[1], "the number of rows");
  checks.same(given.b.sizes[2], given.out.sizes[2], "the number of columns");
  checks.same(given.a.sizes[2], given.b.sizes[1], "the inner size");
  const loop::Gemm g = better_transposed(given) ? transposed(given) : given;
  const DType dtype = checks.dtype(g.out);
  const std::string_view suffix = checks.suffix(g.out);
  checks.operand(g.a, dtype, "the left matrix");
  checks.operand(g.out, dtype, "the product");
  const SymInt batch = g.out.sizes[0], m = g.out.sizes[1], n = g.out.sizes[2], k = g.a.sizes[2];
  const SymInt panels = sym::ceil_div(n, kernels::gemm_panel), matrix = panels * k * SymInt(kernels::gemm_panel);

  LibraryCall call;
  LibraryArg right = read(g.b);
  Sizes right_strides = g.b.strides;
  SymInt right_offset = g.b.offset;
  bool packed = true, halves = false;
  if (g.packed) {
    halves = dtype == DType::f32 && is_half(checks.dtype(g.b));
    checks.packed(g.b, halves ? checks.dtype(g.b) : dtype, g.b.strides[0] * (batch - 1) + matrix);
  } else {
    checks.operand(g.b, dtype, "the right matrix");
    packed = !(m.is_int() && m.as_int() <= kernels::gemm_block_rows);
    if (packed) {
      const bool shared = g.b.strides[0] == SymInt(0);
      right = temporary(out.temporaries.size(), false);
      out.temporaries.push_back((shared ? SymInt(1) : batch) * matrix * SymInt(static_cast<int64_t>(item_size(dtype))));
      out.calls.push_back(pack_call(checks, g.b, dtype, right, shared ? SymInt(1) : batch));
      right_strides = {shared ? SymInt(0) : matrix, 0, 0};
      right_offset = 0;
    }
  }
  call.function = text(packed ? "gemm" : "gemm_unpacked", suffix, halves ? half_suffix(checks.dtype(g.b)) : "");
  call.args = {read(g.a), right, written(g.out)};
  const SymInt flags = checks.epilogue(g.epilogue, n, g.out, call.args);
  Words<GemmParams> words;
  words.add(batch, m, n, k, flags);
  words.real(g.alpha);
  words.real(g.beta);
  words.add(g.a.offset, g.a.strides, right_offset, right_strides, g.out.offset, g.out.strides);
  words.add_epilogue(g.epilogue, 3);
  call.params = std::move(words).take();
  call.extent = batch * row_blocks(m) * column_blocks(m, n, k);
  call.grain = block_grain(call.extent, m, block_columns(m, n, k) * k);
  call.scratch = SymInt((packed ? kernels::gemm_scratch : kernels::gemm_unpacked_scratch) *
                        static_cast<int64_t>(item_size(dtype)));
  out.calls.push_back(std::move(call));
  return out;
}

std::optional<ResultBlocks> blocks_of(const loop::Program&, const loop::Gemm& g) {
  if (better_transposed(g)) return std::nullopt;
  return ResultBlocks{has_whole_rows(g.out.sizes[1], g.out.sizes[2], g.a.sizes[2])};
}

LibraryCalls calls_of(const loop::Program& program, const loop::Pack& p) {
  if (p.of_convolution) return convolution_pack(program, p);
  LibraryCalls out;
  MatrixChecks checks(program, out);
  const loop::Buffer& to = program.buffers[p.to];
  checks.operand(p.from, checks.dtype(p.from), "the right matrix");
  checks.holds(sym::ge(count(to.sizes), count(packed_sizes(p))),
               text("sizes that do not belong together: ", packed_sizes(p), " are packed into ", to.sizes));
  out.calls.push_back(pack_call(checks, p.from, to.dtype, {p.to, 0, true}, p.from.sizes[0]));
  return out;
}

}  // namespace tenon::plan
