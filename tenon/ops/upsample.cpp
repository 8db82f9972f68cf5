// Images of another size: nearest, linear and cubic interpolation, and channels turned into space.
#include <algorithm>

#include "tenon/ops/conversion.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/rules/memory_format.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/view.h"

namespace tenon {
namespace {

using loop::Compute;
using loop::Expr;

enum class Kernel { nearest, nearest_exact, linear, cubic, smooth_linear, smooth_cubic };   // smooth: wider where it shrinks

// One dimension's share of a result element: where it reads and with what weight.
struct Tap {
  Expr at, weight;
};

struct Scale {
  SymInt in = 0, out = 0;
  bool align = false, given = false;
  double factor = 0;  // result size / image size, where given
};

Expr scale_expr(Lower& l, const Scale& s, Compute type) {
  if (s.align) {
    if (s.out == SymInt(1)) return l.constant(0, type);
    return cast(l.extent(s.in - 1), type) / cast(l.extent(s.out - 1), type);
  }
  if (s.given && s.factor > 0) return l.constant(1.0 / s.factor, type);
  return cast(l.extent(s.in), type) / cast(l.extent(s.out), type);
}

std::vector<Tap> taps(Lower& l, Kernel kernel, const Scale& s, Expr i, Compute type) {
  Expr last = l.extent(s.in - 1), zero = l.extent(0), one = l.constant(1, type);
  auto clamped = [&](Expr at) { return min(max(at, zero), last); };
  if (s.in == s.out && kernel != Kernel::cubic) return {{i, one}};
  Expr ratio = scale_expr(l, s, type), x = cast(i, type);
  if (kernel == Kernel::nearest) return {{min(cast(floor(x * ratio), Compute::i64), last), one}};
  if (kernel == Kernel::nearest_exact) return {{min(cast(floor((x + 0.5) * ratio), Compute::i64), last), one}};
  Expr real = s.align ? x * ratio : (x + 0.5) * ratio - 0.5;
  if (kernel == Kernel::linear) {
    if (!s.align) real = max(real, l.constant(0, type));
    Expr low = min(cast(floor(real), Compute::i64), last);
    Expr t = min(max(real - cast(low, type), l.constant(0, type)), one);
    return {{low, one - t}, {min(low + 1, last), t}};
  }
  Expr low = min(cast(floor(real), Compute::i64), last);
  Expr t = min(max(real - cast(low, type), l.constant(0, type)), one);
  constexpr double a = -0.75;  // the cubic's free parameter, as everywhere
  auto near = [&](Expr d) { return ((d * (a + 2) - (a + 3)) * d) * d + 1.0; };
  auto far = [&](Expr d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {{clamped(low - 1), far(t + 1.0)},
          {clamped(low), near(t)},
          {clamped(low + 1), near(one - t)},
          {clamped(low + 2), far(one - t + 1.0)}};
}

std::vector<Scale> scales(const ArgsView& call, const Sizes& in, const Sizes& out, size_t space, bool align,
                          size_t factors_at) {
  std::vector<Scale> s(space);
  for (size_t k = 0; k < space; ++k) {
    size_t d = in.size() - space + k;
    s[k] = {in[d], out[d], align, call.given(factors_at + k), 0};
    if (s[k].given) s[k].factor = call.number(factors_at + k);
  }
  return s;
}

// Calls body(place, weight) for every combination of the dims' taps.
void for_each_tap(const std::vector<std::vector<Tap>>& all, const Index& i,
                  const std::function<void(const Index&, Expr)>& body) {
  size_t space = all.size(), first = i.size() - space, total = 1;
  for (const auto& dim : all) total *= dim.size();
  for (size_t n = 0; n < total; ++n) {
    Index at = i;
    Expr weight;
    size_t rest = n;
    for (size_t k = space; k-- > 0;) {
      const Tap& tap = all[k][rest % all[k].size()];
      rest /= all[k].size();
      at[first + k] = tap.at;
      weight = weight.arena ? tap.weight * weight : tap.weight;
    }
    body(at, weight);
  }
}

// Weights are floating point also for bytes.
Compute weight_type(DType dtype) { return dtype == DType::f64 ? Compute::f64 : Compute::f32; }

bool is_smooth(Kernel kernel) { return kernel == Kernel::smooth_linear || kernel == Kernel::smooth_cubic; }

// A smoothing filter at one place of the result: the image elements first .. end it reads, tap j with weight(j).
struct Filter {
  Expr first, end, ratio, center;
  Kernel kernel = Kernel::smooth_linear;
  Compute type = Compute::f32;

  Filter(Lower& l, Kernel kernel, const Scale& s, Expr i, Compute type) : kernel(kernel), type(type) {
    ratio = scale_expr(l, s, type);
    Expr wide = max(ratio, l.constant(1, type)), support = wide * (kernel == Kernel::smooth_linear ? 1.0 : 2.0);
    center = ratio * (cast(i, type) + 0.5);
    first = max(cast(center - support + 0.5, Compute::i64), l.extent(0));
    end = min(cast(center + support + 0.5, Compute::i64), l.extent(s.in));
    ratio = wide;
  }
  Expr weight(Lower& l, Expr j) const {
    Expr d = loop::abs((cast(first + j, type) - center + 0.5) / ratio), zero = l.constant(0, type);
    constexpr double a = -0.5;   // where images are smoothed, the cubic has this parameter
    Expr value = kernel == Kernel::smooth_linear
                     ? max(1.0 - d, zero)
                     : loop::select(d < 1.0, ((d * (a + 2) - (a + 3)) * d) * d + 1.0, loop::select(d < 2.0, ((d * a - 5 * a) * d + 8 * a) * d - 4 * a, zero));
    return loop::select(first + j < end, value, zero);
  }
};

// How many elements a filter reads at most.
SymInt filter_width(Kernel kernel, const Scale& s) {
  int64_t reach = kernel == Kernel::smooth_linear ? 1 : 2;
  SymInt shrinks = 1;
  if (s.align) {
    SymInt steps = s.out.is_int() && s.out.as_int() <= 1 ? SymInt(1) : s.out - 1;
    shrinks = sym::floor_div(s.in + steps - 1, steps) + 1;
  } else if (s.given && s.factor > 0) shrinks = s.factor >= 1 ? SymInt(1) : SymInt(static_cast<int64_t>(std::min(1 / s.factor + 1, 1e9)));
  else shrinks = sym::floor_div(s.in + s.out - 1, s.out) + 1;
  return smaller(shrinks * (2 * reach) + 1, s.in);
}

// One dimension after the other, the last one first; bytes are rounded each time.
void lower_smoothed(Lower& l, Kernel kernel) {
  Ref x = l[0], out = l.out();
  Compute type = weight_type(x.dtype());
  std::vector<Scale> s = scales(l, x.sizes(), out.sizes(), 2, l.flag(2), 3);
  Sizes half = x.sizes();
  half[3] = out.size(3);
  bool bytes = loop::compute_of(x.dtype()) == Compute::i64;
  Ref between = l.temporary(bytes ? x.dtype() : computable(x.dtype()), half);
  auto pass = [&](Ref from, Ref to, size_t dim) {
    const Scale& scale = s[dim - 2];
    l.tensor(to, [&](const Index& i) {
      Filter f(l, kernel, scale, i[dim], type);
      Sizes taps = {filter_width(kernel, scale)};
      Expr total = l.sum(taps, [&](const Index& j) { return f.weight(l, j[0]); });
      Expr zero = l.constant(0, loop::compute_of(from.dtype()));
      Expr value = l.sum(taps, [&](const Index& j) {
        return cast(from.at_if(f.first + j[0] < f.end, i.with(dim, f.first + j[0]), zero), type) * f.weight(l, j[0]);
      }) / total;
      return bytes ? min(max(floor(value + 0.5), l.constant(0, type)), l.constant(255, type)) : value;
    });
  };
  pass(x, between, 3);
  pass(between, out, 2);
}

void lower_smoothed_backward(Lower& l, Kernel kernel) {
  Ref grad = l[0], out = l.out();
  DType compute = computable(out.dtype());
  Compute type = loop::compute_of(compute);
  std::vector<Scale> s = scales(l, out.sizes(), grad.sizes(), 2, l.flag(3), 4);
  Sizes half = grad.sizes();
  half[3] = out.size(3);
  Ref between = l.temporary(compute, half), target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  auto pass = [&](Ref from, Ref to, size_t dim) {
    const Scale& scale = s[dim - 2];
    SymInt width = filter_width(kernel, scale);
    Ref totals = l.temporary(compute, {from.size(dim)}, [&](const Index& i) {
      Filter f(l, kernel, scale, i[0], type);
      return l.sum({width}, [&](const Index& j) { return f.weight(l, j[0]); });
    });
    l.fill(to, l.constant(0, type));
    Sizes domain = from.sizes();
    domain.push_back(width);
    l.stage(domain, [&](const Index& i) {
      Index at = i.drop_last();
      Filter f(l, kernel, scale, at[dim], type);
      Expr place = f.first + i.last();
      l.store_if(place < f.end, to, at.with(dim, place), cast(from.at(at), type) * f.weight(l, i.last()) / totals.at({at[dim]}), loop::Mode::add);
    });
  };
  pass(grad, between, 3);
  pass(between, target, 2);
  if (target.id != out.id) l.copy(target, out);
}

void lower_resize(Lower& l, Kernel kernel, size_t space, bool has_align) {
  if (is_smooth(kernel)) return lower_smoothed(l, kernel);
  Ref x = l[0];
  Compute type = weight_type(x.dtype());
  std::vector<Scale> s = scales(l, x.sizes(), l.out().sizes(), space, has_align && l.flag(2), has_align ? 3 : 2);
  l.tensor([&](const Index& i) {
    std::vector<std::vector<Tap>> all;
    for (size_t k = 0; k < space; ++k) all.push_back(taps(l, kernel, s[k], i[i.size() - space + k], type));
    Expr total;
    if (kernel == Kernel::nearest || kernel == Kernel::nearest_exact) {
      for_each_tap(all, i, [&](const Index& at, Expr) { total = x.at(at); });
      return total;
    }
    for_each_tap(all, i, [&](const Index& at, Expr weight) {
      Expr term = cast(x.at(at), type) * weight;
      total = total.arena ? total + term : term;
    });
    return loop::compute_of(x.dtype()) == Compute::i64 ? floor(total + 0.5) : total;
  });
}

void lower_resize_backward(Lower& l, Kernel kernel, size_t space, bool has_align) {
  if (is_smooth(kernel)) return lower_smoothed_backward(l, kernel);
  Ref grad = l[0], out = l.out();
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  Compute type = loop::compute_of(compute);
  l.fill(target, l.constant(0, type));
  std::vector<Scale> s = scales(l, out.sizes(), grad.sizes(), space, has_align && l.flag(3), has_align ? 4 : 3);
  l.stage(Sizes(grad.sizes()), [&](const Index& i) {
    std::vector<std::vector<Tap>> all;
    for (size_t k = 0; k < space; ++k) all.push_back(taps(l, kernel, s[k], i[i.size() - space + k], type));
    for_each_tap(all, i, [&](const Index& at, Expr weight) {
      l.store(target, at, cast(grad.at(i), type) * weight, loop::Mode::add);
    });
  });
  if (target.id != out.id) l.copy(target, out);
}

Metas resized_meta(MetaCall& m, size_t space) {
  const TensorMeta& x = m.meta(0);
  m.require(x.rank() == space + 2, "expected an input of ", space + 2, " dimensions, got ", x);
  Sizes sizes = x.sizes, wanted = m.ints(1, space);
  for (size_t k = 0; k < space; ++k) {
    m.require(!wanted[k].is_int() || wanted[k].as_int() > 0, "expected positive sizes, got ", wanted);
    m.require(!(x.sizes[2 + k] == SymInt(0)), "dimension ", 2 + k, " of ", x, " is empty");
    sizes[2 + k] = wanted[k];
  }
  return formatted_like(x, sizes);
}

// The .vec forms: sizes, or factors of the sizes there are.
Results resized(Build& b, const Handle& op, size_t space, bool has_align) {
  Tensor x = b[0];
  b.require(x.rank() == space + 2, "expected an input of ", space + 2, " dimensions, got ", x.meta());
  size_t factors_at = has_align ? 3 : 2;
  b.require(b.given(1) != b.given(factors_at), "expected either output_size or scale_factors");
  Sizes sizes;
  CallArg factors[3];
  if (b.given(1)) sizes = b.ints(1, space);
  else {
    auto* list = b.arg(factors_at).get<std::vector<double>>();
    b.require(list && list->size() == space, "scale_factors: expected ", space, " numbers, got ",
              describe(b.arg(factors_at)));
    for (size_t k = 0; k < space; ++k) {
      double f = (*list)[k];
      SymInt size = x.sizes()[2 + k];
      if (size.is_int()) sizes.push_back(static_cast<int64_t>(static_cast<double>(size.as_int()) * f));
      else if (f == static_cast<double>(static_cast<int64_t>(f))) sizes.push_back(size * static_cast<int64_t>(f));
      else sizes.push_back(sym::trunc(sym::to_float(size) * SymInt::real(f)));
      factors[k] = f;
    }
  }
  CallArgs args = {x, sizes};
  if (has_align) args.push_back(b.arg(2));
  for (size_t k = 0; k < space; ++k) args.push_back(factors[k]);
  return call_op(op.op(), std::move(args));
}

Sizes leading(const Tensor& x, size_t drop) {
  return Sizes(std::span<const SymInt>(x.sizes().begin(), x.rank() - drop));
}

// Blocks of r * r channels become r * r pixels.
Results shuffled(Build& b) {
  Tensor x = b[0];
  int64_t r = b.constant(1);
  b.require(x.rank() >= 3, "expected at least 3 dimensions, got ", x.meta());
  b.require(r > 0, "upscale_factor: expected a positive number, got ", r);
  SymInt c = x.size(-3), h = x.size(-2), w = x.size(-1);
  int64_t square = sym::checked_mul(r, r);
  b.require(!c.is_int() || c.as_int() % square == 0, "the channels must be a multiple of ", square, ", got ", x.meta());
  Sizes split = leading(x, 3), out = split, order;
  auto n = static_cast<int64_t>(split.size());
  for (SymInt s : {sym::floor_div(c, square), SymInt(r), SymInt(r), h, w}) split.push_back(s);
  for (int64_t i = 0; i < n; ++i) order.push_back(i);
  for (int64_t d : {0, 3, 1, 4, 2}) order.push_back(n + d);
  for (SymInt s : {sym::floor_div(c, square), h * r, w * r}) out.push_back(s);
  return reshape(clone(permute(reshape(x, split), order), MemoryFormat::contiguous), out);
}

Results unshuffled(Build& b) {
  Tensor x = b[0];
  int64_t r = b.constant(1);
  b.require(x.rank() >= 3, "expected at least 3 dimensions, got ", x.meta());
  b.require(r > 0, "downscale_factor: expected a positive number, got ", r);
  SymInt c = x.size(-3), h = x.size(-2), w = x.size(-1);
  bool fits = (!h.is_int() || h.as_int() % r == 0) && (!w.is_int() || w.as_int() % r == 0);
  b.require(fits, "height and width must be multiples of ", r, ", got ", x.meta());
  Sizes split = leading(x, 3), out = split, order;
  auto n = static_cast<int64_t>(split.size());
  SymInt oh = sym::floor_div(h, r), ow = sym::floor_div(w, r);
  for (SymInt s : {c, oh, SymInt(r), ow, SymInt(r)}) split.push_back(s);
  for (int64_t i = 0; i < n; ++i) order.push_back(i);
  for (int64_t d : {0, 2, 4, 1, 3}) order.push_back(n + d);
  for (SymInt s : {c * (r * r), oh, ow}) out.push_back(s);
  return reshape(clone(permute(reshape(x, split), order), MemoryFormat::contiguous), out);
}

Results channels_shuffled(Build& b) {
  Tensor x = b[0];
  SymInt groups = b.integer(1);
  b.require(x.rank() >= 3, "expected at least 3 dimensions, got ", x.meta());
  SymInt c = x.sizes()[1];
  b.require(!c.is_int() || !groups.is_int() || (groups.as_int() > 0 && c.as_int() % groups.as_int() == 0),
            "the channels of ", x.meta(), " must be a multiple of ", groups);
  Sizes split = {x.sizes()[0], groups, sym::floor_div(c, groups)};
  for (size_t d = 2; d < x.rank(); ++d) split.push_back(x.sizes()[d]);
  return view(clone(transpose(reshape(x, split), 1, 2), MemoryFormat::contiguous), x.sizes());
}

}  // namespace

void register_upsample(Registry& ops) {
#define TENON_RESIZE_WITH(name, n, pair, factors, kernel, align_arg, has_align)                                     \
  {                                                                                                                 \
    static Handle forward, backward;                                                                                \
    ops.add(forward, {.schema = name "(Tensor self, SymInt[" #n "] output_size" align_arg factors ") -> Tensor",    \
                      .meta = [](MetaCall& m) { return resized_meta(m, n); },                                       \
                      .lower = [](Lower& l) { lower_resize(l, kernel, n, has_align); },                             \
                      .vjp = {{"self", [](Vjp& v) {                                                                 \
                        CallArgs args = {v.grad(), v.ints("output_size", n), v["self"].sizes()};                                    \
                        for (size_t i = 2; i < v.args.size(); ++i) args.push_back(v.arg(i));                        \
                        return call_op(backward.op(), std::move(args));                                             \
                      }}}});                                                                                          \
    ops.add(backward, {.schema = name "_backward(Tensor grad_output, SymInt[" #n "] output_size, SymInt[" #pair     \
                                      "] input_size" align_arg factors ") -> Tensor",                               \
                       .meta = [](MetaCall& m) -> Metas { return formatted_like(m.meta(0), m.ints(2)); },           \
                       .lower = [](Lower& l) { lower_resize_backward(l, kernel, n, has_align); },                   \
                       .vjp = {{"grad_output", [](Vjp& v) {                                                         \
                         CallArgs args = {v.grad(), v.ints("output_size", n)};                                                 \
                         for (size_t i = 3; i < v.args.size(); ++i) args.push_back(v.arg(i));                       \
                         return call_op(forward.op(), std::move(args));                                             \
                       }}}});                                                                                         \
    ops.add(                                                                                                        \
        {.schema = name ".vec(Tensor input, SymInt[]? output_size" align_arg ", float[]? scale_factors) -> Tensor", \
         .kind = OpKind::composite,                                                                                   \
         .decompose = [](Build& b) { return resized(b, forward, n, has_align); }});                                 \
  }
#define TENON_RESIZE(name, n, pair, factors, kernel) TENON_RESIZE_WITH(name, n, pair, factors, kernel, "", false)
#define TENON_RESIZE_ALIGNED(name, n, pair, factors, kernel) \
  TENON_RESIZE_WITH(name, n, pair, factors, kernel, ", bool align_corners", true)
#define TENON_FACTORS1 ", float? scales=None"
#define TENON_FACTORS2 ", float? scales_h=None, float? scales_w=None"
#define TENON_FACTORS3 ", float? scales_d=None, float? scales_h=None, float? scales_w=None"
  TENON_RESIZE("upsample_nearest1d", 1, 3, TENON_FACTORS1, Kernel::nearest)
  TENON_RESIZE("upsample_nearest2d", 2, 4, TENON_FACTORS2, Kernel::nearest)
  TENON_RESIZE("upsample_nearest3d", 3, 5, TENON_FACTORS3, Kernel::nearest)
  TENON_RESIZE("_upsample_nearest_exact1d", 1, 3, TENON_FACTORS1, Kernel::nearest_exact)
  TENON_RESIZE("_upsample_nearest_exact2d", 2, 4, TENON_FACTORS2, Kernel::nearest_exact)
  TENON_RESIZE("_upsample_nearest_exact3d", 3, 5, TENON_FACTORS3, Kernel::nearest_exact)
  TENON_RESIZE_ALIGNED("upsample_linear1d", 1, 3, TENON_FACTORS1, Kernel::linear)
  TENON_RESIZE_ALIGNED("upsample_bilinear2d", 2, 4, TENON_FACTORS2, Kernel::linear)
  TENON_RESIZE_ALIGNED("upsample_trilinear3d", 3, 5, TENON_FACTORS3, Kernel::linear)
  TENON_RESIZE_ALIGNED("upsample_bicubic2d", 2, 4, TENON_FACTORS2, Kernel::cubic)
  TENON_RESIZE_ALIGNED("_upsample_bilinear2d_aa", 2, 4, TENON_FACTORS2, Kernel::smooth_linear)
  TENON_RESIZE_ALIGNED("_upsample_bicubic2d_aa", 2, 4, TENON_FACTORS2, Kernel::smooth_cubic)
#undef TENON_RESIZE
#undef TENON_RESIZE_ALIGNED
#undef TENON_RESIZE_WITH
#undef TENON_FACTORS1
#undef TENON_FACTORS2
#undef TENON_FACTORS3
  ops.add({
      .schema = "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
      .kind = OpKind::composite,
      .decompose = shuffled,
  });
  ops.add({
      .schema = "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
      .kind = OpKind::composite,
      .decompose = unshuffled,
  });
  ops.add({
      .schema = "channel_shuffle(Tensor self, SymInt groups) -> Tensor",
      .kind = OpKind::composite,
      .decompose = channels_shuffled,
  });
}

}  // namespace tenon
