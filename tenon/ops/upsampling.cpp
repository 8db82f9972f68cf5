// Images of another size by nearest, linear and cubic interpolation.
#include <algorithm>

#include "tenon/ops/interpolation.h"
#include "tenon/rules/memory_format.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {
namespace {

using loop::Compute;
using loop::Expr;

// An antialiasing kernel is wider where the image shrinks.
enum class Kernel { nearest, nearest_exact, linear, cubic, antialias_linear, antialias_cubic };

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
  auto near = [](Expr d) { return cubic_near(d, cubic_parameter); };
  auto far = [](Expr d) { return cubic_far(d, cubic_parameter); };
  return {{clamped(low - 1), far(t + 1.0)},
          {clamped(low), near(t)},
          {clamped(low + 1), near(one - t)},
          {clamped(low + 2), far(one - t + 1.0)}};
}

bool aligns_corners(const ArgsView& call) {
  return call.op.schema.find("align_corners") >= 0 && call.flag("align_corners");
}

std::vector<Scale> scales(const ArgsView& call, const Sizes& in, const Sizes& out, size_t space) {
  constexpr const char *of_row[] = {"scales"}, *of_volume[] = {"scales_d", "scales_h", "scales_w"};
  std::vector<Scale> s(space);
  for (size_t k = 0; k < space; ++k) {
    size_t d = in.size() - space + k;
    const char* factor = space == 1 ? of_row[k] : of_volume[3 - space + k];
    s[k] = {in[d], out[d], aligns_corners(call), call.given(factor), 0};
    if (s[k].given) s[k].factor = call.number(factor);
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

bool is_antialias(Kernel kernel) { return kernel == Kernel::antialias_linear || kernel == Kernel::antialias_cubic; }

// A smoothing filter at one place of the result: the image elements first .. end it reads, tap j with weight(j).
struct Filter {
  Expr first, end, ratio, center;
  Kernel kernel = Kernel::antialias_linear;
  Compute type = Compute::f32;

  Filter(Lower& l, Kernel kernel, const Scale& s, Expr i, Compute type) : kernel(kernel), type(type) {
    ratio = scale_expr(l, s, type);
    Expr wide = max(ratio, l.constant(1, type)), support = wide * (kernel == Kernel::antialias_linear ? 1.0 : 2.0);
    center = ratio * (cast(i, type) + 0.5);
    first = max(cast(center - support + 0.5, Compute::i64), l.extent(0));
    end = min(cast(center + support + 0.5, Compute::i64), l.extent(s.in));
    ratio = wide;
  }
  Expr weight(Lower& l, Expr j) const {
    Expr d = loop::abs((cast(first + j, type) - center + 0.5) / ratio), zero = l.constant(0, type);
    Expr value;
    if (kernel == Kernel::antialias_linear) value = max(1.0 - d, zero);
    else {
      constexpr double a = cubic_parameter_antialias;
      value = loop::select(d < 1.0, cubic_near(d, a), loop::select(d < 2.0, cubic_far(d, a), zero));
    }
    return loop::select(first + j < end, value, zero);
  }
};

// How many elements a filter reads at most.
SymInt filter_width(Kernel kernel, const Scale& s) {
  int64_t reach = kernel == Kernel::antialias_linear ? 1 : 2;
  SymInt shrinks = 1;
  if (s.align) {
    SymInt steps = s.out.is_int() && s.out.as_int() <= 1 ? SymInt(1) : s.out - 1;
    shrinks = sym::floor_div(s.in + steps - 1, steps) + 1;
  } else if (s.given && s.factor > 0)
    shrinks = s.factor >= 1 ? SymInt(1) : SymInt(static_cast<int64_t>(std::min(1 / s.factor + 1, 1e9)));
  else shrinks = sym::floor_div(s.in + s.out - 1, s.out) + 1;
  return smaller(shrinks * (2 * reach) + 1, s.in);
}

// One dimension after the other, the last one first; bytes are rounded each time.
void lower_antialias(Lower& l, Kernel kernel) {
  Ref x = l["self"], out = l.out();
  Compute type = weight_type(x.dtype());
  std::vector<Scale> s = scales(l, x.sizes(), out.sizes(), 2);
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

void lower_antialias_backward(Lower& l, Kernel kernel) {
  Ref grad = l["grad_output"], out = l.out();
  DType compute = computable(out.dtype());
  Compute type = loop::compute_of(compute);
  std::vector<Scale> s = scales(l, out.sizes(), grad.sizes(), 2);
  Sizes half = grad.sizes();
  half[3] = out.size(3);
  Ref between = l.temporary(compute, half),
      target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
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
      l.store_if(place < f.end, to, at.with(dim, place),
                 cast(from.at(at), type) * f.weight(l, i.last()) / totals.at({at[dim]}), loop::Mode::add);
    });
  };
  pass(grad, between, 3);
  pass(between, target, 2);
  if (target.id != out.id) l.copy(target, out);
}

