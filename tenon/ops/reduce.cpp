#include "tenon/ops/reduce.h"

#include <algorithm>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/where.h"
#include "tenon/ops/index.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle sum, sum_all, mean, mean_all, amax, amin, any, any_dim, all, all_dim, prod, count_nonzero, argmax;

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

Reduced::Reduced(const ArgsView& call, const Sizes& sizes, int dims_at, int keepdim_at) : rank(sizes.size()) {
  if (dims_at >= 0) dims = call.dims(static_cast<size_t>(dims_at), rank);
  else
    for (size_t i = 0; i < rank; ++i) dims.push_back(i);
  keepdim = keepdim_at >= 0 && call.flag(static_cast<size_t>(keepdim_at));
}

Sizes dims_argument(const Reduced& over) {
  Sizes out;
  for (size_t d : over.dims) out.push_back(SymInt(static_cast<int64_t>(d)));
  return out;
}

Tensor place_selected(const Tensor& grad, const Tensor& indices, const Sizes& sizes, int64_t dim, bool keepdim) {
  if (sizes.empty()) return grad;
  Tensor g = keepdim ? grad : Tensor(unsqueeze(grad, dim)), at = keepdim ? indices : Tensor(unsqueeze(indices, dim));
  return scatter_src(zeros(sizes, grad), dim, at, g);
}

Tensor share_evenly(const Tensor& grad, const Tensor& x, const Tensor& extreme, const Reduced& over) {
  const Sizes& sizes = x.sizes();
  Tensor y = restore_dims(extreme, sizes, over.dims, over.keepdim),
         g = restore_dims(grad, sizes, over.dims, over.keepdim);
  Tensor reached = eq(x, y);
  return g * reached / sum(reached, dims_argument(over), true);
}

void require_elements(const ArgsView& m, const Sizes& sizes, const Reduced& over) {
  for (size_t d : over.dims)
    m.require(!statically_true(sym::eq(sizes[d], 0)), "expected dimension ", d, " to have elements, got sizes ", sizes,
              "; there is none to choose");
}

