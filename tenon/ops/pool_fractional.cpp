// Max pooling over windows whose places random numbers shift.
#include "tenon/ops/pool.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle pool2d_backward, pool3d_backward;

namespace {

using loop::Compute;
using loop::Expr;

bool same(SymInt a, SymInt b) { return a == b || !a.is_int() || !b.is_int(); }

Sizes pooled(const ArgsView& m, const TensorMeta& x, size_t space) {
  m.require((x.rank() == space + 1 || x.rank() == space + 2) && is_floating(x.dtype), "expected a floating point image of ", space + 1, " or ",
            space + 2, " dimensions, got ", x);
  Sizes kernel = m.ints(m.op.schema.find("kernel_size"), space), wanted = m.ints(m.op.schema.find("output_size"), space), sizes = x.sizes;
  for (size_t k = 0; k < space; ++k) {
    size_t d = x.rank() - space + k;
    bool fits = kernel[k].is_int() && wanted[k].is_int() && kernel[k].as_int() > 0 && wanted[k].as_int() > 0;
    m.require(fits, "kernel_size and output_size: expected positive numbers, got ", kernel, " and ", wanted);
    m.require(!x.sizes[d].is_int() || sym::checked_add(wanted[k].as_int(), kernel[k].as_int() - 1) <= x.sizes[d].as_int(), "a window of ", kernel[k], " does not fit ",
              wanted[k], " times into dimension ", d, " of ", x);
    sizes[d] = wanted[k];
  }
  return sizes;
}

Metas pool_meta(MetaCall& m, size_t space) {
  const TensorMeta &x = m.meta(0), &samples = m.meta(3);
  Sizes sizes = pooled(m, x, space);
  bool batched = x.rank() == space + 2;
  SymInt channels = x.sizes[batched ? 1 : 0], images = batched ? x.sizes[0] : SymInt(1);
  m.require(samples.rank() == 3 && samples.dtype == x.dtype && same(samples.sizes[1], channels) && same(samples.sizes[2], static_cast<int64_t>(space)) &&
                (!samples.sizes[0].is_int() || !images.is_int() || samples.sizes[0].as_int() >= images.as_int()),
            "random_samples: expected ", make_meta(x.dtype, {images, channels, static_cast<int64_t>(space)}), ", got ", samples);
  for (size_t d = batched ? 1 : 0; d < x.rank(); ++d) m.require(!(x.sizes[d] == SymInt(0)), "dimension ", d, " of ", x, " is empty");
  return {like(x, sizes), like(x, sizes, DType::i64)};
}

void lower_pool(Lower& l, size_t space) {
  Ref x = l[0], samples = l[3];
  Sizes kernel = l.ints(1, space), wanted = l.ints(2, space);
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
  lower_largest(l, x, space, kernel, [&](const Index& i, const Index& r) {
    PoolElement e{i, loop::constant(l.program.arena, int64_t{1}, Compute::boolean)};
    for (size_t k = 0; k < space; ++k) e.at[first + k] = begin(i, k) + r[k];
    return e;
  });
}

Metas backward_meta(MetaCall& m, size_t space) {
  const TensorMeta &g = m.meta(0), &x = m.meta(1), &indices = m.meta(4);
  Sizes sizes = pooled(m, x, space);
  m.require(g.sizes == sizes && g.dtype == x.dtype && indices.sizes == sizes && indices.dtype == DType::i64, "expected a gradient and i64 indices of sizes ",
            sizes, ", got ", g, " and ", indices);
  return like(x, x.sizes);
}

}  // namespace

void register_pool_fractional(Registry& ops) {
  ops.add({
      .schema = "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)",
      .meta = [](MetaCall& m) { return pool_meta(m, 2); },
      .lower = [](Lower& l) { lower_pool(l, 2); },
      .vjp = {{"self", [](Vjp& v) { return pool2d_backward(v.grad(), v["self"], v.arg("kernel_size"), v.arg("output_size"), v.out(1)); }}},
  });
  ops.add({
      .schema = "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)",
      .meta = [](MetaCall& m) { return pool_meta(m, 3); },
      .lower = [](Lower& l) { lower_pool(l, 3); },
      .vjp = {{"self", [](Vjp& v) { return pool3d_backward(v.grad(), v["self"], v.arg("kernel_size"), v.arg("output_size"), v.out(1)); }}},
  });
  ops.add(pool2d_backward, {
      .schema = "fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor indices) -> Tensor",
      .meta = [](MetaCall& m) { return backward_meta(m, 2); },
      .lower = [](Lower& l) { lower_unpool(l, l["indices"], 2); },
      .vjp = {{"grad_output", [](Vjp& v) { return picked(v.grad(), v["indices"], 2); }}},
  });
  ops.add(pool3d_backward, {
      .schema = "fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor indices) -> Tensor",
      .meta = [](MetaCall& m) { return backward_meta(m, 3); },
      .lower = [](Lower& l) { lower_unpool(l, l["indices"], 3); },
      .vjp = {{"grad_output", [](Vjp& v) { return picked(v.grad(), v["indices"], 3); }}},
  });
}

}  // namespace tenon
