#include "tenon/ops/reduce.h"

#include <algorithm>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle sum, mean;
static Handle sum_all;

Sizes reduced_sizes(const Sizes& sizes, std::span<const size_t> dims, bool keepdim) {
  Sizes out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    bool gone = std::find(dims.begin(), dims.end(), i) != dims.end();
    if (!gone) out.push_back(sizes[i]);
    else if (keepdim) out.push_back(1);
  }
  return out;
}

Index unreduced(const Index& result, const Index& reduced, std::span<const size_t> dims, size_t rank, bool keepdim) {
  Index out;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) {
    auto found = std::find(dims.begin(), dims.end(), i);
    if (found != dims.end()) out.push_back(reduced[static_cast<size_t>(found - dims.begin())]);
    else out.push_back(result[keepdim ? i : next++]);
  }
  return out;
}

Sizes extents_of(const Sizes& sizes, std::span<const size_t> dims) {
  Sizes out;
  for (size_t d : dims) out.push_back(sizes[d]);
  return out;
}

Tensor restore_dims(const Tensor& reduced, const Sizes& sizes, std::span<const size_t> dims, bool keepdim) {
  if (keepdim) return reduced;
  return view(reduced, reduced_sizes(sizes, dims, true));
}

namespace {

DType summed_dtype(const ArgsView& m, size_t dtype) {
  if (auto given = m.dtype(dtype)) return *given;
  DType d = m.meta(0).dtype;
  return is_floating(d) || is_complex(d) ? d : DType::i64;
}

// Sums are converted first, as PyTorch does: sum(x.to(dtype)).
void lower_sum(Lower& l, size_t dims_at, int keepdim_at, bool average) {
  Ref x = l[0];
  size_t rank = x.sizes().size();
  auto dims = dims_at == 0 ? SmallVector<size_t, 6>() : l.dims(dims_at, rank);
  if (dims_at == 0)
    for (size_t i = 0; i < rank; ++i) dims.push_back(i);
  bool keepdim = keepdim_at >= 0 && l.flag(static_cast<size_t>(keepdim_at));
  loop::Compute type = loop::compute_of(l.out().dtype());
  if (type == loop::Compute::boolean) type = loop::Compute::i64;
  Sizes extents = extents_of(x.sizes(), dims);
  SymInt n = count(extents);
  l.tensor([&](const Index& i) {
    loop::Expr total = l.sum(extents, [&](const Index& r) { return cast(x.at(unreduced(i, r, dims, rank, keepdim)), type); });
    return average ? total / cast(l.extent(n), type) : total;
  });
}

Grads spread(Vjp& v, bool average, bool has_dims) {
  const Sizes& sizes = v[0].sizes();
  SmallVector<size_t, 6> dims = has_dims ? v.dims(1, sizes.size()) : SmallVector<size_t, 6>();
  Tensor g = has_dims ? restore_dims(v.grad(0), sizes, dims, v.flag(2)) : v.grad(0);
  if (average) {
    SymInt n = has_dims ? count(extents_of(sizes, dims)) : count(sizes);
    g = div(g, n);
  }
  return {expand(g, sizes)};
}

}  // namespace

void register_reduce(Registry& ops) {
  ops.add(sum_all, {
      .schema = "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
      .kind = Kind::reduction,
      .meta = [](MetaCall& m) -> Metas { return like(m.meta(0), {}, summed_dtype(m, 1)); },
      .lower = [](Lower& l) { lower_sum(l, 0, -1, false); },
      .vjp = [](Vjp& v) { return spread(v, false, false); },
  });
  ops.add(sum, {
      .schema = "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
      .kind = Kind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        return like(m.meta(0), reduced_sizes(m.meta(0).sizes, m.dims(1, m.meta(0).rank()), m.flag(2)), summed_dtype(m, 3));
      },
      .lower = [](Lower& l) { lower_sum(l, 1, 2, false); },
      .vjp = [](Vjp& v) { return spread(v, false, true); },
  });
  ops.add({
      .schema = "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
      .kind = Kind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        DType dtype = m.dtype(1).value_or(m.meta(0).dtype);
        m.require(is_floating(dtype), "expected a floating point tensor, got ", m.meta(0), "; convert it or give a dtype");
        return like(m.meta(0), {}, dtype);
      },
      .lower = [](Lower& l) { lower_sum(l, 0, -1, true); },
      .vjp = [](Vjp& v) { return spread(v, true, false); },
  });
  ops.add(mean, {
      .schema = "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
      .kind = Kind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        DType dtype = m.dtype(3).value_or(m.meta(0).dtype);
        m.require(is_floating(dtype), "expected a floating point tensor, got ", m.meta(0), "; convert it or give a dtype");
        return like(m.meta(0), reduced_sizes(m.meta(0).sizes, m.dims(1, m.meta(0).rank()), m.flag(2)), dtype);
      },
      .lower = [](Lower& l) { lower_sum(l, 1, 2, true); },
      .vjp = [](Vjp& v) { return spread(v, true, true); },
  });
}

}  // namespace tenon
