#include "tenon/ops/reduction.h"

#include <algorithm>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/scatter_gather.h"
#include "tenon/ops/view_writes.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

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

Reduced::Reduced(const ArgsView& call, const Sizes& sizes) : rank(sizes.size()) {
  const Schema& schema = call.op.schema;
  if (schema.find("dim") >= 0) dims = call.dims("dim", rank);
  else
    for (size_t i = 0; i < rank; ++i) dims.push_back(i);
  keepdim = schema.find("keepdim") >= 0 && call.flag("keepdim");
}
Sizes dims_argument(const Reduced& over) {
  Sizes out;
  for (size_t d : over.dims) out.push_back(SymInt(static_cast<int64_t>(d)));
  return out;
}

Tensor place_selected(const Tensor& grad, const Tensor& indices, const Sizes& sizes, int64_t dim, bool keepdim) {
  if (sizes.empty()) return grad;
  if (keepdim) return scatter_src(zeros(sizes, grad), dim, indices, grad);
  Tensor g = unsqueeze(grad, dim), at = unsqueeze(indices, dim);
  return scatter_src(zeros(sizes, grad), dim, at, g);
}

Tensor share_evenly(const Tensor& grad, const Tensor& x, const Tensor& extreme, const Reduced& over) {
  const Sizes& sizes = x.sizes();
  Tensor y = restore_dims(extreme, sizes, over.dims, over.keepdim),
         g = restore_dims(grad, sizes, over.dims, over.keepdim);
  Tensor reached = eq(x, y), count = sum(reached, dims_argument(over), true);
  return g * reached / count;
}

void require_elements(const ArgsView& m, const Sizes& sizes, const Reduced& over) {
  for (size_t d : over.dims)
    m.require(!statically_true(sym::eq(sizes[d], 0)), "expected dimension ", d, " to have elements, got sizes ", sizes,
              "; there is none to choose");
}

namespace {

using loop::Combine;

DType summed_dtype(const ArgsView& m) {
  if (auto given = m.dtype("dtype")) return *given;
  DType d = m.meta("self").dtype;
  return is_floating(d) || is_complex(d) ? d : DType::i64;
}

TensorMeta reduced_meta(const TensorMeta& x, const Reduced& over, DType dtype) {
  return like(x, reduced_sizes(x.sizes, over.dims, over.keepdim), dtype);
}

Metas sum_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  return reduced_meta(x, Reduced(m, x.sizes), summed_dtype(m));
}

Metas mean_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  DType dtype = m.dtype("dtype").value_or(x.dtype);
  m.require(is_floating(dtype), "expected a floating point tensor, got ", x, "; convert it or give a dtype");
  return reduced_meta(x, Reduced(m, x.sizes), dtype);
}

// Sums are converted first, as PyTorch does: sum(x.to(dtype)).
void lower_total(Lower& l, bool average) {
  Ref x = l["self"];
  Reduced over(l, x.sizes());
  loop::Compute type = loop::compute_of(l.out().dtype());
  if (type == loop::Compute::boolean) type = loop::Compute::i64;
  Sizes extents = extents_of(x.sizes(), over.dims);
  l.tensor([&](const Index& i) {
    loop::Expr total = l.sum(extents, [&](const Index& r) { return cast(x.at(over.at(i, r)), type); });
    return average ? total / cast(l.extent(count(extents)), type) : total;
  });
}
void lower_sum(Lower& l) { lower_total(l, false); }
void lower_mean(Lower& l) { lower_total(l, true); }

// Every element that was summed gets the gradient of the sum.
Tensor spread(Vjp& v, bool average) {
  const Sizes& sizes = v["self"].sizes();
  Reduced over(v, sizes);
  bool kept = over.keepdim || v.op.schema.find("dim") < 0;  // without dims, a number broadcasts as it is
  Tensor g = restore_dims(v.grad(), sizes, over.dims, kept);
  if (average) g = div(g, count(extents_of(sizes, over.dims)));
  return expand(g, sizes);
}
Grads sum_gradient(Vjp& v) { return {spread(v, false)}; }
Grads mean_gradient(Vjp& v) { return {spread(v, true)}; }

// One accumulator over the elements.
void lower_combined(Lower& l, Combine combine, const Reduced& over, loop::Compute type) {
  Ref x = l["self"];
  l.tensor([&](const Index& i) {
    return l.reduce(combine, extents_of(x.sizes(), over.dims),
                    [&](const Index& r) { return cast(x.at(over.at(i, r)), type); });
  });
}
template <Combine combine>
void lower_combined(Lower& l) {
  Ref x = l["self"];
  lower_combined(l, combine, Reduced(l, x.sizes()), loop::compute_of(x.dtype()));
}

// The factors are converted first, as the terms of sums are.
void lower_product(Lower& l) {
  lower_combined(l, Combine::product, Reduced(l, l["self"].sizes()), loop::compute_of(l.out().dtype()));
}

