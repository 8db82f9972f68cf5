// PyTorch's random ops in terms of uniform, normal and integer draws: distributions, numbers like a tensor, dropout.
#include <algorithm>
#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/create.h"
#include "tenon/ops/elementwise.h"
#include "tenon/rules/infer.h"
#include "tenon/ops/random.h"
#include "tenon/ops/reduction.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/sorting.h"
#include "tenon/ops/views.h"

namespace tenon {

Handle native_dropout, dropout;

static Handle native_dropout_backward, bernoulli_p, normal_functional;

namespace {

using Draw = std::function<Tensor(const Sizes&)>;

Draw drawing(const Handle& draw, DType dtype) {
  return [&draw, dtype](const Sizes& sizes) -> Tensor {
    int64_t stream = 0;
    Tensor state = ambient_random_state(&stream);
    return draw(state, stream, sizes, kw("dtype", dtype));
  };
}
Draw drawing_ints(CallArg low, CallArg high, DType dtype) {
  return [low, high, dtype](const Sizes& sizes) -> Tensor {
    int64_t stream = 0;
    Tensor state = ambient_random_state(&stream);
    return random_int(state, stream, low, high, sizes, kw("dtype", dtype));
  };
}

// A fresh tensor with these dense strides: drawn in the order of memory, then permuted.
Tensor arranged(const TensorMeta& wanted, const Draw& draw) {
  if (is_contiguous(wanted)) return draw(wanted.sizes);
  std::vector<size_t> order(wanted.rank());   // outermost first
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const SymInt &x = wanted.strides[a], &y = wanted.strides[b];
    return x.is_int() && y.is_int() && x.as_int() > y.as_int();
  });
  Sizes sizes, back(order.size(), SymInt(0));
  for (size_t k = 0; k < order.size(); ++k) {
    sizes.push_back(wanted.sizes[order[k]]);
    back[order[k]] = SymInt(static_cast<int64_t>(k));
  }
  return permute(draw(sizes), back);
}

// What empty_like gives: dense, in x's order.
TensorMeta like_of(const Tensor& x) {
  CallArgs args = {x, {}, {}, {}, {}, {}};
  return *infer(empty_like.op(), args)->values[0].get<TensorMeta>();
}

// The same for rand_like and its kin: their options are empty_like's, from position `at` on.
Results drawn_like(Build& b, size_t at, const std::function<Draw(DType)>& draw) {
  CallArgs args = {b.arg(0), b.arg(at), b.arg(at + 1), b.arg(at + 2), b.arg(at + 3), b.arg(at + 4)};
  TensorMeta wanted = *infer(empty_like.op(), args)->values[0].get<TensorMeta>();
  return one(arranged(wanted, draw(wanted.dtype)));
}

DType drawn_dtype(DType dtype) { return is_floating(dtype) ? dtype : DType::f32; }

Tensor normal_like(const Tensor& x) { return arranged(like_of(x), drawing(random_normal, drawn_dtype(x.dtype()))); }

// Uniform in (0, 1]: what logarithms take.
Tensor positive_uniform_like(const Tensor& x) { return 1.0 - uniform_like(x); }

void check_probability(const ArgsView& b, double p) { b.require(p >= 0 && p <= 1, "p: expected a number between 0 and 1, got ", p); }
void check_std(const ArgsView& b, double std) { b.require(std >= 0, "std: expected a number that is not negative, got ", std); }

Tensor normal_about(const Tensor& z, const CallArg& mean, const CallArg& std) { return add(mul(z, std), mean); }

// Zeros whole channels where `whole` is set; else single elements.
Tensor noise(const Tensor& x, bool whole, double keep) {
  if (!whole) return to(lt(uniform_like(x), keep), x.dtype());
  Sizes sizes(x.rank(), SymInt(1));
  sizes[0] = x.size(0);
  sizes[1] = x.size(1);
  return to(lt(drawing(random_uniform, drawn_dtype(x.dtype()))(sizes), keep), x.dtype());
}

Results dropped(Build& b, bool channels, bool self_normalizing) {
  Tensor x = b[0];
  double p = b.number(1);
  check_probability(b, p);
  if (p == 0 || !b.flag(2) || x.numel() == SymInt(0)) return one(x);
  if (p == 1) return mul(x, zeros_like(x));
  if (channels) b.require(x.rank() >= 2, "expected a tensor with at least two dimensions, got ", x.meta());
  Tensor kept = noise(x, channels, 1 - p);
  if (!self_normalizing) return mul(x, kept / (1 - p));
  constexpr double alpha = 1.7580993408473766;   // -selu(-infinity)
  double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  return add(x * (kept * a), (kept - 1.0) * (alpha * a) + alpha * a * p);
}

}  // namespace

