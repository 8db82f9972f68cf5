#include "kernels/scan.h"
#include "kernels/sort.h"
#include "tenon/base/error.h"
#include "tenon/plan/library_parts.h"

namespace tenon::plan {
namespace {

using kernels::ScanParams;
using kernels::SortParams;
using kernels::TopKParams;
using loop::Operand;

/// Of an operand: the sizes, or strides, of the dimensions other than `dim`.
Sizes across(const Sizes& list, size_t dim) {
  Sizes out;
  for (size_t i = 0; i < list.size(); ++i)
    if (i != dim) out.push_back(list[i]);
  return out;
}
SymInt along(const Sizes& list, size_t dim) { return list.empty() ? SymInt(1) : list[dim]; }

/// Some thousand elements in a chunk.
SymInt sort_grain(SymInt length) { return sym::floor_div(4096, length + 1) + 1; }

/// Sets what SortParams and TopKParams have in common, and what follows them.
template <class Params>
void set_lines(ParamsOf<Params>& p, const Operand& in, const Operand& values, const Operand& indices, size_t dim) {
  p.set(&Params::length, along(in.sizes, dim));
  p.set(&Params::in, in.offset);
  p.set(&Params::in_stride, along(in.strides, dim));
  p.set(&Params::values, values.offset);
  p.set(&Params::values_stride, along(values.strides, dim));
  p.set(&Params::indices, indices.offset);
  p.set(&Params::indices_stride, along(indices.strides, dim));
  Sizes lines = across(in.sizes, dim);
  p.set(&Params::rank, SymInt(lines.size()));
  p.append(lines);
  for (const Operand* o : {&in, &values, &indices}) p.append(across(o->strides, dim));
}

}  // namespace

LibraryCalls calls_of(const loop::Program& program, const loop::Sort& s) {
  LibraryCalls out;
  Checks checks(program, out);
  LibraryCall call;
  call.function = text("sort", checks.suffix(s.in));
  checks.same(s.values, s.in.sizes, "the sorted values");
  checks.same(s.indices, s.in.sizes, "the indices");
  checks.operand(s.in, checks.dtype(s.in), "the input");
  checks.operand(s.values, checks.dtype(s.in), "the sorted values");
  checks.operand(s.indices, DType::i64, "the indices");
  call.args = {read(s.in), written(s.values), written(s.indices)};
  ParamsOf<SortParams> p;
  p.set(&SortParams::descending, s.descending);
  set_lines(p, s.in, s.values, s.indices, s.dim);
  call.params = std::move(p).words();
  SymInt length = along(s.in.sizes, s.dim);
  call.extent = count(across(s.in.sizes, s.dim));
  call.grain = sort_grain(length);
  call.scratch = length * SymInt(kernels::sort_scratch_per_element) + SymInt(kernels::sort_scratch_fixed);
  out.calls.push_back(std::move(call));
  return out;
}

LibraryCalls calls_of(const loop::Program& program, const loop::TopK& s) {
  LibraryCalls out;
  Checks checks(program, out);
  LibraryCall call;
  call.function = text("topk", checks.suffix(s.in));
  SymInt length = along(s.in.sizes, s.dim), k = along(s.values.sizes, s.dim);
  Sizes wanted = s.in.sizes;
  if (!wanted.empty()) wanted[s.dim] = k;
  checks.same(s.values, wanted, "the values");
  checks.same(s.indices, wanted, "the indices");
  checks.holds(sym::le(k, length), text("topk: expected at most ", length, " of a line of ", length, ", got ", k));
  checks.operand(s.in, checks.dtype(s.in), "the input");
  checks.operand(s.values, checks.dtype(s.in), "the values");
  checks.operand(s.indices, DType::i64, "the indices");
  call.args = {read(s.in), written(s.values), written(s.indices)};
  ParamsOf<TopKParams> p;
  p.set(&TopKParams::k, k);
  p.set(&TopKParams::largest, s.largest);
  p.set(&TopKParams::sorted, s.sorted);
  set_lines(p, s.in, s.values, s.indices, s.dim);
  call.params = std::move(p).words();
  call.extent = count(across(s.in.sizes, s.dim));
  call.grain = sort_grain(length);
  call.scratch = length * SymInt(kernels::topk_scratch_per_element);
  out.calls.push_back(std::move(call));
  return out;
}

LibraryCalls calls_of(const loop::Program& program, const loop::Scan& s) {
  LibraryCalls out;
  Checks checks(program, out);
  LibraryCall call;
  bool extremes = s.kind == loop::ScanKind::max || s.kind == loop::ScanKind::min;
  auto name = [&]() -> std::string {
    switch (s.kind) {
      case loop::ScanKind::sum: return "scan_sum";
      case loop::ScanKind::product: return "scan_product";
      case loop::ScanKind::max: return "scan_max";
      case loop::ScanKind::min: return "scan_min";
      case loop::ScanKind::logsumexp:
        require(checks.dtype(s.in) != DType::i64, "logcumsumexp needs a floating point tensor");
        return "scan_logsumexp";
    }
    unreachable();
  };
  call.function = text(name(), checks.suffix(s.in));
  expect(s.has_indices == extremes, "a scan has indices where it looks for extremes");
  checks.same(s.out, s.in.sizes, "the result");
  checks.operand(s.in, checks.dtype(s.in), "the input");
  checks.operand(s.out, checks.dtype(s.in), "the result");
  call.args = {read(s.in), written(s.out)};
  if (extremes) {
    checks.same(s.indices, s.in.sizes, "the indices");
    checks.operand(s.indices, DType::i64, "the indices");
    call.args.push_back(written(s.indices));
  }
  const Operand& indices = extremes ? s.indices : s.out;
  ParamsOf<ScanParams> p;
  SymInt length = along(s.in.sizes, s.dim);
  p.set(&ScanParams::length, length);
  p.set(&ScanParams::in, s.in.offset);
  p.set(&ScanParams::in_stride, along(s.in.strides, s.dim));
  p.set(&ScanParams::out, s.out.offset);
  p.set(&ScanParams::out_stride, along(s.out.strides, s.dim));
  p.set(&ScanParams::indices, indices.offset);
  p.set(&ScanParams::indices_stride, along(indices.strides, s.dim));
  auto lines = [&](const Sizes& list, SymInt single) {  // at least one dimension
    Sizes out = across(list, s.dim);
    if (out.empty()) out.push_back(single);
    return out;
  };
  Sizes sizes = lines(s.in.sizes, 1);
  p.set(&ScanParams::rank, SymInt(sizes.size()));
  p.append(sizes);
  for (const Operand* o : {&s.in, &s.out, &indices}) p.append(lines(o->strides, 0));
  call.params = std::move(p).words();
  call.extent = sym::ceil_div(sizes.back(), SymInt(kernels::scan_together));
  for (size_t i = 0; i + 1 < sizes.size(); ++i) call.extent *= sizes[i];
  call.grain = sym::floor_div(8192, length * SymInt(kernels::scan_together) + 1) + 1;
  out.calls.push_back(std::move(call));
  return out;
}

}  // namespace tenon::plan
