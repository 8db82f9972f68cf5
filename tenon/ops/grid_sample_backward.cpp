// The gradient of reading an image at places that a grid names.
#include "tenon/ops/accumulation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/grid_sample.h"
#include "tenon/ops/interpolation.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/scatter_gather.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

using loop::Compute;
using loop::Expr;

// A number and its derivative by the grid's.
struct Place {
  Expr x, slope;
};

Place clipped(Lower& l, Place p, SymInt size, Compute type) {
  Expr zero = l.constant(0, type), last = cast(l.extent(size - 1), type);
  Expr inside = p.x > 0.0 && p.x < last;
  return {min(max(p.x, zero), last), loop::select(inside, p.slope, zero)};
}

// Mirrored at both ends, as often as it takes.
Place reflected(Lower& l, Place p, SymInt size, bool align, Compute type) {
  Expr zero = l.constant(0, type);
  if (align && size == SymInt(1)) return {zero, zero};
  double low = align ? 0 : -0.5;
  Expr span = cast(l.extent(align ? size - 1 : size), type), from = p.x - low;
  Expr slope = loop::select(from < 0.0, -p.slope, p.slope);
  from = loop::abs(from);
  Expr turns = loop::floor(from / span), extra = call(loop::Fn::fmod, from, span);
  Expr even = call(loop::Fn::fmod, turns, l.constant(2, type)) == 0.0;
  return {loop::select(even, extra, span - extra) + low, loop::select(even, slope, -slope)};
}

Place moved_inside(Lower& l, Place p, SymInt size, const GridSampling& how, Compute type) {
  if (how.padding == GridSampling::zeros) return p;
  if (how.padding == GridSampling::reflection) p = reflected(l, p, size, how.align_corners, type);
  return clipped(l, p, size, type);
}

// One of the image elements along a dimension that a place reads.
struct Tap {
  Expr at, inside, weight, slope;
};

std::vector<Tap> taps(Lower& l, Expr grid, SymInt size, const GridSampling& how, Compute type) {
  bool align = how.align_corners;
  Expr span = cast(l.extent(align ? size - 1 : size), type), one = l.constant(1, type), zero = l.constant(0, type);
  Place p{align ? (grid + 1.0) / 2.0 * span : ((grid + 1.0) * span - 1.0) / 2.0, span / 2.0};
  std::vector<Tap> out;
  auto add = [&](Expr at, Expr weight, Expr slope) {
    Expr inside = at >= 0.0 && at < cast(l.extent(size), type);
    out.push_back({cast(loop::select(inside, at, zero), Compute::i64), inside, weight, slope});
  };
  if (how.interpolation == GridSampling::bicubic) {
    Expr low = loop::floor(p.x), t = p.x - low;
    constexpr double a = cubic_parameter;
    auto at = [&](double k) { return moved_inside(l, {low + k, zero}, size, how, type).x; };
    Expr before = t + 1.0, after = one - t, beyond = one - t + 1.0;
    add(at(-1), cubic_far(before, a), cubic_far_slope(before, a) * p.slope);
    add(at(0), cubic_near(t, a), cubic_near_slope(t, a) * p.slope);
    add(at(1), cubic_near(after, a), -cubic_near_slope(after, a) * p.slope);
    add(at(2), cubic_far(beyond, a), -cubic_far_slope(beyond, a) * p.slope);
    return out;
  }
  p = moved_inside(l, p, size, how, type);
  if (how.interpolation == GridSampling::nearest) {
    add(call(loop::Fn::round_even, p.x), one, zero);
    return out;
  }
  Expr low = loop::floor(p.x), t = p.x - low;
  add(low, one - t, -p.slope);
  add(low + 1.0, t, p.slope);
  return out;
}

bool same(SymInt a, SymInt b) { return a == b || !a.is_int() || !b.is_int(); }

