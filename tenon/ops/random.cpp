#include "tenon/ops/random.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "tenon/ops/complex.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle random_uniform, random_normal, random_int, random_permutation;

static Handle random_key, rand, randn, randint, randperm;

namespace {

using loop::Compute;
using loop::Expr;

std::atomic<int64_t> process_seed = 0, process_counter = 0;

// 32 random bits, as i64. A run of a program has its counter, the draws in it are streams.
struct Bits {
  Lower& l;
  Expr seed, stream;
  Expr position;
  explicit Bits(Lower& l, const Index& at, const Sizes& sizes) : l(l) {
    seed = l["state"].at({Expr(0)});
    stream = l["state"].at({Expr(1)}) * int64_t{1 << 24} + l.extent(l.integer("stream"));
    position = l.constant(0, Compute::i64);
    for (size_t d = 0; d < at.size(); ++d) position = position * l.extent(sizes[d]) + at[d];
  }
  // The k-th of n words of an element.
  Expr word(int64_t k, int64_t n) const { return call(loop::Fn::random_bits, seed, stream, position * n + k); }
};

Expr shifted_right(Expr x, int64_t by) { return call(loop::Fn::shift_right, x, by); }

// Uniform in [0, 1): as many bits as the dtype holds exactly, so that 1 is never met by rounding. Word k of n (of 2n
// for f64).
Expr unit(const Bits& bits, DType dtype, int64_t k, int64_t n) {
  if (dtype == DType::f64) {
    Expr high = shifted_right(bits.word(2 * k, 2 * n), 5), low = shifted_right(bits.word(2 * k + 1, 2 * n), 6);
    return cast(high * int64_t{1 << 26} + low, Compute::f64) * 0x1p-53;
  }
  int64_t kept = dtype == DType::f16 ? 11 : dtype == DType::bf16 ? 8 : 24;
  return cast(shifted_right(bits.word(k, n), 32 - kept), Compute::f32) * std::ldexp(1.0, static_cast<int>(-kept));
}

TensorMeta drawn_meta(MetaCall& m, Sizes sizes) {
  const TensorMeta& state = m.meta("state");
  m.require(state.dtype == DType::i64 && state.sizes == Sizes{2}, "state: expected i64[2], got ", state);
  return make_meta(*m.dtype("dtype"), std::move(sizes), state.device);
}

Metas drawn_floating(MetaCall& m) {
  m.require(is_floating(*m.dtype("dtype")), "expected a floating point dtype, got ", *m.dtype("dtype"));
  return drawn_meta(m, m.ints("size"));
}

Tensor draw_integers(const CallArg& low, const CallArg& high, const CallArg& sizes, DType dtype) {
  int64_t stream = 0;
  Tensor state = ambient_random_state(&stream);
  return random_int(state, stream, low, high, sizes, kw("dtype", dtype));
}

using Draw = std::function<Tensor(const Sizes&)>;

Draw drawing(const Handle& distribution, DType dtype) {
  return [&distribution, dtype](const Sizes& sizes) { return draw(distribution, sizes, dtype); };
}
Draw drawing_integers(const CallArg& low, const CallArg& high, DType dtype) {
  return [low, high, dtype](const Sizes& sizes) { return draw_integers(low, high, sizes, dtype); };
}

// A fresh tensor with these dense strides: drawn in the order of memory, then permuted.
Tensor arranged(const TensorMeta& wanted, const Draw& draw) {
  if (is_contiguous(wanted)) return draw(wanted.sizes);
  std::vector<size_t> order(wanted.rank());  // outermost first
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
  Tensor part = is_complex(x.dtype()) ? Tensor(real(x)) : x;
  return *infer(empty_like.op(), CallArgs{part, {}, {}, {}, {}, {}})->values[0].get<TensorMeta>();
}

// The same for rand_like and the like, whose options are empty_like's.
Results drawn_like(Build& b, const std::function<Draw(DType)>& draw) {
  CallArgs args = {b.arg("self"),   b.arg("dtype"),      b.arg("layout"),
                   b.arg("device"), b.arg("pin_memory"), b.arg("memory_format")};
  DType dtype = b.dtype("dtype").value_or(b.meta("self").dtype);
  if (is_complex(b.meta("self").dtype)) args[0] = Tensor(real(b["self"]));
  args[1] = real_of(dtype);
  TensorMeta wanted = *infer(empty_like.op(), args)->values[0].get<TensorMeta>();
  auto part = [&] { return arranged(wanted, draw(wanted.dtype)); };
  if (!is_complex(dtype)) return one(part());
  Tensor re = part(), im = part();
  return one(joined({re, im}));
}

DType drawn_dtype(DType dtype) { return is_floating(dtype) ? dtype : is_complex(dtype) ? real_of(dtype) : DType::f32; }

// Numbers of this dtype; complex ones of two draws.
Tensor drawn(Build& b, const Handle& distribution) {
  DType dtype = b.dtype("dtype").value_or(DType::f32);
  if (!is_complex(dtype)) return draw(distribution, b.ints("size"), dtype);
  Tensor re = draw(distribution, b.ints("size"), real_of(dtype)),
         im = draw(distribution, b.ints("size"), real_of(dtype));
  return joined({re, im});
}
// Complex normal numbers have variance 1 as a whole.
Tensor of_unit_variance(const Tensor& x) { return is_complex(x.dtype()) ? x * M_SQRT1_2 : x; }

}  // namespace