void lower_resize(Lower& l, Kernel kernel, size_t space) {
  if (is_antialias(kernel)) return lower_antialias(l, kernel);
  Ref x = l["self"];
  Compute type = weight_type(x.dtype());
  std::vector<Scale> s = scales(l, x.sizes(), l.out().sizes(), space);
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

void lower_resize_backward(Lower& l, Kernel kernel, size_t space) {
  if (is_antialias(kernel)) return lower_antialias_backward(l, kernel);
  Ref grad = l["grad_output"], out = l.out();
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  Compute type = loop::compute_of(compute);
  l.fill(target, l.constant(0, type));
  std::vector<Scale> s = scales(l, out.sizes(), grad.sizes(), space);
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
  const TensorMeta& x = m.meta("self");
  m.require(x.rank() == space + 2, "expected an input of ", space + 2, " dimensions, got ", x);
  Sizes sizes = x.sizes, wanted = m.ints("output_size", space);
  for (size_t k = 0; k < space; ++k) {
    m.require(!wanted[k].is_int() || wanted[k].as_int() > 0, "expected positive sizes, got ", wanted);
    m.require(!(x.sizes[2 + k] == SymInt(0)), "dimension ", 2 + k, " of ", x, " is empty");
    sizes[2 + k] = wanted[k];
  }
  return formatted_like(x, sizes);
}

Metas resize_gradient_meta(MetaCall& m, size_t space) {
  const TensorMeta& grad = m.meta("grad_output");
  Sizes wanted = m.ints("output_size", space), input = m.ints("input_size");
  m.require(input.size() == space + 2, "input_size: expected ", space + 2, " sizes, got ", input);
  for (size_t d = 2; d < input.size(); ++d)
    m.require(!statically_true(sym::le(input[d], 0)), "input_size: expected an image with elements, got ", input);
  bool fits = grad.rank() == space + 2;
  for (size_t d = 0; fits && d < space + 2; ++d)
    fits = !statically_true(sym::ne(grad.sizes[d], d < 2 ? input[d] : wanted[d - 2]));
  m.require(fits, "grad_output: expected ", space + 2, " dimensions, batch and channels of ", input, " and then ",
            wanted, ", got ", grad);
  return formatted_like(grad, input);
}

// The .vec forms: sizes, or factors of the sizes there are.
Results upsampled(const Build& b, const Handle& op, size_t space) {
  Tensor x = b["input"];
  b.require(x.rank() == space + 2, "expected an input of ", space + 2, " dimensions, got ", x.meta());
  b.require(b.given("output_size") != b.given("scale_factors"), "expected either output_size or scale_factors");
  Sizes sizes;
  CallArg factors[3];
  if (b.given("output_size")) sizes = b.ints("output_size", space);
  else {
    auto* list = b.arg("scale_factors").get<std::vector<double>>();
    b.require(list && list->size() == space, "scale_factors: expected ", space, " numbers, got ",
              describe(b.arg("scale_factors")));
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
  if (b.op.schema.find("align_corners") >= 0) args.push_back(b.arg("align_corners"));
  for (size_t k = 0; k < space; ++k) args.push_back(factors[k]);
  return call_op(op.op(), std::move(args));
}

struct ResizeSchemas {
  const char *forward, *backward, *vec;
};

// What comes after `arg` in a call: whether corners are aligned, and factors.
void append_after(CallArgs& args, const ArgsView& call, const char* arg) {
  for (size_t i = call.index(arg) + 1; i < call.args.size(); ++i) args.push_back(call.arg(i));
}

template <Kernel kernel, size_t space>
void add_resize(Registry& ops, const ResizeSchemas& schemas) {
  static Handle forward, backward;
  ops.add(forward, {
                       .schema = schemas.forward,
                       .meta = [](MetaCall& m) { return resized_meta(m, space); },
                       .lower = [](Lower& l) { lower_resize(l, kernel, space); },
                       .vjp = {{"self",
                                [](Vjp& v) {
                                  CallArgs args = {v.grad(), v.ints("output_size", space), v["self"].sizes()};
                                  append_after(args, v, "output_size");
                                  return call_op(backward.op(), std::move(args));
                                }}},
                   });
  ops.add(backward, {
                        .schema = schemas.backward,
                        .meta = [](MetaCall& m) { return resize_gradient_meta(m, space); },
                        .lower = [](Lower& l) { lower_resize_backward(l, kernel, space); },
                        .vjp = {{"grad_output",
                                 [](Vjp& v) {
                                   CallArgs args = {v.grad(), v.ints("output_size", space)};
                                   append_after(args, v, "input_size");
                                   return call_op(forward.op(), std::move(args));
                                 }}},
                    });
  ops.add({
      .schema = schemas.vec,
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return upsampled(b, forward, space); },
  });
}

}  // namespace