Metas backward_meta(MetaCall& m, size_t space) {
  const TensorMeta &g = m.meta("grad_output"), &image = m.meta("input"), &grid = m.meta("grid");
  m.require(image.rank() == space + 2 && grid.rank() == space + 2 &&
                same(grid.sizes.back(), static_cast<int64_t>(space)) && same(grid.sizes[0], image.sizes[0]),
            "expected an image and a grid of ", space + 2, " dimensions, the grid's last of size ", space, ", got ",
            image, " and ", grid);
  m.require(is_floating(image.dtype) && grid.dtype == image.dtype && g.dtype == image.dtype,
            "expected one floating point dtype, got ", g, ", ", image, " and ", grid);
  bool fits = g.rank() == space + 2 && same(g.sizes[0], image.sizes[0]) && same(g.sizes[1], image.sizes[1]);
  for (size_t d = 0; fits && d < space; ++d)
    fits = same(g.sizes[2 + d], grid.sizes[1 + d]) && !(image.sizes[2 + d] == SymInt(0));
  m.require(fits, "expected a gradient for each place of the grid and an image with elements, got ", g, ", ", image,
            " and ", grid);
  GridSampling how(m, space);
  // The gradient of the grid comes whatever the mask says, as in PyTorch.
  Metas out = masked_metas(m, {like(image, image.sizes), like(grid, grid.sizes)});
  out.values[1] = like(grid, grid.sizes);
  return out;
}

void lower_backward(Lower& l, size_t space) {
  Ref grad = l["grad_output"], image = l["input"], grid = l["grid"];
  GridSampling how(l, space);
  Compute type = loop::compute_of(image.dtype());
  SymInt channels = image.size(1);
  // Calls body(place among the image's dims, inside, the taps) for every element that a place reads; the grid names the
  // last dimension first.
  using Body = std::function<void(const Index&, Expr, const std::vector<Tap>&)>;
  auto for_each = [&](Expr n, const Index& at, const Body& body) {
    std::vector<std::vector<Tap>> all;
    Index from = {n};
    from.insert(from.end(), at.begin(), at.end());
    for (size_t d = 0; d < space; ++d) {
      Index component = from;
      component.push_back(l.extent(static_cast<int64_t>(space - 1 - d)));
      all.push_back(taps(l, grid.at(component), image.size(2 + d), how, type));
    }
    for_each_combination(all, [&](const std::vector<Tap>& chosen) {
      Index place;
      Expr inside;
      for (const Tap& tap : chosen) {
        inside = place.empty() ? tap.inside : inside && tap.inside;
        place.push_back(tap.at);
      }
      body(place, inside, chosen);
    });
  };
  auto pixel = [](Expr n, Expr c, const Index& place) {
    Index out = {n, c};
    out.insert(out.end(), place.begin(), place.end());
    return out;
  };
  if (l.wants(0)) {
    WideResult wide(l, l.out(0));
    l.fill(wide.target, l.constant(0, type));
    l.stage(Sizes(grad.sizes()), [&](const Index& i) {
      for_each(i[0], i.drop_first(2), [&](const Index& place, Expr inside, const std::vector<Tap>& chosen) {
        Expr value = grad.at(i);
        for (const Tap& tap : chosen) value = value * tap.weight;
        l.store_if(inside, wide.target, pixel(i[0], i[1], place), value, loop::Mode::add);
      });
    });
    wide.finish();
  }
  Ref out = l.out(l.outs() - 1);
  if (how.interpolation == GridSampling::nearest) return l.fill(out, l.constant(0, type));
  Sizes places(std::span<const SymInt>(grid.sizes().begin(), space + 1));
  l.stage(places, [&](const Index& i) {
    Index at = i.drop_first();
    for (size_t d = 0; d < space; ++d) {
      Expr total = l.sum({channels}, [&](const Index& c) {
        Expr sum;
        for_each(i[0], at, [&](const Index& place, Expr inside, const std::vector<Tap>& chosen) {
          Expr term = image.at_if(inside, pixel(i[0], c[0], place), l.constant(0, type));
          for (size_t k = 0; k < space; ++k) term = term * (k == d ? chosen[k].slope : chosen[k].weight);
          sum = sum.arena ? sum + term : term;
        });
        return sum * grad.at(pixel(i[0], c[0], at));
      });
      Index to = i;
      to.push_back(l.extent(static_cast<int64_t>(space - 1 - d)));
      l.store(out, to, total);
    }
  });
}