Tensor ambient_random_state(int64_t* stream) {
  RandomScope* current = context().random;
  if (!current) {
    *stream = 0;
    return random_state(process_seed, process_counter++);
  }
  *stream = current->next_++;
  return current->state_();
}

void seed_random(int64_t seed) {
  process_seed = seed;
  process_counter = 0;
}

Tensor random_state(int64_t seed, int64_t counter) { return random_key(seed, counter); }

Tensor draw(const Handle& distribution, const Sizes& sizes, DType dtype) {
  int64_t stream = 0;
  Tensor state = ambient_random_state(&stream);
  return distribution(state, stream, sizes, kw("dtype", dtype));
}
Tensor drawn_states(Sizes leading) {
  leading.push_back(2);
  return draw_integers(0, int64_t{1} << 62, leading, DType::i64);
}
Tensor uniform_like(const Tensor& x) { return arranged(like_of(x), drawing(random_uniform, drawn_dtype(x.dtype()))); }
Tensor normal_like(const Tensor& x) {
  auto part = [&] { return arranged(like_of(x), drawing(random_normal, drawn_dtype(x.dtype()))); };
  if (!is_complex(x.dtype())) return part();
  Tensor re = part(), im = part();
  return of_unit_variance(joined({re, im}));
}
Tensor integers_like(const Tensor& x, const CallArg& low, const CallArg& high) {
  return arranged(like_of(x), drawing_integers(low, high, x.dtype()));
}