namespace {

DType summed_dtype(const ArgsView& m, size_t dtype) {
  if (auto given = m.dtype(dtype)) return *given;
  DType d = m.meta(0).dtype;
  return is_floating(d) || is_complex(d) ? d : DType::i64;
}

// Sums are converted first, as PyTorch does: sum(x.to(dtype)).
void lower_sum(Lower& l, int dims_at, int keepdim_at, bool average) {
  Ref x = l[0];
  Reduced over(l, x.sizes(), dims_at, keepdim_at);
  loop::Compute type = loop::compute_of(l.out().dtype());
  if (type == loop::Compute::boolean) type = loop::Compute::i64;
  Sizes extents = extents_of(x.sizes(), over.dims);
  l.tensor([&](const Index& i) {
    loop::Expr total = l.sum(extents, [&](const Index& r) { return cast(x.at(over.at(i, r)), type); });
    return average ? total / cast(l.extent(count(extents)), type) : total;
  });
}

// One accumulator over the elements of the first argument as they are, or converted.
void lower_combined(Lower& l, loop::Combine combine, int dims_at, int keepdim_at, bool convert = false) {
  Ref x = l[0];
  Reduced over(l, x.sizes(), dims_at, keepdim_at);
  loop::Compute type = convert ? loop::compute_of(l.out().dtype()) : loop::compute_of(x.dtype());
  l.tensor([&](const Index& i) {
    return l.reduce(combine, extents_of(x.sizes(), over.dims),
                    [&](const Index& r) { return cast(x.at(over.at(i, r)), type); });
  });
}

// The extreme values and where they are.
void lower_selected(Lower& l, loop::Combine combine, loop::Combine position) {
  Ref x = l[0];
  Reduced over(l, x.sizes(), 1, 2);
  Sizes extents = extents_of(x.sizes(), over.dims);
  l.stage(Sizes(l.out(0).sizes()), [&](const Index& i) {
    auto term = [&](const Index& r) { return x.at(over.at(i, r)); };
    l.store(l.out(0), i, l.reduce(combine, extents, term));
    l.store(l.out(1), i, l.reduce(position, extents, term));
  });
}

TensorMeta reduced_meta(const ArgsView& m, const Reduced& over, DType dtype) {
  return like(m.meta(0), reduced_sizes(m.meta(0).sizes, over.dims, over.keepdim), dtype);
}

Metas extreme_meta(const ArgsView& m, int dims_at, int keepdim_at) {
  Reduced over(m, m.meta(0).sizes, dims_at, keepdim_at);
  require_elements(m, m.meta(0).sizes, over);
  return reduced_meta(m, over, m.meta(0).dtype);
}

Metas selected_meta(MetaCall& m) {
  Reduced over(m, m.meta(0).sizes, 1, 2);
  require_elements(m, m.meta(0).sizes, over);
  return {reduced_meta(m, over, m.meta(0).dtype), reduced_meta(m, over, DType::i64)};
}

Metas position_meta(MetaCall& m) {
  Reduced over(m, m.meta(0).sizes, 1, 2);
  require_elements(m, m.meta(0).sizes, over);
  return reduced_meta(m, over, DType::i64);
}

Grads selected_rule(Vjp& v) {
  if (!v.grad(0)) return {};
  return {place_selected(v.grad(0), v.out(1), v[0].sizes(), v.constant(1), v.flag(2))};
}

Grads extreme_rule(Vjp& v, int dims_at, int keepdim_at) {
  return {share_evenly(v.grad(0), v[0], v.out(0), Reduced(v, v[0].sizes(), dims_at, keepdim_at))};
}

// any and all give booleans, except for u8.
Metas logical_meta(const ArgsView& m, int dims_at, int keepdim_at) {
  DType dtype = m.meta(0).dtype == DType::u8 ? DType::u8 : DType::boolean;
  return reduced_meta(m, Reduced(m, m.meta(0).sizes, dims_at, keepdim_at), dtype);
}

// Here an empty list of dims means none of them.
Reduced listed_dims(const ArgsView& m, const Sizes& sizes) {
  Reduced over(m, sizes, 1, 2);
  if (m.given(1) && m.ints(1).empty()) over.dims.clear();
  return over;
}
Metas logical_list_meta(MetaCall& m) {
  return reduced_meta(m, listed_dims(m, m.meta(0).sizes), m.meta(0).dtype == DType::u8 ? DType::u8 : DType::boolean);
}
void lower_logical_list(Lower& l, loop::Combine combine) {
  Ref x = l[0];
  Reduced over = listed_dims(l, x.sizes());
  l.tensor([&](const Index& i) {
    return l.reduce(combine, extents_of(x.sizes(), over.dims), [&](const Index& r) { return x.at(over.at(i, r)); });
  });
}

// With a zero among the factors only it gets a gradient: the product of the others.
Tensor product_gradient(const Tensor& grad, const Tensor& x, const Reduced& over) {
  const Sizes& sizes = x.sizes();
  Tensor g = restore_dims(grad, sizes, over.dims, over.keepdim);
  Tensor zero = eq(x, 0.0), others = where(zero, 1.0, x);
  Tensor product = others, zeros = to(zero, DType::i64);
  for (size_t d : over.dims) product = prod(product, d, true);
  if (!over.dims.empty()) zeros = sum(zero, dims_argument(over), true);
  Tensor factor = where(eq(zeros, 0), product / others, where(logical_and(zero, eq(zeros, 1)), product, 0.0));
  return g * factor;
}

void lower_count(Lower& l, int dims_at) {
  Ref x = l[0];
  Reduced over(l, x.sizes(), dims_at, -1);
  l.tensor([&](const Index& i) {
    return l.sum(extents_of(x.sizes(), over.dims), [&](const Index& r) {
      return cast(cast(x.at(over.at(i, r)), loop::Compute::boolean), loop::Compute::i64);
    });
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
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas { return like(m.meta("self"), {}, summed_dtype(m, 1)); },
      .lower = [](Lower& l) { lower_sum(l, -1, -1, false); },
      .vjp = {{"self, dtype", [](Vjp& v) { return spread(v, false, false); }}},
  });
  ops.add(sum, {
      .schema =
          "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        return like(m.meta("self"), reduced_sizes(m.meta("self").sizes, m.dims("dim", m.meta("self").rank()), m.flag("keepdim")),
                    summed_dtype(m, 3));
      },
      .lower = [](Lower& l) { lower_sum(l, 1, 2, false); },
      .vjp = {{"self, dim, keepdim, dtype", [](Vjp& v) { return spread(v, false, true); }}},
  });
  ops.add(mean_all, {
      .schema = "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        DType dtype = m.dtype("dtype").value_or(m.meta("self").dtype);
        m.require(is_floating(dtype), "expected a floating point tensor, got ", m.meta("self"),
                  "; convert it or give a dtype");
        return like(m.meta("self"), {}, dtype);
      },
      .lower = [](Lower& l) { lower_sum(l, -1, -1, true); },
      .vjp = {{"self, dtype", [](Vjp& v) { return spread(v, true, false); }}},
  });
  ops.add(mean, {
      .schema = "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        DType dtype = m.dtype("dtype").value_or(m.meta("self").dtype);
        m.require(is_floating(dtype), "expected a floating point tensor, got ", m.meta("self"),
                  "; convert it or give a dtype");
        return like(m.meta("self"), reduced_sizes(m.meta("self").sizes, m.dims("dim", m.meta("self").rank()), m.flag("keepdim")), dtype);
      },
      .lower = [](Lower& l) { lower_sum(l, 1, 2, true); },
      .vjp = {{"self, dim, keepdim, dtype", [](Vjp& v) { return spread(v, true, true); }}},
  });
  ops.add(any, {
      .schema = "any(Tensor self) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return logical_meta(m, -1, -1); },
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::any, -1, -1); },
  });
  ops.add(any_dim, {
      .schema = "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return logical_meta(m, 1, 2); },
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::any, 1, 2); },
  });
  ops.add({
      .schema = "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
      .kind = OpKind::reduction,
      .meta = logical_list_meta,
      .lower = [](Lower& l) { lower_logical_list(l, loop::Combine::any); },
  });
  ops.add(all, {
      .schema = "all(Tensor self) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return logical_meta(m, -1, -1); },
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::all, -1, -1); },
  });
  ops.add(all_dim, {
      .schema = "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return logical_meta(m, 1, 2); },
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::all, 1, 2); },
  });
  ops.add({
      .schema = "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
      .kind = OpKind::reduction,
      .meta = logical_list_meta,
      .lower = [](Lower& l) { lower_logical_list(l, loop::Combine::all); },
  });
  ops.add(amax, {
      .schema = "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return extreme_meta(m, 1, 2); },
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::max, 1, 2); },
      .vjp = {{"self, dim, keepdim", [](Vjp& v) { return extreme_rule(v, 1, 2); }}},
  });
  ops.add({
      .schema = "max(Tensor self) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return extreme_meta(m, -1, -1); },
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::max, -1, -1); },
      .vjp = {{"self", [](Vjp& v) { return extreme_rule(v, -1, -1); }}},
  });
  ops.add({
      .schema = "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
      .kind = OpKind::reduction,
      .meta = selected_meta,
      .lower = [](Lower& l) { lower_selected(l, loop::Combine::max, loop::Combine::argmax); },
      .vjp = {{"self, dim, keepdim", selected_rule}},
  });
  ops.add(argmax, {
      .schema = "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
      .kind = OpKind::reduction,
      .meta = position_meta,
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::argmax, 1, 2); },
  });
  ops.add(amin, {
      .schema = "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return extreme_meta(m, 1, 2); },
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::min, 1, 2); },
      .vjp = {{"self, dim, keepdim", [](Vjp& v) { return extreme_rule(v, 1, 2); }}},
  });
  ops.add({
      .schema = "min(Tensor self) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return extreme_meta(m, -1, -1); },
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::min, -1, -1); },
      .vjp = {{"self", [](Vjp& v) { return extreme_rule(v, -1, -1); }}},
  });
  ops.add({
      .schema = "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
      .kind = OpKind::reduction,
      .meta = selected_meta,
      .lower = [](Lower& l) { lower_selected(l, loop::Combine::min, loop::Combine::argmin); },
      .vjp = {{"self, dim, keepdim", selected_rule}},
  });
  ops.add({
      .schema = "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
      .kind = OpKind::reduction,
      .meta = position_meta,
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::argmin, 1, 2); },
  });
  ops.add({
      .schema = "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta one = *extreme_meta(m, 1, 2).values[0].get<TensorMeta>();
        return {one, one};
      },
      .lower =
          [](Lower& l) {
            Ref x = l["self"];
            Reduced over(l, x.sizes(), 1, 2);
            Sizes extents = extents_of(x.sizes(), over.dims);
            l.stage(Sizes(l.out(0).sizes()), [&](const Index& i) {
              auto term = [&](const Index& r) { return x.at(over.at(i, r)); };
              l.store(l.out(0), i, l.reduce(loop::Combine::min, extents, term));
              l.store(l.out(1), i, l.reduce(loop::Combine::max, extents, term));
            });
          },
      .vjp = {{"self, dim, keepdim", [](Vjp& v) -> Grads {
        Reduced over(v, v["self"].sizes(), 1, 2);
        Tensor low = v.grad(0) ? share_evenly(v.grad(0), v["self"], v.out(0), over) : none;
        Tensor high = v.grad(1) ? share_evenly(v.grad(1), v["self"], v.out(1), over) : none;
        return {low && high ? low + high : low ? low : high};
      }}},
  });
  ops.add({
      .schema = "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas { return like(m.meta("self"), {}, summed_dtype(m, 1)); },
      .lower = [](Lower& l) { lower_combined(l, loop::Combine::product, -1, -1, true); },
      .vjp = {{"self", [](Vjp& v) { return product_gradient(v.grad(), v["self"], Reduced(v, v["self"].sizes(), -1, -1)); }}},
  });
  ops.add(
      prod,
      {
          .schema = "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
          .kind = OpKind::reduction,
          .meta = [](MetaCall& m) -> Metas {
            return reduced_meta(m, Reduced(m, m.meta("self").sizes, 1, 2), summed_dtype(m, 3));
          },
          .lower = [](Lower& l) { lower_combined(l, loop::Combine::product, 1, 2, true); },
          .vjp = {{"self", [](Vjp& v) { return product_gradient(v.grad(), v["self"], Reduced(v, v["self"].sizes(), 1, 2)); }}},
      });
  ops.add({
      .schema = "count_nonzero(Tensor self, int? dim=None) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas { return reduced_meta(m, Reduced(m, m.meta("self").sizes, 1, -1), DType::i64); },
      .lower = [](Lower& l) { lower_count(l, 1); },
  });
  ops.add(count_nonzero, {
      .schema = "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        return reduced_meta(m, Reduced(m, m.meta("self").sizes, 1, -1), DType::i64);
      },
      .lower = [](Lower& l) { lower_count(l, 1); },
  });
}

}  // namespace tenon