// The same in operators that have gradients of their own. PyTorch has no such gradient.
Results differentiable_gradient(Build& b, size_t space) {
  Tensor grad = b["grad_output"], image = b["input"], grid = b["grid"];
  GridSampling how(b, space);
  SymInt n = image.size(0), channels = image.size(1), places = 1, area = 1;
  std::span<const SymInt> sizes(image.sizes().begin() + 2, space);
  for (size_t d = 0; d < space; ++d) places = places * grid.sizes()[1 + d], area = area * sizes[d];
  Tensor flat = reshape(image, Sizes{n, channels, area}), weighed = reshape(grad, Sizes{n, channels, places});
  std::vector<std::vector<GridTap>> all;  // by dimension of the image; the grid names the last one first
  for (size_t d = 0; d < space; ++d) {
    Tensor coordinate = reshape(select(grid, -1, static_cast<int64_t>(space - 1 - d)), Sizes{n, places});
    all.push_back(grid_taps(coordinate, sizes[d], how, true));
  }
  Tensor of_image = zeros_like(flat);
  std::vector<Tensor> of_grid(space);  // by dimension of the image
  for_each_combination(all, [&](const std::vector<GridTap>& chosen) {
    GridRead read = grid_read(chosen, sizes);
    Tensor index = expand(unsqueeze(read.index, 1), Sizes{n, channels, places});
    Tensor here = where(unsqueeze(read.inside, 1), weighed, 0.0), weight;
    for (const GridTap& tap : chosen)
      if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
    of_image = scatter_add(of_image, 2, index, weight ? here * unsqueeze(weight, 1) : here);
    if (how.interpolation == GridSampling::nearest) return;
    Tensor pull = sum(gather(flat, 2, index) * here, Sizes{1});
    for (size_t d = 0; d < space; ++d) {
      Tensor term = pull;
      for (size_t k = 0; k < space; ++k) term = term * (k == d ? chosen[k].slope : chosen[k].weight);
      of_grid[d] = of_grid[d] ? of_grid[d] + term : term;
    }
  });
  Tensor out = zeros_like(grid);
  if (how.interpolation != GridSampling::nearest) {
    std::vector<Tensor> named_last_first(of_grid.rbegin(), of_grid.rend());
    out = reshape(stack(named_last_first, -1), Sizes(grid.sizes()));
  }
  Results results;
  if (b.arg("output_mask").get<std::vector<bool>>()->front())
    results.values.emplace_back(Tensor(reshape(of_image, Sizes(image.sizes()))));
  else results.values.emplace_back();
  results.values.emplace_back(out);
  return results;
}

}  // namespace

void register_grid_sample_backward(Registry& ops) {
  ops.add({
      .schema = "grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int "
                "padding_mode, bool "
                "align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
      .meta = [](MetaCall& m) { return backward_meta(m, 2); },
      .lower = [](Lower& l) { lower_backward(l, 2); },
      .for_grad = [](Build& b) { return differentiable_gradient(b, 2); },
  });
  ops.add({
      .schema = "grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int "
                "padding_mode, bool "
                "align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
      .meta = [](MetaCall& m) { return backward_meta(m, 3); },
      .lower = [](Lower& l) { lower_backward(l, 3); },
      .for_grad = [](Build& b) { return differentiable_gradient(b, 3); },
  });
}

}  // namespace tenon
