// Distributions, in terms of uniform, normal and integer draws.
#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/random.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/sorting.h"
#include "tenon/ops/trigonometric.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle bernoulli_p, normal_functional;

namespace {

// Uniform in (0, 1]: what logarithms take.
Tensor positive_uniform_like(const Tensor& x) { return 1.0 - uniform_like(x); }

void check_std(const ArgsView& b, double std) {
  b.require(std >= 0, "std: expected a number that is not negative, got ", std);
}

Tensor normal_about(const Tensor& z, const CallArg& mean, const CallArg& std) { return add(mul(z, std), mean); }

}  // namespace

void register_distributions(Registry& ops) {
  ops.add({
      .schema = "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {
            Tensor p = b["self"];
            b.require(is_floating(p.dtype()), "expected a floating point tensor of probabilities, got ", p.meta());
            return to_copy(lt(draw(random_uniform, p.sizes(), p.dtype()), p), kw("dtype", p.dtype()),
                           kw("memory_format", MemoryFormat::contiguous));
          },
  });
  ops.add(bernoulli_p, {
                           .schema = "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
                           .kind = OpKind::composite,
                           .traits = {.random = true},
                           .decompose =
                               [](Build& b) {
                                 double p = b.number("p");
                                 b.require(p >= 0 && p <= 1, "p: expected a number between 0 and 1, got ", p);
                                 return to_copy(lt(uniform_like(b["self"]), b.arg("p")),
                                                kw("dtype", b["self"].dtype()));
                               },
                       });
  ops.in_place(bernoulli_p,
               "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)");
  ops.add({
      .schema = "bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) { return to_copy(lt(uniform_like(b["self"]), b["p"]), kw("dtype", b["self"].dtype())); },
  });

  ops.add({
      .schema = "normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {
            check_std(b, b.number("std"));
            return one(
                normal_about(draw(random_normal, b["mean"].sizes(), b["mean"].dtype()), b.arg("mean"), b.arg("std")));
          },
  });
  ops.add({
      .schema = "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {
            return one(
                normal_about(draw(random_normal, b["std"].sizes(), b["std"].dtype()), b.arg("mean"), b.arg("std")));
          },
  });
  ops.add({
      .schema = "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {
            Tensor mean = b["mean"], std = b["std"];
            return one(normal_about(draw(random_normal, broadcast(mean.sizes(), std.sizes(), b), mean.dtype()),
                                    b.arg("mean"), b.arg("std")));
          },
  });
  ops.add({
      .schema = "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? "
                "dtype=None, Layout? layout=None, Device? "
                "device=None, bool? pin_memory=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {
            check_std(b, b.number("std"));
            return one(normal_about(draw(random_normal, b.ints("size"), b.dtype("dtype").value_or(DType::f32)),
                                    b.arg("mean"), b.arg("std")));
          },
  });
  ops.add(normal_functional,
          {
              .schema =
                  "normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
              .kind = OpKind::composite,
              .traits = {.random = true},
              .decompose =
                  [](Build& b) {
                    check_std(b, b.number("std"));
                    return one(normal_about(normal_like(b["self"]), b.arg("mean"), b.arg("std")));
                  },
          });
  ops.in_place(normal_functional,
               "normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)");
  ops.add({
      .schema = "uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {
            double from = b.number("from"), to = b.number("to");
            bool complex = is_complex(b["self"].dtype());
            b.require(complex || is_floating(b["self"].dtype()), "expected a floating point or complex tensor, got ",
                      b["self"].meta());
            b.require(from <= to, "expected from <= to, got ", from, " and ", to);
            auto part = [&]() -> Tensor { return uniform_like(b["self"]) * (to - from) + from; };
            if (!complex) return one(part());
            Tensor re = part(), im = part();
            return one(joined({re, im}));
          },
  });
  ops.add({
      .schema = "exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {
            b.require(b.number("lambd") > 0, "lambd: expected a positive number, got ", b.number("lambd"));
            return one(log(positive_uniform_like(b["self"])) * (-1 / b.number("lambd")));
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
      .decompose =
          [](Build& b) {
            return one(tan((uniform_like(b["self"]) - 0.5) * M_PI) * b.number("sigma") + b.number("median"));
          },
  });
  ops.add({
      .schema = "geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {
            double p = b.number("p");
            b.require(p > 0 && p < 1, "p: expected a number between 0 and 1, got ", p);
            return one(to(ceil(log(positive_uniform_like(b["self"])) / std::log1p(-p)), b["self"].dtype()));
          },
  });
  ops.add({
      .schema = "random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {
            CallArg high = b.given("to") ? b.arg("to") : CallArg(INT64_MAX);
            return one(integers_like(b["self"], b.arg("from"), high));
          },
  });
  ops.add({
      .schema = "random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return one(integers_like(b["self"], 0, b.arg("to"))); },
  });
  ops.add({
      .schema = "random(Tensor self, *, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {  // all the integers the dtype holds exactly, from 0 on
            int64_t high = 0;
            switch (b["self"].dtype()) {
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
            return one(integers_like(b["self"], 0, high));
          },
  });

  ops.add({
      // a race: the category whose exponential time comes first wins, with the odds of its weight
      .schema = "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> "
                "Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) -> Results {
        Tensor p = b["self"];
        b.require(is_floating(p.dtype()) && (p.rank() == 1 || p.rank() == 2),
                  "expected a floating point tensor of one or two dimensions, got ", p.meta());
        SymInt samples = b.integer("num_samples"), categories = p.size(-1);
        b.require(!samples.is_int() || samples.as_int() > 0, "num_samples: expected a positive number, got ", samples);
        b.require(b.flag("replacement") || !samples.is_int() || !categories.is_int() ||
                      samples.as_int() <= categories.as_int(),
                  "num_samples: expected at most ", categories, " without replacement, got ", samples);
        DType dtype = p.dtype() == DType::f64 ? DType::f64 : DType::f32;
        Sizes sizes = p.sizes();
        if (b.flag("replacement")) {
          sizes.back() = samples;
          sizes.push_back(categories);
          p = unsqueeze(p, -2);
        }
        Tensor times = clamp_min(-log(1.0 - draw(random_uniform, sizes, dtype)), 1e-30), speed = to(p, dtype) / times;
        return b.flag("replacement") ? argmax(speed, -1) : one(topk(speed, samples, -1)[1]);
      },
  });
}

}  // namespace tenon
