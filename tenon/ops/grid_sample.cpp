#include "tenon/ops/grid_sample.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
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

// Mirrored at both ends, as often as it takes.
Tensor reflected(const Tensor& x, SymInt size, bool align) {
  if (align && size == SymInt(1)) return x * 0.0;
  SymInt span = align ? size - 1 : size;
  Tensor from = abs(align ? x : x + 0.5);
  Tensor turns = floor(div(from, span)), extra = from - mul(turns, span);
  Tensor odd = ne(turns - floor(turns / 2.0) * 2.0, 0.0);
  Tensor inside = where(odd, add(neg(extra), span), extra);
  return align ? inside : inside - 0.5;
}

Tensor moved_inside(Tensor x, SymInt size, const GridSampling& how) {
  if (how.padding == GridSampling::zeros) return x;
  if (how.padding == GridSampling::reflection) x = reflected(x, size, how.align_corners);
  return clamp(x, 0, size - 1);
}

// One dimension's places and weights.
struct Tap {
  Tensor at, weight;  // at is whole but of the grid's dtype; a weight of none is 1
};

std::vector<Tap> taps(const Tensor& coordinate, SymInt size, const GridSampling& how) {
  Tensor c = coordinate + 1.0;
  Tensor x = how.align_corners ? mul(c, size - 1) / 2.0 : (mul(c, size) - 1.0) / 2.0;
  if (how.interpolation == GridSampling::bicubic) {
    Tensor low = floor(x), t = x - low;
    auto near = [](const Tensor& d) { return cubic_near(d, cubic_parameter); };
    auto far = [](const Tensor& d) { return cubic_far(d, cubic_parameter); };
    std::vector<Tap> out = {
        {low - 1.0, far(t + 1.0)}, {low, near(t)}, {low + 1.0, near(1.0 - t)}, {low + 2.0, far(2.0 - t)}};
    for (Tap& tap : out) tap.at = round(moved_inside(tap.at, size, how));
    return out;
  }
  x = moved_inside(x, size, how);
  if (how.interpolation == GridSampling::nearest) return {{round(x), none}};
  Tensor low = floor(x), t = x - low;
  return {{low, 1.0 - t}, {low + 1.0, t}};
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
  std::vector<std::vector<Tap>> all;  // by dimension of the image; the grid names the last one first
  for (size_t d = 0; d < space; ++d) {
    Tensor coordinate = reshape(select(grid, -1, static_cast<int64_t>(space - 1 - d)), Sizes{n, places});
    all.push_back(taps(coordinate, image.sizes()[2 + d], how));
  }
  Tensor result;
  for_each_combination(all, [&](const std::vector<Tap>& chosen) {
    Tensor weight, inside, index;
    for (size_t d = 0; d < space; ++d) {
      const Tap& tap = chosen[d];
      SymInt size = image.sizes()[2 + d];
      Tensor hit = logical_and(ge(tap.at, 0), lt(tap.at, size));
      Tensor at = to(detach(clamp(tap.at, 0, size - 1)), DType::i64);
      index = index ? mul(index, size) + at : at;
      inside = inside ? Tensor(logical_and(inside, hit)) : hit;
      if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
    }
    Tensor value = gather(flat, 2, expand(unsqueeze(index, 1), Sizes{n, channels, places}));
    value = where(unsqueeze(inside, 1), weight ? value * unsqueeze(weight, 1) : value, 0.0);
    result = result ? result + value : value;
  });
  return view(result, out);
}

}  // namespace

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
