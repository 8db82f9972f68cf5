// Images read at places a grid names: coordinates from -1 to 1 over each dimension of space.
#include <algorithm>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/where.h"
#include "tenon/ops/index.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/view.h"

namespace tenon {
namespace {

enum Interpolation { bilinear, nearest, bicubic };
enum Padding { zeros_outside, border, reflection };

// Mirrored at both ends, as often as it takes.
Tensor reflected(const Tensor& x, SymInt size, bool align) {
  if (align && size == SymInt(1)) return x * 0.0;
  SymInt span = align ? size - 1 : size;
  Tensor from = abs(align ? x : x + 0.5);
  Tensor turns = floor(div(from, span)), extra = from - Tensor(mul(turns, span));
  Tensor odd = ne(turns - Tensor(floor(turns / 2.0)) * 2.0, 0.0);
  Tensor inside = where(odd, Tensor(add(neg(extra), span)), extra);
  return align ? inside : inside - 0.5;
}

Tensor moved_inside(Tensor x, SymInt size, int64_t padding, bool align) {
  if (padding == zeros_outside) return x;
  if (padding == reflection) x = reflected(x, size, align);
  return clamp(x, 0, size - 1);
}

// One dimension's places and weights.
struct Tap {
  Tensor at, weight;  // at is whole but of the grid's dtype; a weight of none is 1
};

std::vector<Tap> taps(const Tensor& coordinate, SymInt size, int64_t mode, int64_t padding, bool align) {
  Tensor c = coordinate + 1.0;
  Tensor x = align ? Tensor(mul(c, size - 1)) / 2.0 : (Tensor(mul(c, size)) - 1.0) / 2.0;
  if (mode == bicubic) {
    Tensor low = floor(x), t = x - low;
    constexpr double a = -0.75;
    auto near = [&](const Tensor& d) { return (d * (a + 2) - (a + 3)) * d * d + 1.0; };
    auto far = [&](const Tensor& d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
    std::vector<Tap> out = {
        {low - 1.0, far(t + 1.0)}, {low, near(t)}, {low + 1.0, near(1.0 - t)}, {low + 2.0, far(2.0 - t)}};
    for (Tap& tap : out) tap.at = round(moved_inside(tap.at, size, padding, align));
    return out;
  }
  x = moved_inside(x, size, padding, align);
  if (mode == nearest) return {{round(x), none}};
  Tensor low = floor(x), t = x - low;
  return {{low, 1.0 - t}, {low + 1.0, t}};
}

Results sampled(Build& b, size_t space) {
  Tensor image = b[0], grid = b[1];
  int64_t mode = b.constant(2), padding = b.constant(3);
  bool align = b.flag(4);
  b.require(
      image.rank() == space + 2 && grid.rank() == space + 2 && grid.size(-1) == SymInt(static_cast<int64_t>(space)),
      "expected an image and a grid of ", space + 2, " dimensions, the grid's last of size ", space, ", got ",
      image.meta(), " and ", grid.meta());
  b.require(image.dtype() == grid.dtype(), "expected an image and a grid of one dtype, got ", image.meta(), " and ",
            grid.meta());
  b.require(mode >= 0 && mode <= (space == 2 ? 2 : 1) && padding >= 0 && padding <= 2, "unknown modes: interpolation ",
            mode, ", padding ", padding);
  SymInt n = image.size(0), channels = image.size(1);
  Sizes out = {n, channels};
  SymInt places = 1;
  for (size_t d = 0; d < space; ++d) {
    out.push_back(grid.sizes()[1 + d]);
    places = places * grid.sizes()[1 + d];
  }
  Tensor flat =
      reshape(image, Sizes{n, channels, count(Sizes(std::span<const SymInt>(image.sizes().begin() + 2, space)))});
  std::vector<std::vector<Tap>> all(space);  // by dimension of the image; the grid names the last one first
  size_t total = 1;
  for (size_t d = 0; d < space; ++d) {
    Tensor coordinate = reshape(select(grid, -1, static_cast<int64_t>(space - 1 - d)), Sizes{n, places});
    all[d] = taps(coordinate, image.sizes()[2 + d], mode, padding, align);
    total *= all[d].size();
  }
  Tensor result;
  for (size_t k = 0; k < total; ++k) {
    Tensor weight, inside, index;
    size_t rest = k;
    for (size_t d = 0; d < space; ++d) {
      const Tap& tap = all[d][rest % all[d].size()];
      rest /= all[d].size();
      SymInt size = image.sizes()[2 + d];
      Tensor hit = logical_and(ge(tap.at, 0), lt(tap.at, size)),
             at = to(detach(clamp(tap.at, 0, size - 1)), DType::i64);
      index = index ? Tensor(mul(index, size)) + at : at;
      inside = inside ? Tensor(logical_and(inside, hit)) : hit;
      if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
    }
    Tensor value = gather(flat, 2, expand(unsqueeze(index, 1), Sizes{n, channels, places}));
    value = where(unsqueeze(inside, 1), weight ? value * Tensor(unsqueeze(weight, 1)) : value, 0.0);
    result = result ? result + value : value;
  }
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
