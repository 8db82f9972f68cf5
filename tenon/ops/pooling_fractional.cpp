// Max pooling over windows whose places random numbers shift.
#include "tenon/ops/pooling.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle pool2d_backward, pool3d_backward;

namespace {

using loop::Compute;
using loop::Expr;

bool same(SymInt a, SymInt b) { return a == b || !a.is_int() || !b.is_int(); }

Sizes pooled(const ArgsView& m, const TensorMeta& x, size_t space) {
  m.require((x.rank() == space + 1 || x.rank() == space + 2) && is_floating(x.dtype),
            "expected a floating point image of ", space + 1, " or ", space + 2, " dimensions, got ", x);
  Sizes kernel = m.ints("kernel_size", space), wanted = m.ints("output_size", space), sizes = x.sizes;
  for (size_t k = 0; k < space; ++k) {
    size_t d = x.rank() - space + k;
    bool fits = kernel[k].is_int() && wanted[k].is_int() && kernel[k].as_int() > 0 && wanted[k].as_int() > 0;
    m.require(fits, "kernel_size and output_size: expected positive numbers, got ", kernel, " and ", wanted);
    m.require(
        !x.sizes[d].is_int() || sym::checked_add(wanted[k].as_int(), kernel[k].as_int() - 1) <= x.sizes[d].as_int(),
        "a window of ", kernel[k], " does not fit ", wanted[k], " times into dimension ", d, " of ", x);
    sizes[d] = wanted[k];
  }
  return sizes;
}

template <size_t space>
Metas pool_meta(MetaCall& m) {
  const TensorMeta &x = m.meta("self"), &samples = m.meta("random_samples");
  Sizes sizes = pooled(m, x, space);
  bool batched = x.rank() == space + 2;
  SymInt channels = x.sizes[batched ? 1 : 0], images = batched ? x.sizes[0] : SymInt(1);
  m.require(samples.rank() == 3 && samples.dtype == x.dtype && same(samples.sizes[1], channels) &&
                same(samples.sizes[2], static_cast<int64_t>(space)) &&
                (!samples.sizes[0].is_int() || !images.is_int() || samples.sizes[0].as_int() >= images.as_int()),
            "random_samples: expected ", make_meta(x.dtype, {images, channels, static_cast<int64_t>(space)}), ", got ",
            samples);
  for (size_t d = batched ? 1 : 0; d < x.rank(); ++d)
    m.require(!(x.sizes[d] == SymInt(0)), "dimension ", d, " of ", x, " is empty");
  return {like(x, sizes), like(x, sizes, DType::i64)};
}

template <size_t space>
void lower_pool(Lower& l) {
  Ref x = l["self"], samples = l["random_samples"];
  Sizes kernel = l.ints("kernel_size", space), wanted = l.ints("output_size", space);
  size_t first = x.sizes().size() - space;
  Compute type = loop::compute_of(x.dtype());
  auto begin = [&](const Index& i, size_t k) {
    Expr room = l.extent(x.size(first + k) - kernel[k]), at = i[first + k];
    if (wanted[k] == SymInt(1)) return room;
    Expr image = first == 2 ? i[0] : l.extent(0);
    // The first number moves the last dimension of an image, but the first one of a volume.
    Expr sample = samples.at({image, i[first - 1], l.extent(static_cast<int64_t>(space == 2 ? 1 - k : k))});
    Expr alpha = cast(room, type) / cast(l.extent(wanted[k] - 1), type);
    Expr moved = cast((cast(at, type) + sample) * alpha, Compute::i64) - cast(sample * alpha, Compute::i64);
    return loop::select(at == l.extent(wanted[k] - 1), room, moved);
  };
  lower_max_pool(l, x, space, kernel, [&](const Index& i, const Index& r) {
    PoolElement e{i, loop::constant(l.program.arena, int64_t{1}, Compute::boolean)};
    for (size_t k = 0; k < space; ++k) e.at[first + k] = begin(i, k) + r[k];
    return e;
  });
}

template <size_t space>
Metas backward_meta(MetaCall& m) {
  const TensorMeta &g = m.meta("grad_output"), &x = m.meta("self"), &indices = m.meta("indices");
  Sizes sizes = pooled(m, x, space);
  m.require(g.sizes == sizes && g.dtype == x.dtype && indices.sizes == sizes && indices.dtype == DType::i64,
            "expected a gradient and i64 indices of sizes ", sizes, ", got ", g, " and ", indices);
  return like(x, x.sizes);
}

template <size_t space, Handle& backward>
void add_fractional_max_pool(Registry& ops, const char* schema, const char* backward_schema) {
  ops.add({
      .schema = schema,
      .meta = pool_meta<space>,
      .lower = lower_pool<space>,
      .vjp = {{"self",
               [](Vjp& v) {
                 return backward(v.grad(), v["self"], v.arg("kernel_size"), v.arg("output_size"), v.out(1));
               }}},
  });
  ops.add(backward, {
                        .schema = backward_schema,
                        .meta = backward_meta<space>,
                        .lower = [](Lower& l) { lower_max_unpool(l, l["grad_output"], space); },
                        .vjp = {{"grad_output", [](Vjp& v) { return gather_pooled(v.grad(), v["indices"], space); }}},
                    });
}

}  // namespace

void register_pooling_fractional(Registry& ops) {
  add_fractional_max_pool<2, pool2d_backward>(
      ops,
      "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, "
      "Tensor)",
      "fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor "
      "indices) -> Tensor");
  add_fractional_max_pool<3, pool3d_backward>(
      ops,
      "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, "
      "Tensor)",
      "fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor "
      "indices) -> Tensor");
}

}  // namespace tenon