Tensor uniform_like(const Tensor& x) { return arranged(like_of(x), drawing(random_uniform, drawn_dtype(x.dtype()))); }

void register_random_distributions(Registry& ops) {
  ops.add({
      .schema = "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                "memory_format=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return drawn_like(b, 1, [](DType d) { return drawing(random_uniform, d); }); },
  });
  ops.add({
      .schema = "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                "memory_format=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return drawn_like(b, 1, [](DType d) { return drawing(random_normal, d); }); },
  });
  ops.add({
      .schema = "randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
                "MemoryFormat? memory_format=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return drawn_like(b, 2, [&](DType d) { return drawing_ints(0, b.arg("high"), d); }); },
  });
  ops.add({
      .schema = "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
                "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return drawn_like(b, 3, [&](DType d) { return drawing_ints(b.arg("low"), b.arg("high"), d); }); },
  });

  ops.add({
      .schema = "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {
        Tensor p = b["self"];
        b.require(is_floating(p.dtype()), "expected a floating point tensor of probabilities, got ", p.meta());
        return to_copy(lt(drawing(random_uniform, p.dtype())(p.sizes()), p), kw("dtype", p.dtype()), kw("memory_format", MemoryFormat::contiguous));
      },
  });
  ops.add(bernoulli_p, {
      .schema = "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {
        check_probability(b, b.number("p"));
        return to_copy(lt(uniform_like(b["self"]), b.arg("p")), kw("dtype", b["self"].dtype()));
      },
  });
  ops.in_place(bernoulli_p, "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)");
  ops.add({
      .schema = "bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return to_copy(lt(uniform_like(b["self"]), b["p"]), kw("dtype", b["self"].dtype())); },
  });

  ops.add({
      .schema = "normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {
        check_std(b, b.number("std"));
        return one(normal_about(drawing(random_normal, b["mean"].dtype())(b["mean"].sizes()), b.arg("mean"), b.arg("std")));
      },
  });
  ops.add({
      .schema = "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return one(normal_about(drawing(random_normal, b["std"].dtype())(b["std"].sizes()), b.arg("mean"), b.arg("std"))); },
  });
  ops.add({
      .schema = "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {
        Tensor mean = b["mean"], std = b["std"];
        return one(normal_about(drawing(random_normal, mean.dtype())(broadcast(mean.sizes(), std.sizes(), b)), b.arg("mean"), b.arg("std")));
      },
  });
  ops.add({
      .schema = "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? "
                "device=None, bool? pin_memory=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {
        check_std(b, b.number("std"));
        return one(normal_about(drawing(random_normal, b.dtype("dtype").value_or(DType::f32))(b.ints("size")), b.arg("mean"), b.arg("std")));
      },
  });
  ops.add(normal_functional, {
      .schema = "normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {
        check_std(b, b.number("std"));
        return one(normal_about(normal_like(b["self"]), b.arg("mean"), b.arg("std")));
      },
  });
  ops.in_place(normal_functional, "normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)");
  ops.add({
      .schema = "uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {
        double from = b.number("from"), to = b.number("to");
        b.require(from <= to, "expected from <= to, got ", from, " and ", to);
        return one(uniform_like(b["self"]) * (to - from) + from);
      },
  });
  ops.add({
      .schema = "exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {
        b.require(b.number("lambd") > 0, "lambd: expected a positive number, got ", b.number("lambd"));
        return one(Tensor(log(positive_uniform_like(b["self"]))) * (-1 / b.number("lambd")));
      },
  });
  ops.add({
      .schema = "log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return exp(normal_about(normal_like(b["self"]), b.arg("mean"), b.arg("std"))); },
  });
  ops.add({
      .schema = "cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return one(Tensor(tan((uniform_like(b["self"]) - 0.5) * M_PI)) * b.number("sigma") + b.number("median")); },
  });
  ops.add({
      .schema = "geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {
        double p = b.number("p");
        b.require(p > 0 && p < 1, "p: expected a number between 0 and 1, got ", p);
        return one(to(ceil(Tensor(log(positive_uniform_like(b["self"]))) / std::log1p(-p)), b["self"].dtype()));
      },
  });
  ops.add({
      .schema = "random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {
        CallArg high = b.given("to") ? b.arg("to") : CallArg(INT64_MAX);
        return one(arranged(like_of(b["self"]), drawing_ints(b.arg("from"), high, b["self"].dtype())));
      },
  });
  ops.add({
      .schema = "random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return one(arranged(like_of(b["self"]), drawing_ints(0, b.arg("to"), b["self"].dtype()))); },
  });
  ops.add({
      .schema = "random(Tensor self, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) {   // all the integers the dtype holds exactly, from 0 on
        DType dtype = b["self"].dtype();
        int64_t high = 0;
        switch (dtype) {
          case DType::boolean: high = 2; break;
          case DType::u8: high = 256; break;
          case DType::i8: high = 128; break;
          case DType::i16: high = 1 << 15; break;
          case DType::i32: high = int64_t{1} << 31; break;
          case DType::f16: high = (1 << 11) + 1; break;
          case DType::bf16: high = (1 << 8) + 1; break;
          case DType::f32: high = (1 << 24) + 1; break;
          case DType::f64: high = (int64_t{1} << 53) + 1; break;
          default: high = INT64_MAX;
        }
        return one(arranged(like_of(b["self"]), drawing_ints(0, high, dtype)));
      },
  });

  ops.add({   // a race: the category whose exponential time comes first wins, with the odds of its weight
      .schema = "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) -> Results {
        Tensor p = b["self"];
        b.require(is_floating(p.dtype()) && (p.rank() == 1 || p.rank() == 2), "expected a floating point tensor of one or two dimensions, got ", p.meta());
        SymInt samples = b.integer("num_samples"), categories = p.size(-1);
        b.require(!samples.is_int() || samples.as_int() > 0, "num_samples: expected a positive number, got ", samples);
        b.require(b.flag("replacement") || !samples.is_int() || !categories.is_int() || samples.as_int() <= categories.as_int(),
                  "num_samples: expected at most ", categories, " without replacement, got ", samples);
        DType dtype = p.dtype() == DType::f64 ? DType::f64 : DType::f32;
        Sizes sizes = p.sizes();
        if (b.flag("replacement")) {
          sizes.back() = samples;
          sizes.push_back(categories);
          p = unsqueeze(p, -2);
        }
        Tensor times = clamp_min(-Tensor(log(1.0 - drawing(random_uniform, dtype)(sizes))), 1e-30), speed = to(p, dtype) / times;
        return b.flag("replacement") ? argmax(speed, -1) : one(topk(speed, samples, -1)[1]);
      },
  });
  ops.add(native_dropout, {
      .schema = "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) -> Results {
        Tensor x = b["input"];
        double p = b.number("p");
        check_probability(b, p);
        b.require(is_floating(x.dtype()), "expected a floating point tensor, got ", x.meta());
        bool train = !b.given("train") || b.flag("train");
        if (x.numel() == SymInt(0) || !train) return {{CallArg(Tensor(clone(x))), CallArg(Tensor(ones_like(x, kw("dtype", DType::boolean))))}};
        Tensor mask = lt(uniform_like(x), 1 - p);
        return {{CallArg(Tensor(mul(x, mask)) * (p == 1 ? 0 : 1 / (1 - p))), CallArg(mask)}};
      },
      .vjp = {{"input, p, train", [](Vjp& v) -> Grads {
        bool train = !v.given("train") || v.flag("train");
        double p = v.number("p");
        return {native_dropout_backward(v.grad(0), v.out(1), !train ? 1 : p == 1 ? 0 : 1 / (1 - p))};
      }}},
  });
  ops.add(native_dropout_backward, {
      .schema = "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](const Scalars& x) { return x["grad_output"] * cast(x["mask"], x["grad_output"].type()) * x.number("scale"); },
      .vjp = {{"grad_output", [](Vjp& v) { return native_dropout_backward(v.grad(), v["mask"], v.arg("scale")); }}},
      .promote = Promote::int_to_float,
      .promotes = "grad_output",
  });
  ops.add(dropout, {
      .schema = "dropout(Tensor input, float p, bool train) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true, .may_alias = true},
      .decompose = [](Build& b) -> Results {
        check_probability(b, b.number("p"));
        if (b.number("p") == 0 || !b.flag("train") || b["input"].numel() == SymInt(0)) return one(b["input"]);
        return one(native_dropout(b["input"], b.arg("p"), true)[0]);
      },
  });
  ops.add({
      .schema = "feature_dropout(Tensor input, float p, bool train) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true, .may_alias = true},
      .decompose = [](Build& b) { return dropped(b, true, false); },
  });
  ops.add({
      .schema = "alpha_dropout(Tensor input, float p, bool train) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true, .may_alias = true},
      .decompose = [](Build& b) { return dropped(b, false, true); },
  });
  ops.add({
      .schema = "feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true, .may_alias = true},
      .decompose = [](Build& b) { return dropped(b, true, true); },
  });
}

}  // namespace tenon
