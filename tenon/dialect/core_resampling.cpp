// Images at other sizes, as PyTorch's decomposition table writes them: places, then reads by index, then weights.
#include <array>
#include <unordered_map>

#include "tenon/dialect/parts.h"
#include "tenon/dialect/rules.h"

namespace tenon::dialect {
namespace {

/// What one spatial dimension becomes: the size it has, the one it gets and the ratio that a caller named.
struct Axis {
  int64_t from = 0, to = 0;
  double scale = 0;  // 0: none is named

  double step(bool align_corners) const {
    if (align_corners) return to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0.0;
    return ratio();
  }
  double ratio() const { return scale > 0 ? 1.0 / scale : static_cast<double>(from) / static_cast<double>(to); }
};

// The last dimensions of an image; nothing where a size is not known, or numbers are not of full precision.
std::vector<Axis> axes_of(Build& b, const Tensor& x, std::initializer_list<const char*> scales) {
  if (!is_static(x) || !is_full_float(x)) return {};
  Sizes to = b.ints("output_size");
  size_t spatial = to.size();
  std::vector<Axis> axes;
  for (size_t d = 0; d < spatial; ++d) {
    if (!to[d].is_int()) return {};
    const char* name = scales.begin()[d];
    axes.push_back({x.sizes()[x.rank() - spatial + d].as_int(), to[d].as_int(), b.given(name) ? b.number(name) : 0.0});
  }
  return axes;
}

std::vector<Tensor> places_list(const std::vector<Tensor>& places) {
  std::vector<Tensor> list(2);
  list.insert(list.end(), places.begin(), places.end());
  return list;
}

Tensor as_floats(const Tensor& x, const Tensor& like) { return aten("_to_copy", x, kw("dtype", like.dtype())); }
Tensor as_integers(const Tensor& x) { return aten("_to_copy", x, kw("dtype", DType::i64)); }

Tensor source_of(const Axis& axis, const Tensor& numbers, bool align_corners) {
  if (align_corners) return aten("mul.Tensor", numbers, axis.step(true));
  Tensor scaled = aten("mul.Tensor", aten("add.Tensor", numbers, 0.5), axis.step(false));
  return aten("sub.Tensor", scaled, 0.5);
}

Results nearest(Build& b, std::initializer_list<const char*> scales, double shift) {
  Tensor x = b["self"];
  std::vector<Axis> axes = axes_of(b, x, scales);
  if (axes.empty()) return {};
  std::vector<Tensor> places;
  for (size_t d = 0; d < axes.size(); ++d) {
    Tensor numbers = aten("arange.start_step", 0, axes[d].to, kw("dtype", DType::f32), layout(), device(x), unpinned());
    Tensor scaled = aten("mul.Tensor", aten("add.Tensor", numbers, shift), axes[d].ratio());
    Tensor place = as_integers(scaled);
    for (size_t behind = d + 1; behind < axes.size(); ++behind) place = aten("unsqueeze", place, -1);
    places.push_back(place);
  }
  return aten("index.Tensor", x, places_list(places));
}

Results linear(Build& b, std::initializer_list<const char*> scales) {
  Tensor x = b["self"];
  std::vector<Axis> axes = axes_of(b, x, scales);
  if (axes.empty()) return {};
  size_t n = axes.size();
  bool align = b.flag("align_corners");
  struct Along {
    Tensor place, low, high;
  };
  std::vector<Along> along;
  for (size_t d = 0; d < n; ++d) {
    Tensor source = source_of(axes[d], as_floats(range_of(axes[d].to, x), x), align);
    Sizes sizes(n - d, SymInt(1));
    sizes[0] = axes[d].to;
    Tensor place = aten("view", aten("clamp", source, 0.0), sizes);
    Tensor low = as_integers(place);
    Tensor high = aten("clamp", aten("add.Tensor", low, 1), CallArg(), axes[d].from - 1);
    along.push_back({place, low, high});
  }
  std::vector<Tensor> corners;  // the last dimension changes fastest
  for (size_t corner = 0; corner < size_t{1} << n; ++corner) {
    std::vector<Tensor> places;
    for (size_t d = 0; d < n; ++d) places.push_back(corner >> (n - 1 - d) & 1 ? along[d].high : along[d].low);
    corners.push_back(aten("index.Tensor", x, places_list(places)));
  }
  for (size_t d = n; d-- > 0;) {
    Tensor weight = aten("clamp", aten("sub.Tensor", along[d].place, along[d].low), 0.0, 1.0);
    std::vector<Tensor> fewer;
    for (size_t i = 0; i < corners.size(); i += 2) {
      Tensor way = aten("mul.Tensor", aten("sub.Tensor", corners[i + 1], corners[i]), weight);
      fewer.push_back(aten("add.Tensor", corners[i], way));
    }
    corners = std::move(fewer);
  }
  return one(corners[0]);
}

// The four weights of a place between the second and the third of four points.
std::array<Tensor, 4> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  auto pair = [](const Tensor& first, const Tensor& second) {
    return Tensor(aten("stack", std::vector{first, second}));
  };
  Tensor near = pair(t, aten("sub.Tensor", 1.0, t));
  Tensor beyond = aten("add.Tensor", t, 1.0);
  Tensor far = pair(beyond, aten("sub.Tensor", 2.0, t));
  Tensor outer = aten("sub.Tensor", aten("mul.Tensor", far, a), 5.0 * a);
  outer = aten("add.Tensor", aten("mul.Tensor", outer, far), 8.0 * a);
  outer = aten("sub.Tensor", aten("mul.Tensor", outer, far), 4.0 * a);
  Tensor inner = aten("sub.Tensor", aten("mul.Tensor", near, a + 2.0), a + 3.0);
  inner = aten("mul.Tensor", aten("mul.Tensor", inner, near), near);
  inner = aten("add.Tensor", inner, 1);
  std::vector<Tensor> outside = aten("unbind.int", outer).list();
  std::vector<Tensor> inside = aten("unbind.int", inner).list();
  return {outside[0], inside[0], inside[1], outside[1]};
}

Tensor weighted(const std::array<Tensor, 4>& points, const std::array<Tensor, 4>& weights) {
  Tensor sum = aten("mul.Tensor", points[0], weights[0]);
  for (size_t i = 1; i < 4; ++i) sum = aten("add.Tensor", sum, aten("mul.Tensor", points[i], weights[i]));
  return sum;
}

Results trilinear(Build& b) { return linear(b, {"scales_d", "scales_h", "scales_w"}); }

Results cubic(Build& b) {
  Tensor x = b["self"];
  std::vector<Axis> axes = axes_of(b, x, {"scales_h", "scales_w"});
  if (axes.empty()) return {};
  bool align = b.flag("align_corners");
  Tensor rows = as_floats(range_of(axes[0].to, x), x), columns = as_floats(range_of(axes[1].to, x), x);
  Tensor across = source_of(axes[1], columns, align);
  Tensor down = aten("unsqueeze", source_of(axes[0], rows, align), -1);
  Tensor left = aten("floor", across), top = aten("floor", down);
  Tensor below = aten("clamp", aten("sub.Tensor", down, top), 0.0, 1.0);
  Tensor behind = aten("clamp", aten("sub.Tensor", across, left), 0.0, 1.0);
  Tensor column = as_integers(left), row = as_integers(top);
  auto around = [](const Tensor& at) {
    Tensor before = aten("sub.Tensor", at, 1), next = aten("add.Tensor", at, 1), last = aten("add.Tensor", at, 2);
    return std::array<Tensor, 4>{before, at, next, last};
  };
  std::array<Tensor, 4> ys = around(row), xs = around(column);
  std::array<Tensor, 4> x_weights = cubic_weights(behind), y_weights = cubic_weights(below), lines;
  for (size_t i = 0; i < 4; ++i) {
    std::array<Tensor, 4> points;
    for (size_t j = 0; j < 4; ++j) {
      Tensor y = aten("clamp", ys[i], 0, axes[0].from - 1), at = aten("clamp", xs[j], 0, axes[1].from - 1);
      points[j] = aten("index.Tensor", x, places_list({y, at}));
    }
    lines[i] = weighted(points, x_weights);
  }
  return one(weighted(lines, y_weights));
}

// The form with a list of ratios as the one with a size and a ratio for each dimension, of which PyTorch has no entry.
Results by_ratios(Build& b, std::string_view op, size_t spatial, Rule rule) {
  Tensor x = b["input"];
  auto* ratios = b.arg("scale_factors").get<std::vector<double>>();
  CallArgs args = {CallArg(x), CallArg(), b.arg("align_corners")};
  Sizes to;
  for (size_t d = 0; d < spatial; ++d) {
    SymInt size = x.sizes()[x.rank() - spatial + d];
    if (!ratios) to = b.ints("output_size");
    else if (size.is_int()) to.push_back(static_cast<int64_t>(static_cast<double>(size.as_int()) * (*ratios)[d]));
    else return {};
    args.push_back(ratios ? CallArg((*ratios)[d]) : CallArg());
  }
  args[1] = to;
  Build plain(aten_op(op), args);
  return rule(plain);
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::upsample_nearest1d", [](Build& b) { return nearest(b, {"scales"}, 0.0); }},
      {"aten::upsample_nearest3d",
       [](Build& b) {
         return nearest(b, {"scales_d", "scales_h", "scales_w"}, 0.0);
       }},
      {"aten::_upsample_nearest_exact1d", [](Build& b) { return nearest(b, {"scales"}, 0.5); }},
      {"aten::_upsample_nearest_exact2d",
       [](Build& b) {
         return nearest(b, {"scales_h", "scales_w"}, 0.5);
       }},
      {"aten::_upsample_nearest_exact3d",
       [](Build& b) {
         return nearest(b, {"scales_d", "scales_h", "scales_w"}, 0.5);
       }},
      {"aten::upsample_linear1d", [](Build& b) { return linear(b, {"scales"}); }},
      {"aten::upsample_trilinear3d.vec", [](Build& b) { return by_ratios(b, "upsample_trilinear3d", 3, trilinear); }},
      {"aten::upsample_bicubic2d.vec", [](Build& b) { return by_ratios(b, "upsample_bicubic2d", 2, cubic); }},
  };
  return all;
}

}  // namespace

Rule resampling_rule(std::string_view op) {
  auto at = rules().find(op);
  return at == rules().end() ? nullptr : at->second;
}

}  // namespace tenon::dialect
