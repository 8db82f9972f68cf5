#include "tenon/ops/grid_sample.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/interpolation.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/scatter_gather.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

GridSampling::GridSampling(const ArgsView& call, size_t space) : align_corners(call.flag("align_corners")) {
  int64_t mode = call.constant("interpolation_mode"), outside = call.constant("padding_mode");
  call.require(mode >= 0 && mode <= (space == 2 ? bicubic : nearest) && outside >= 0 && outside <= reflection,
               "unknown modes: interpolation ", mode, ", padding ", outside);
  interpolation = static_cast<Interpolation>(mode);
  padding = static_cast<Padding>(outside);
}

namespace {

// A number, and its derivative by the coordinate where it is asked for.
struct Coordinate {
  Tensor x, slope;
};

// Coordinate at both ends, as often as it takes.
Coordinate reflected(const Coordinate& p, SymInt size, bool align) {
  if (align && size == SymInt(1)) return {p.x * 0.0, p.slope ? p.slope * 0.0 : none};
  SymInt span = align ? size - 1 : size;
  Tensor signed_from = align ? p.x : p.x + 0.5, from = abs(signed_from);
  Tensor turns = floor(div(from, span)), extra = from - mul(turns, span);
  Tensor odd = ne(turns - floor(turns / 2.0) * 2.0, 0.0);
  Tensor inside = where(odd, add(neg(extra), span), extra), slope;
  if (p.slope) slope = where(ne(odd, lt(signed_from, 0.0)), neg(p.slope), p.slope);
  return {align ? inside : inside - 0.5, slope};
}

Coordinate moved_inside(Coordinate p, SymInt size, const GridSampling& how) {
  if (how.padding == GridSampling::zeros) return p;
  if (how.padding == GridSampling::reflection) p = reflected(p, size, how.align_corners);
  if (p.slope) p.slope = where(logical_and(gt(p.x, 0.0), lt(p.x, size - 1)), p.slope, 0.0);
  return {clamp(p.x, 0, size - 1), p.slope};
}

Results sampled(const Build& b, size_t space) {
  Tensor image = b["input"], grid = b["grid"];
  b.require(
      image.rank() == space + 2 && grid.rank() == space + 2 && grid.size(-1) == SymInt(static_cast<int64_t>(space)),
      "expected an image and a grid of ", space + 2, " dimensions, the grid's last of size ", space, ", got ",
      image.meta(), " and ", grid.meta());
  b.require(image.dtype() == grid.dtype(), "expected an image and a grid of one dtype, got ", image.meta(), " and ",
            grid.meta());
  GridSampling how(b, space);
  SymInt n = image.size(0), channels = image.size(1);
  Sizes out = {n, channels};
  SymInt places = 1;
  for (size_t d = 0; d < space; ++d) {
    out.push_back(grid.sizes()[1 + d]);
    places = places * grid.sizes()[1 + d];
  }
  Tensor flat =
      reshape(image, Sizes{n, channels, count(Sizes(std::span<const SymInt>(image.sizes().begin() + 2, space)))});
  std::vector<std::vector<GridTap>> all;  // by dimension of the image; the grid names the last one first
  for (size_t d = 0; d < space; ++d) {
    Tensor coordinate = reshape(select(grid, -1, static_cast<int64_t>(space - 1 - d)), Sizes{n, places});
    all.push_back(grid_taps(coordinate, image.sizes()[2 + d], how, false));
  }
  Tensor result;
  std::span<const SymInt> sizes(image.sizes().begin() + 2, space);
  for_each_combination(all, [&](const std::vector<GridTap>& chosen) {
    auto [index, inside] = grid_read(chosen, sizes);
    Tensor weight;
    for (const GridTap& tap : chosen)
      if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
    Tensor value = gather(flat, 2, expand(unsqueeze(index, 1), Sizes{n, channels, places}));
    value = where(unsqueeze(inside, 1), weight ? value * unsqueeze(weight, 1) : value, 0.0);
    result = result ? result + value : value;
  });
  return view(result, out);
}

}  // namespace

std::vector<GridTap> grid_taps(const Tensor& coordinate, SymInt size, const GridSampling& how, bool slopes) {
  Tensor c = coordinate + 1.0;
  SymInt span = how.align_corners ? size - 1 : size;
  Coordinate p{how.align_corners ? mul(c, span) / 2.0 : (mul(c, span) - 1.0) / 2.0, none};
  if (slopes && how.interpolation != GridSampling::nearest) p.slope = mul(ones_like(coordinate), span) / 2.0;
  if (how.interpolation == GridSampling::bicubic) {
    constexpr double a = cubic_parameter;
    Tensor low = floor(p.x), t = p.x - low, before = t + 1.0, after = 1.0 - t, beyond = 2.0 - t;
    std::vector<GridTap> out = {{low - 1.0, cubic_far(before, a), none},
                                {low, cubic_near(t, a), none},
                                {low + 1.0, cubic_near(after, a), none},
                                {low + 2.0, cubic_far(beyond, a), none}};
    if (p.slope) {
      out[0].slope = cubic_far_slope(before, a) * p.slope;
      out[1].slope = cubic_near_slope(t, a) * p.slope;
      out[2].slope = neg(cubic_near_slope(after, a) * p.slope);
      out[3].slope = neg(cubic_far_slope(beyond, a) * p.slope);
    }
    for (GridTap& tap : out) tap.at = round(moved_inside({tap.at, none}, size, how).x);
    return out;
  }
  p = moved_inside(p, size, how);
  if (how.interpolation == GridSampling::nearest) return {{round(p.x), none, none}};
  Tensor low = floor(p.x), t = p.x - low;
  return {{low, 1.0 - t, p.slope ? neg(p.slope) : none}, {low + 1.0, t, p.slope}};
}

GridRead grid_read(const std::vector<GridTap>& taps, std::span<const SymInt> sizes) {
  GridRead out;
  for (size_t d = 0; d < taps.size(); ++d) {
    const Tensor& at = taps[d].at;
    Tensor hit = logical_and(ge(at, 0), lt(at, sizes[d]));
    Tensor place = to(detach(clamp(at, 0, sizes[d] - 1)), DType::i64);
    out.index = out.index ? mul(out.index, sizes[d]) + place : place;
    out.inside = out.inside ? Tensor(logical_and(out.inside, hit)) : hit;
  }
  return out;
}

void register_grid_sample(Registry& ops) {
  ops.add({
      .schema = "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
                "align_corners) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return sampled(b, 2); },
  });
  ops.add({
      .schema = "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
                "align_corners) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return sampled(b, 3); },
  });
  ops.add({
      .schema = "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) "
                "-> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            b.require(b["input"].rank() == 4 || b["input"].rank() == 5, "expected an image of 4 or 5 dimensions, got ",
                      b["input"].meta());
            return sampled(b, b["input"].rank() - 2);
          },
  });
}

}  // namespace tenon