// The schemas of one resizing operator over `space` dimensions; `rank` is space + 2.
#define TENON_RESIZE(name, space, rank, align, factors)                                             \
  {                                                                                                 \
    name "(Tensor self, SymInt[" #space "] output_size" align factors ") -> Tensor",                \
        name "_backward(Tensor grad_output, SymInt[" #space "] output_size, SymInt[" #rank          \
             "] input_size" align factors ") -> Tensor",                                            \
        name ".vec(Tensor input, SymInt[]? output_size" align ", float[]? scale_factors) -> Tensor" \
  }
#define TENON_ALIGN ", bool align_corners"
#define TENON_FACTORS1 ", float? scales=None"
#define TENON_FACTORS2 ", float? scales_h=None, float? scales_w=None"
#define TENON_FACTORS3 ", float? scales_d=None, float? scales_h=None, float? scales_w=None"

void register_upsampling(Registry& ops) {
  add_resize<Kernel::nearest, 1>(ops, TENON_RESIZE("upsample_nearest1d", 1, 3, "", TENON_FACTORS1));
  add_resize<Kernel::nearest, 2>(ops, TENON_RESIZE("upsample_nearest2d", 2, 4, "", TENON_FACTORS2));
  add_resize<Kernel::nearest, 3>(ops, TENON_RESIZE("upsample_nearest3d", 3, 5, "", TENON_FACTORS3));
  add_resize<Kernel::nearest_exact, 1>(ops, TENON_RESIZE("_upsample_nearest_exact1d", 1, 3, "", TENON_FACTORS1));
  add_resize<Kernel::nearest_exact, 2>(ops, TENON_RESIZE("_upsample_nearest_exact2d", 2, 4, "", TENON_FACTORS2));
  add_resize<Kernel::nearest_exact, 3>(ops, TENON_RESIZE("_upsample_nearest_exact3d", 3, 5, "", TENON_FACTORS3));
  add_resize<Kernel::linear, 1>(ops, TENON_RESIZE("upsample_linear1d", 1, 3, TENON_ALIGN, TENON_FACTORS1));
  add_resize<Kernel::linear, 2>(ops, TENON_RESIZE("upsample_bilinear2d", 2, 4, TENON_ALIGN, TENON_FACTORS2));
  add_resize<Kernel::linear, 3>(ops, TENON_RESIZE("upsample_trilinear3d", 3, 5, TENON_ALIGN, TENON_FACTORS3));
  add_resize<Kernel::cubic, 2>(ops, TENON_RESIZE("upsample_bicubic2d", 2, 4, TENON_ALIGN, TENON_FACTORS2));
  add_resize<Kernel::antialias_linear, 2>(ops,
                                          TENON_RESIZE("_upsample_bilinear2d_aa", 2, 4, TENON_ALIGN, TENON_FACTORS2));
  add_resize<Kernel::antialias_cubic, 2>(ops,
                                         TENON_RESIZE("_upsample_bicubic2d_aa", 2, 4, TENON_ALIGN, TENON_FACTORS2));
}

#undef TENON_RESIZE
#undef TENON_ALIGN
#undef TENON_FACTORS1
#undef TENON_FACTORS2
#undef TENON_FACTORS3

}  // namespace tenon