// With a zero among the factors only it gets a gradient: the product of the others.
Grads product_gradient(Vjp& v) {
  Tensor x = v["self"];
  const Sizes& sizes = x.sizes();
  Reduced over(v, sizes);
  Tensor g = restore_dims(v.grad(), sizes, over.dims, over.keepdim);
  Tensor zero = eq(x, 0.0), others = where(zero, 1.0, x);
  Tensor product = others, zeros = to(zero, DType::i64);
  for (size_t d : over.dims) product = prod(product, d, true);
  if (!over.dims.empty()) zeros = sum(zero, dims_argument(over), true);
  Tensor factor = where(eq(zeros, 0), product / others, where(logical_and(zero, eq(zeros, 1)), product, 0.0));
  return {g * factor};
}

// Two results of one pass over the elements.
void lower_pair(Lower& l, Combine first, Combine second) {
  Ref x = l["self"];
  Reduced over(l, x.sizes());
  Sizes extents = extents_of(x.sizes(), over.dims);
  l.stage(Sizes(l.out(0).sizes()), [&](const Index& i) {
    auto term = [&](const Index& r) { return x.at(over.at(i, r)); };
    l.store(l.out(0), i, l.reduce(first, extents, term));
    l.store(l.out(1), i, l.reduce(second, extents, term));
  });
}

// What max, min and their positions reduce: there must be an element to choose.
Reduced chosen_from(const MetaCall& m) {
  Reduced over(m, m.meta("self").sizes);
  require_elements(m, m.meta("self").sizes, over);
  return over;
}
Metas extreme_meta(MetaCall& m) { return reduced_meta(m.meta("self"), chosen_from(m), m.meta("self").dtype); }
Metas position_meta(MetaCall& m) { return reduced_meta(m.meta("self"), chosen_from(m), DType::i64); }
Metas extreme_and_position_meta(MetaCall& m) {
  Reduced over = chosen_from(m);
  return {reduced_meta(m.meta("self"), over, m.meta("self").dtype), reduced_meta(m.meta("self"), over, DType::i64)};
}

Grads extreme_gradient(Vjp& v) { return {share_evenly(v.grad(), v["self"], v.out(), Reduced(v, v["self"].sizes()))}; }
Grads selected_gradient(Vjp& v) {
  if (!v.grad()) return {};
  return {place_selected(v.grad(), v.out(1), v["self"].sizes(), v.constant("dim"), v.flag("keepdim"))};
}

// any and all give booleans, except for u8. In their lists of dims, none means none of them.
Reduced logical_dims(const ArgsView& m, const Sizes& sizes) {
  Reduced over(m, sizes);
  int dim = m.op.schema.find("dim");
  if (dim >= 0 && m.op.schema.args[static_cast<size_t>(dim)].type.list && m.given("dim") && m.ints("dim").empty())
    over.dims.clear();
  return over;
}
Metas logical_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  return reduced_meta(x, logical_dims(m, x.sizes), x.dtype == DType::u8 ? DType::u8 : DType::boolean);
}
template <Combine combine>
void lower_logical(Lower& l) {
  Ref x = l["self"];
  lower_combined(l, combine, logical_dims(l, x.sizes()), loop::compute_of(x.dtype()));
}

void lower_count(Lower& l) {
  Ref x = l["self"];
  Reduced over(l, x.sizes());
  l.tensor([&](const Index& i) {
    return l.sum(extents_of(x.sizes(), over.dims), [&](const Index& r) {
      return cast(cast(x.at(over.at(i, r)), loop::Compute::boolean), loop::Compute::i64);
    });
  });
}

// By halves: the elements of the first with those of the second.
Results complex_product(Build& b) {
  Tensor x = b.dtype("dtype") ? to(b["self"], *b.dtype("dtype")) : b["self"];
  if (!is_complex(x.dtype())) return on_real(b, x);
  bool whole = b.op.schema.find("dim") < 0;
  if (whole) x = reshape(x, Sizes{count(x.sizes())});
  if (x.rank() == 0) return one(clone(x));
  size_t dim = whole ? 0 : b.dim("dim", x.rank());
  b.supports(x.sizes()[dim].is_int(), "of complex numbers the number of factors must be known, got ", x.meta());
  int64_t factors = x.sizes()[dim].as_int();
  auto d = static_cast<int64_t>(dim);
  if (factors == 0) {
    Sizes sizes = x.sizes();
    sizes[dim] = factors = 1;
    x = full(sizes, 1, kw("dtype", x.dtype()));
  } else if (factors == 1) x = clone(x);
  for (; factors > 1; factors = (factors + 1) / 2) {
    int64_t half = factors / 2;
    Tensor product = mul(slice(x, d, 0, half), slice(x, d, half, 2 * half));
    x = factors % 2 ? Tensor(cat(std::vector<Tensor>{product, slice(x, d, 2 * half, factors)}, d)) : product;
  }
  return one(!whole && b.flag("keepdim") ? x : Tensor(squeeze_dim(x, d)));
}

}  // namespace

