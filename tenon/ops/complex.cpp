#include "tenon/ops/complex.h"

#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex_functions.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/trigonometric.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle view_as_real, view_as_complex, real, imag, conjugate, conjugated, angle;

static Handle interleave, build_complex, physically_conjugated;

using loop::Expr;

Complex complex_number(double re, double im) { return {Tensor::number(re), Tensor::number(im)}; }

Complex parts_of(const Tensor& x) {
  if (!is_complex(x.dtype())) return {x, Tensor::number(0.0)};
  return {real(x), imag(x)};
}

namespace {

Complex parts_of_argument(const ArgsView& call, Slot slot) {
  const CallArg& arg = call.arg(slot);
  if (auto* z = arg.get<std::complex<double>>()) return complex_number(z->real(), z->imag());
  if (auto* n = arg.get<SymInt>(); n && !n->is_int())  // a number that the sizes tell
    return {full(Sizes{}, *n, kw("dtype", DType::f64)), Tensor::number(0.0)};
  return parts_of(call.tensor(slot));
}

// A number gets the dtype, too: functions of it are to be as exact as those of tensors.
Tensor in_dtype(const Tensor& x, DType dtype) {
  return x.meta().wrapped_number ? Tensor(full(Sizes{}, scalar_value(x), kw("dtype", dtype))) : to(x, dtype);
}
// The op on real arguments alone: its rule is not to come back to itself.
Results call_real(const Op& op, CallArgs args) {
  if (meets_complex(args))
    fail_unsupported(text("the operator ", op.name(), " of these complex arguments is not supported yet"));
  return call_op(op, std::move(args));
}

// What stands in a slot for a number or a tensor, of the part.
CallArg part_of(const CallArg& arg, bool imaginary) {
  if (auto* z = arg.get<std::complex<double>>()) return imaginary ? z->imag() : z->real();
  if (arg.is_number()) return imaginary ? CallArg(0.0) : arg;
  return map_tensors<Tensor>(arg, [&](const Tensor& t) -> Tensor {
    if (!t) return t;
    if (is_complex(t.dtype())) return imaginary ? imag(t) : real(t);
    return imaginary ? Tensor(zeros_like(t)) : t;
  });
}

}  // namespace

Complex operand(const ArgsView& call, Slot slot) {
  DType dtype = real_of(common_dtype(call, call.op.def->promotes));
  if (!is_floating(dtype)) dtype = DType::f32;
  Complex z = parts_of_argument(call, slot);
  bool no_imaginary = z.im.meta().wrapped_number && scalar_value(z.im) == 0;
  return {in_dtype(z.re, dtype), no_imaginary ? z.im : in_dtype(z.im, dtype)};
}

Tensor joined(const Complex& z) {
  Tensor re = z.re, im = z.im;
  if (re.meta().wrapped_number && im.meta().wrapped_number)
    re = full(Sizes{}, scalar_value(re), kw("dtype", DType::f32));
  if (re.meta().wrapped_number) re = full_like(im, scalar_value(re));
  if (im.meta().wrapped_number) im = full_like(re, scalar_value(im));
  DType dtype = promote(re.dtype(), im.dtype());
  if (!is_floating(dtype)) dtype = DType::f32;
  return view_as_complex(interleave(to(re, dtype), to(im, dtype)));
}

Results by_parts(Build& b, const char* among) {
  Results made[2];
  bool real_result = false;
  for (bool imaginary : {false, true}) {
    CallArgs args;
    for (size_t i = 0; i < b.args.size(); ++i) {
      if (auto* dtype = b.args[i].get<DType>()) {
        real_result = !is_complex(*dtype);
        args.emplace_back(real_of(*dtype));
      } else {
        args.push_back(is_among(b.op.schema.args[i].name, among) ? part_of(b.args[i], imaginary) : b.args[i]);
      }
    }
    made[imaginary] = call_real(b.op, std::move(args));
    if (real_result) return made[0];  // sum(z, dtype=float32)
  }
  Results out;
  for (size_t i = 0; i < made[0].values.size(); ++i) {
    auto* list = made[0].values[i].get<std::vector<Tensor>>();
    if (!list) {
      out.values.emplace_back(joined({made[0][i], made[1][i]}));
      continue;
    }
    std::vector<Tensor> items;
    for (size_t k = 0; k < list->size(); ++k) items.push_back(joined({(*list)[k], made[1].list(i)[k]}));
    out.values.emplace_back(std::move(items));
  }
  return out;
}