void register_random(Registry& ops) {
  ops.add(random_key,
          {
              // an op, so that a state can also be part of a graph
              .schema = "tenon::random_key(int seed, int counter) -> Tensor",
              .meta = [](MetaCall&) -> Metas { return make_meta(DType::i64, {2}); },
              .lower =
                  [](Lower& l) {
                    l.tensor([&](const Index& i) {
                      return loop::select(i[0] == 0, l.extent(l.integer("seed")), l.extent(l.integer("counter")));
                    });
                  },
              .to_torch = [](Build& b) -> Results {  // the draws from it have a generator of their own there
                return full(Sizes{2}, b.arg("seed"), kw("dtype", DType::i64));
              },
          });
  ops.add(random_uniform,
          {
              .schema = "tenon::random_uniform(Tensor state, int stream, SymInt[] size, *, ScalarType dtype) -> Tensor",
              .meta = drawn_floating,
              .lower =
                  [](Lower& l) {
                    l.tensor([&](const Index& i) { return unit(Bits(l, i, l.out().sizes()), l.out().dtype(), 0, 1); });
                  },
              .to_torch = [](Build& b) { return rand(b.arg("size"), kw("dtype", b.arg("dtype"))); },
          });
  ops.add(random_normal,
          {
              .schema = "tenon::random_normal(Tensor state, int stream, SymInt[] size, *, ScalarType dtype) -> Tensor",
              .meta = drawn_floating,
              .lower =
                  [](Lower& l) {
                    l.tensor([&](const Index& i) {  // Box and Muller, one of the pair
                      Bits bits(l, i, l.out().sizes());
                      DType dtype = l.out().dtype() == DType::f64 ? DType::f64 : DType::f32;
                      return loop::sqrt(loop::log(1.0 - unit(bits, dtype, 0, 2)) * -2.0) *
                             loop::cos(unit(bits, dtype, 1, 2) * (2 * M_PI));
                    });
                  },
              .to_torch = [](Build& b) { return randn(b.arg("size"), kw("dtype", b.arg("dtype"))); },
          });
  ops.add(
      random_int,
      {
          .schema = "tenon::random_int(Tensor state, int stream, SymInt low, SymInt high, SymInt[] size, *, ScalarType "
                    "dtype) -> Tensor",
          .meta = [](MetaCall& m) -> Metas {
            SymInt low = m.integer("low"), high = m.integer("high");
            m.require(!low.is_int() || !high.is_int() || low.as_int() < high.as_int(), "expected low < high, got ", low,
                      " and ", high);
            return drawn_meta(m, m.ints("size"));
          },
          .lower =
              [](Lower& l) {
                l.tensor([&](const Index& i) {
                  Bits bits(l, i, l.out().sizes());
                  Expr wide = shifted_right(bits.word(0, 2), 1) * (int64_t{1} << 32) + bits.word(1, 2);  // 63 bits
                  Expr low = l.extent(l.integer("low")),
                       value = low + call(loop::Fn::remainder, wide, l.extent(l.integer("high")) - low);
                  return l.out().dtype() == DType::boolean ? value != 0 : value;
                });
              },
          .to_torch =
              [](Build& b) { return randint(b.arg("low"), b.arg("high"), b.arg("size"), kw("dtype", b.arg("dtype"))); },
      });
  ops.add(random_permutation,
          {
              .schema = "tenon::random_permutation(Tensor state, int stream, SymInt n, *, ScalarType dtype) -> Tensor",
              .meta = [](MetaCall& m) -> Metas {
                m.require(!m.integer("n").is_int() || m.integer("n").as_int() >= 0,
                          "n: expected a number that is not negative, got ", m.integer("n"));
                return drawn_meta(m, {m.integer("n")});
              },
              .lower =
                  [](Lower& l) {  // the order of random keys
                    Sizes sizes = l.out().sizes();
                    Ref keys = l.temporary(DType::i64, sizes, [&](const Index& i) {
                      Bits bits(l, i, sizes);
                      return shifted_right(bits.word(0, 2), 1) * (int64_t{1} << 32) + bits.word(1, 2);
                    });
                    Ref sorted = l.temporary(DType::i64, sizes), order = l.temporary(DType::i64, sizes);
                    l.anchor(loop::Sort{.in = keys.operand(),
                                        .values = sorted.operand(),
                                        .indices = order.operand(),
                                        .dim = 0,
                                        .descending = false});
                    l.copy(order, l.out());
                  },
              .to_torch = [](Build& b) { return randperm(b.arg("n"), kw("dtype", b.arg("dtype"))); },
          });

  ops.add(rand, {
                    .schema = "rand(SymInt[] size, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
                    .kind = OpKind::composite,
                    .traits = {.random = true},
                    .decompose = [](Build& b) -> Results { return one(drawn(b, random_uniform)); },
                });
  ops.add(randn, {
                     .schema = "randn(SymInt[] size, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
                     .kind = OpKind::composite,
                     .traits = {.random = true},
                     .decompose = [](Build& b) -> Results { return one(of_unit_variance(drawn(b, random_normal))); },
                 });
  ops.add({
      .schema = "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, "
                "bool? pin_memory=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return randint(0, b.arg("high"), b.arg("size"), kw("dtype", b.arg("dtype"))); },
  });
  ops.add(randint, {
                       .schema = "randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? "
                                 "layout=None, Device? device=None, bool? "
                                 "pin_memory=None) -> Tensor",
                       .kind = OpKind::composite,
                       .traits = {.random = true},
                       .decompose =
                           [](Build& b) {
                             return one(draw_integers(b.arg("low"), b.arg("high"), b.arg("size"),
                                                      b.dtype("dtype").value_or(DType::i64)));
                           },
                   });
  ops.add(randperm, {
                        .schema = "randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? "
                                  "device=None, bool? pin_memory=None) -> Tensor",
                        .kind = OpKind::composite,
                        .traits = {.random = true},
                        .decompose =
                            [](Build& b) {
                              int64_t stream = 0;
                              Tensor state = ambient_random_state(&stream);
                              return random_permutation(state, stream, b.arg("n"),
                                                        kw("dtype", b.dtype("dtype").value_or(DType::i64)));
                            },
                    });
  ops.add({
      .schema = "rand_like(Tensor self, *, " TENON_TENSOR_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) { return drawn_like(b, [](DType d) { return drawing(random_uniform, d); }); },
  });
  ops.add({
      .schema = "randn_like(Tensor self, *, " TENON_TENSOR_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) -> Results {
        return one(of_unit_variance(drawn_like(b, [](DType d) { return drawing(random_normal, d); })[0]));
      },
  });
  ops.add({
      .schema = "randint_like(Tensor self, SymInt high, *, " TENON_TENSOR_OPTIONS
                ", MemoryFormat? memory_format=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) { return drawn_like(b, [&](DType d) { return drawing_integers(0, b.arg("high"), d); }); },
  });
  ops.add({
      .schema = "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, " TENON_TENSOR_OPTIONS
                ", MemoryFormat? memory_format=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose =
          [](Build& b) {
            return drawn_like(b, [&](DType d) { return drawing_integers(b.arg("low"), b.arg("high"), d); });
          },
  });
}

}  // namespace tenon