void register_reduction(Registry& ops) {
  ops.add(sum_all, {
                       .schema = "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
                       .kind = OpKind::reduction,
                       .meta = sum_meta,
                       .lower = lower_sum,
                       .vjp = {{"self", sum_gradient}},
                       .complex = [](Build& b) { return by_parts(b, "self"); },
                   });
  ops.overload(sum_all, sum,
               "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor");
  ops.add(mean_all, {
                        .schema = "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
                        .kind = OpKind::reduction,
                        .meta = mean_meta,
                        .lower = lower_mean,
                        .vjp = {{"self", mean_gradient}},
                        .complex = [](Build& b) { return by_parts(b, "self"); },
                    });
  ops.overload(mean_all, mean,
               "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor");
  ops.add(any, {
                   .schema = "any(Tensor self) -> Tensor",
                   .kind = OpKind::reduction,
                   .meta = logical_meta,
                   .lower = lower_logical<Combine::any>,
                   .complex = on_truth,
               });
  ops.overload(any, any_dim, "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor");
  ops.overload(any, {"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"});
  ops.add(all, {
                   .schema = "all(Tensor self) -> Tensor",
                   .kind = OpKind::reduction,
                   .meta = logical_meta,
                   .lower = lower_logical<Combine::all>,
                   .complex = on_truth,
               });
  ops.overload(all, all_dim, "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor");
  ops.overload(all, {"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"});
  ops.add(amax, {
                    .schema = "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
                    .kind = OpKind::reduction,
                    .meta = extreme_meta,
                    .lower = lower_combined<Combine::max>,
                    .vjp = {{"self", extreme_gradient}},
                });
  ops.overload(amax, {"max(Tensor self) -> Tensor"});
  ops.add(amin, {
                    .schema = "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
                    .kind = OpKind::reduction,
                    .meta = extreme_meta,
                    .lower = lower_combined<Combine::min>,
                    .vjp = {{"self", extreme_gradient}},
                });
  ops.overload(amin, {"min(Tensor self) -> Tensor"});
  ops.add({
      .schema = "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
      .kind = OpKind::reduction,
      .meta = extreme_and_position_meta,
      .lower = [](Lower& l) { lower_pair(l, Combine::max, Combine::argmax); },
      .vjp = {{"self", selected_gradient}},
  });
  ops.add({
      .schema = "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
      .kind = OpKind::reduction,
      .meta = extreme_and_position_meta,
      .lower = [](Lower& l) { lower_pair(l, Combine::min, Combine::argmin); },
      .vjp = {{"self", selected_gradient}},
  });
  ops.add(argmax, {
                      .schema = "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
                      .kind = OpKind::reduction,
                      .meta = position_meta,
                      .lower = lower_combined<Combine::argmax>,
                  });
  ops.add({
      .schema = "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
      .kind = OpKind::reduction,
      .meta = position_meta,
      .lower = lower_combined<Combine::argmin>,
  });
  ops.add({
      .schema = "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta one = reduced_meta(m.meta("self"), chosen_from(m), m.meta("self").dtype);
        return {one, one};
      },
      .lower = [](Lower& l) { lower_pair(l, Combine::min, Combine::max); },
      .vjp = {{"self",
               [](Vjp& v) {
                 Reduced over(v, v["self"].sizes());
                 Tensor low = v.grad(0) ? share_evenly(v.grad(0), v["self"], v.out(0), over) : none;
                 Tensor high = v.grad(1) ? share_evenly(v.grad(1), v["self"], v.out(1), over) : none;
                 return low && high ? low + high : low ? low : high;
               }}},
  });
  Handle prod_all;
  ops.add(prod_all, {
                        .schema = "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
                        .kind = OpKind::reduction,
                        .meta = sum_meta,
                        .lower = lower_product,
                        .vjp = {{"self", product_gradient}},
                        .complex = complex_product,
                    });
  ops.overload(prod_all, prod,
               "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor");
  ops.add(count_nonzero, {
                             .schema = "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
                             .kind = OpKind::reduction,
                             .meta = [](MetaCall& m) -> Metas {
                               return reduced_meta(m.meta("self"), Reduced(m, m.meta("self").sizes), DType::i64);
                             },
                             .lower = lower_count,
                             .complex = on_truth,
                         });
  ops.overload(count_nonzero, {"count_nonzero(Tensor self, int? dim=None) -> Tensor"});
  ops.add({
      .schema = "sum_to_size(Tensor self, SymInt[] size) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        Tensor x = b["self"];
        Sizes to = b.ints("size"), common = broadcast(x.sizes(), to, b);
        b.require(to.size() <= x.rank() && common == x.sizes(), "sizes ", to, " do not broadcast to ", x.meta());
        return to.empty() ? sum(x, Sizes{}) : one(sum_to(x, to));
      },
  });
}

}  // namespace tenon