Results by_products(Build& b, const char* first, const char* second) {
  Complex x = operand(b, first), y = operand(b, second);
  auto product = [&](const Tensor& a, const Tensor& c) -> Tensor {
    CallArgs args(b.args.begin(), b.args.end());
    args[b.index(first)] = a;
    args[b.index(second)] = c;
    return call_real(b.op, std::move(args));
  };
  if (!is_complex(b.meta(first).dtype)) return one(joined({product(x.re, y.re), product(x.re, y.im)}));
  if (!is_complex(b.meta(second).dtype)) return one(joined({product(x.re, y.re), product(x.im, y.re)}));
  return one(joined({product(x.re, y.re) - product(x.im, y.im), product(x.re, y.im) + product(x.im, y.re)}));
}

Results on_real(Build& b, const Tensor& self) {
  CallArgs args(b.args.begin(), b.args.end());
  args[0] = self;
  for (CallArg& arg : args)
    if (auto* dtype = arg.get<DType>()) arg = real_of(*dtype);
  return call_real(b.op, std::move(args));
}

Results as_real_part(Build& b) {
  CallArgs args(b.args.begin(), b.args.end());
  bool complex_result = true;
  for (CallArg& arg : args)
    if (auto* dtype = arg.get<DType>()) {
      complex_result = is_complex(*dtype);
      arg = real_of(*dtype);
    } else if (auto* x = arg.get<Tensor>(); x && *x && is_complex(x->dtype())) arg = Tensor(real(*x));
  Tensor made = call_real(b.op, std::move(args));
  return one(complex_result ? joined({made, Tensor::number(0.0)}) : made);
}

Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
Complex operator-(const Complex& a) { return {-a.re, -a.im}; }
Complex operator*(const Complex& a, const Complex& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

// Smith's: by the larger part first, so that nothing overflows that need not.
Complex operator/(const Complex& a, const Complex& b) {
  Tensor by_real = ge(abs(b.re), abs(b.im));
  Tensor large = where(by_real, b.re, b.im), small = where(by_real, b.im, b.re);
  Tensor zero = eq(large, 0.0);
  Tensor ratio = small / Tensor(where(zero, ones_like(large), large));
  Tensor scale = reciprocal(large + small * ratio);
  Tensor a_re = in_dtype(a.re, large.dtype()), a_im = in_dtype(a.im, large.dtype());
  Tensor re = where(by_real, a_re, a_im) + Tensor(where(by_real, a_im, a_re)) * ratio;
  Tensor im = where(by_real, a_im - a_re * ratio, a_im * ratio - a_re);
  return {re * scale, im * scale};
}

Tensor is_nonzero(const Complex& z) { return logical_or(ne(z.re, 0.0), ne(z.im, 0.0)); }

Results on_truth(Build& b) { return on_real(b, is_nonzero(parts_of(b["self"]))); }

namespace {

Metas interleaved_meta(MetaCall& m) {
  TensorMeta out = *floating_meta(m).values[0].get<TensorMeta>();
  for (SymInt& stride : out.strides) stride = stride * 2;
  out.sizes.push_back(2);
  out.strides.push_back(1);
  return out;
}

void lower_interleave(Lower& l) {
  Sizes sizes = l.out().sizes();
  sizes.pop_back();
  for (int64_t part : {0, 1})
    l.stage(sizes, [&](const Index& i) {
      Expr value = l[static_cast<size_t>(part)].broadcast_at(i);
      l.store(l.out(), i.inserted(sizes.size(), l.extent(part)), value);
    });
}

Tensor part(const Tensor& x, int64_t which) {
  if (!is_complex(x.dtype())) return x;
  return select(view_as_real(x), -1, which);
}

}  // namespace

void register_complex(Registry& ops) {
  ops.add(view_as_real, {
                            .schema = "view_as_real(Tensor(a) self) -> Tensor(a)",
                            .kind = OpKind::view,
                            .view = [](MetaCall&) { return std::vector{IndexMap{{remap::AsReal()}}}; },
                        });
  ops.add(view_as_complex, {
                               .schema = "view_as_complex(Tensor(a) self) -> Tensor(a)",
                               .kind = OpKind::view,
                               .view = [](MetaCall&) { return std::vector{IndexMap{{remap::AsComplex()}}}; },
                           });
  ops.add(interleave, {
                          // [re, im] in a last dimension: the memory of a complex tensor
                          .schema = "tenon::interleave(Tensor re, Tensor im) -> Tensor",
                          .meta = interleaved_meta,
                          .lower = lower_interleave,
                          .to_torch = [](Build& b) -> Results { return view_as_real(build_complex(b["re"], b["im"])); },
                          .vjp = {{"re", [](Vjp& v) { return select(v.grad(), -1, 0); }},
                                  {"im", [](Vjp& v) { return select(v.grad(), -1, 1); }}},
                      });
  ops.add(build_complex, {
                             .schema = "complex(Tensor real, Tensor imag) -> Tensor",
                             .kind = OpKind::composite,
                             .decompose = [](Build& b) -> Results {
                               b.require(b["real"].dtype() == b["imag"].dtype() && is_floating(b["real"].dtype()),
                                         "expected two tensors of one floating point dtype, got ", b["real"].meta(),
                                         " and ", b["imag"].meta());
                               return one(joined({b["real"], b["imag"]}));
                             },
                         });
  ops.add({
      .schema = "polar(Tensor abs, Tensor angle) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        return one(joined({b["abs"] * Tensor(cos(b["angle"])), b["abs"] * Tensor(sin(b["angle"]))}));
      },
  });
  ops.add(real, {
                    .schema = "real(Tensor(a) self) -> Tensor(a)",
                    .kind = OpKind::composite,
                    .traits = {.may_alias = true},
                    .decompose = [](Build& b) { return one(part(b["self"], 0)); },
                });
  ops.add(imag, {
                    .schema = "imag(Tensor(a) self) -> Tensor(a)",
                    .kind = OpKind::composite,
                    .traits = {.may_alias = true},
                    .decompose = [](Build& b) -> Results {
                      b.require(is_complex(b["self"].dtype()), "expected a tensor of complex numbers, got ",
                                b["self"].meta());
                      return one(part(b["self"], 1));
                    },
                });
  ops.add(conjugate, {
                         // a view in PyTorch, too: what is written through it reaches its base, conjugated
                         .schema = "_conj(Tensor(a) self) -> Tensor(a)",
                         .kind = OpKind::view,
                         .view =
                             [](MetaCall& m) {
                               if (!is_complex(m.meta("self").dtype)) return std::vector{IndexMap()};
                               return std::vector{IndexMap{{remap::Conjugate()}}};
                             },
                         .to_torch = [](Build& b) -> Results { return conjugated(b["self"]); },
                         .complex = [](Build& b) -> Results {
                           Complex z = parts_of(b["self"]);
                           return one(joined({z.re, -z.im}));
                         },
                     });
  ops.add({
      .schema = "conj(Tensor(a) self) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        return is_complex(b["self"].dtype()) ? conjugate(b["self"]) : one(b["self"]);
      },
  });
  ops.add(physically_conjugated, {
                                     .schema = "_conj_physical(Tensor self) -> Tensor",
                                     .kind = OpKind::composite,
                                     .decompose = [](Build& b) -> Results {
                                       Complex z = parts_of(b["self"]);
                                       return one(joined({z.re, -z.im}));
                                     },
                                 });
  ops.add(conjugated, {
                          .schema = "conj_physical(Tensor self) -> Tensor",
                          .kind = OpKind::composite,
                          .traits = {.may_alias = true},
                          .decompose = [](Build& b) -> Results {
                            return is_complex(b["self"].dtype()) ? physically_conjugated(b["self"]) : one(b["self"]);
                          },
                      });
  ops.add({
      .schema = "resolve_conj(Tensor(a) self) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {  // of what is conjugated a tensor of its own, as of all complex ones here
        return is_complex(b["self"].dtype()) ? clone(b["self"]) : one(b["self"]);
      },
  });
  ops.add({
      .schema = "resolve_neg(Tensor(a) self) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return one(b["self"]); },
  });
  ops.add({
      .schema = "isreal(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        if (is_complex(b["self"].dtype())) return eq(imag(b["self"]), 0.0);
        return ones_like(b["self"], kw("dtype", DType::boolean));
      },
  });
  ops.add(angle, {
                     .schema = "angle(Tensor self) -> Tensor",
                     .kind = OpKind::pointwise,
                     .scalar =
                         [](Expr self) {
                           return loop::select(loop::is_nan(self), self, loop::select(self < 0.0, M_PI, self * 0.0));
                         },
                     .vjp = {{"self", [](Vjp& v) { return zeros_like(v.grad()); }}},
                     .promote = Promote::int_to_float,
                     .complex = real_of_one<complex::angle>,
                 });
}

}  // namespace tenon
