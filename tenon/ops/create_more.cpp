// Tensors from nothing, continued: with given strides, like a tensor in all but sizes, identity, evenly spaced, windows.
#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/create.h"
#include "tenon/rules/registry.h"

// What every factory takes at the end.
#define TENON_OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

namespace tenon {

Handle eye;

Handle linspace, new_zeros, new_full;

namespace {

// The same for x.new_zeros: what is not given comes from x, never the strides.
TensorMeta new_meta(const ArgsView& m, size_t at) {
  const TensorMeta& x = m.meta(0);
  TensorMeta out = factory_meta(m, m.ints(1), x.dtype, at);
  if (!m.given(at + 2)) out.device = x.device;
  return out;
}

Sizes checked_strides(const ArgsView& m, size_t size, size_t stride) {
  Sizes strides = m.ints(stride);
  m.require(strides.size() == m.ints(size).size(), "stride: expected one number per dimension of ", m.ints(size), ", got ", strides);
  return strides;
}

void lower_eye(Lower& l) {
  l.tensor([&](const Index& i) { return cast(i[0] == i[1], loop::compute_of(l.out().dtype())); });
}

// Steps evenly spaced numbers between two; counted from the nearer end, so that both are met.
Metas spaced_meta(MetaCall& m, size_t options) {
  int64_t steps = m.constant(2);
  m.require(steps >= 0, "steps: expected a number that is not negative, got ", steps);
  DType dtype = DType::f32;
  for (size_t i : {0, 1}) {
    if (!m.is_tensor(i)) continue;
    m.require(m.meta(i).rank() == 0, m.op.schema.args[i].name, ": expected a tensor without dimensions, got ", m.meta(i));
    if (m.meta(i).dtype == DType::f64) dtype = DType::f64;
  }
  return factory_meta(m, {SymInt(steps)}, dtype, options);
}

void lower_spaced(Lower& l, bool powers) {
  int64_t steps = l.constant(2);
  DType dtype = l.out().dtype();
  loop::Compute type = loop::compute_of(dtype);
  bool whole = type == loop::Compute::i64;
  // Whole numbers start and end as such, the steps between them are real.
  loop::Compute step_type = whole ? (powers ? loop::Compute::f32 : loop::Compute::f64) : type;
  auto rounded = [&](loop::Expr e) { return whole ? e : round_to(e, dtype); };
  l.tensor([&](const Index& i) -> loop::Expr {
    auto end_point = [&](size_t k) { return cast(whole ? cast(l.scalar(k, loop::Compute::f64), type) : l.scalar(k, type), step_type); };
    loop::Expr start = end_point(0), end = end_point(1), value = start;
    if (steps > 1) {
      loop::Expr step = rounded((end - start) / static_cast<double>(steps - 1)), k = cast(i[0], step_type);
      value = select(i[0] < steps / 2, start + rounded(step * k), end - rounded(step * (static_cast<double>(steps - 1) - k)));
    }
    if (!powers) return value;
    return pow(l.constant(l.number(3), loop::Compute::f64), cast(rounded(value), loop::Compute::f64));
  });
}

// A window of cosines: the sum of weight[k] * cos(k * angle); a periodic one is a longer one without its last number.
Tensor cosine_window(Build& b, bool periodic, std::initializer_list<double> weights, size_t options) {
  int64_t n = b.constant(0);
  b.require(n >= 0, "window_length: expected a number that is not negative, got ", n);
  DType dtype = b.dtype(options).value_or(DType::f32);
  b.require(is_floating(dtype), "expected a floating point dtype, got ", dtype);
  if (n <= 1) return full(Sizes{SymInt(n)}, 1, kw("dtype", dtype));
  Tensor angle = Tensor(arange(0, n, 1, kw("dtype", dtype))) * (2 * M_PI / static_cast<double>(periodic ? n : n - 1)), window;
  double k = 0;
  for (double weight : weights) {
    if (k > 0) {
      Tensor term = Tensor(cos(k == 1 ? angle : angle * k)) * weight;
      window = window ? window + term : term;
    }
    ++k;
  }
  return window + *weights.begin();
}

}  // namespace

void register_create_more(Registry& ops) {
  ops.add(new_zeros, {
      .schema = "new_zeros(Tensor self, SymInt[] size, *, " TENON_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return new_meta(m, 2); },
      .lower = [](Lower& l) { lower_filled(l, 0); },
      .vjp = no_gradient(),
  });
  ops.add({
      .schema = "new_ones(Tensor self, SymInt[] size, *, " TENON_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return new_meta(m, 2); },
      .lower = [](Lower& l) { lower_filled(l, 1); },
      .vjp = no_gradient(),
  });
  ops.add({
      .schema = "new_empty(Tensor self, SymInt[] size, *, " TENON_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return new_meta(m, 2); },
      .lower = [](Lower& l) { lower_filled(l, 0); },
      .vjp = no_gradient(),
  });
  ops.add(new_full, {
      .schema = "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, " TENON_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return new_meta(m, 3); },
      .lower = [](Lower& l) { lower_full(l, 2); },
      .vjp = no_gradient(),
  });
  ops.add({
      .schema = "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, " TENON_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = new_meta(m, 3);
        out.strides = checked_strides(m, 1, 2);
        return out;
      },
      .lower = [](Lower& l) { lower_filled(l, 0); },
      .vjp = no_gradient(),
  });
  ops.add({
      .schema = "empty_strided(SymInt[] size, SymInt[] stride, *, " TENON_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = factory_meta(m, m.ints(0), DType::f32, 2);
        out.strides = checked_strides(m, 0, 1);
        return out;
      },
      .lower = [](Lower& l) { lower_filled(l, 0); },
  });
  ops.add({
      .schema = "empty_permuted(SymInt[] size, int[] physical_layout, *, " TENON_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = factory_meta(m, m.ints(0), DType::f32, 2);
        Sizes order = m.ints(1);
        m.require(order.size() == out.rank(), "physical_layout: expected every dimension of ", out.sizes, " once, got ", order);
        SymInt step = 1;
        std::vector<bool> seen(out.rank());
        for (size_t k = order.size(); k-- > 0;) {
          size_t d = normal_dim(order[k].as_int(), out.rank());
          m.require(!seen[d], "physical_layout: expected every dimension of ", out.sizes, " once, got ", order);
          seen[d] = true;
          out.strides[d] = step;
          step = step * (out.sizes[d] == SymInt(0) ? SymInt(1) : out.sizes[d]);
        }
        return out;
      },
      .lower = [](Lower& l) { lower_filled(l, 0); },
  });
  ops.add({
      .schema = "eye(SymInt n, *, " TENON_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return factory_meta(m, {m.integer(0), m.integer(0)}, DType::f32, 1); },
      .lower = lower_eye,
  });
  ops.add(eye, {
      .schema = "eye.m(SymInt n, SymInt m, *, " TENON_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return factory_meta(m, {m.integer(0), m.integer(1)}, DType::f32, 2); },
      .lower = lower_eye,
  });
  ops.add(linspace, {
      .schema = "linspace(Scalar start, Scalar end, int steps, *, " TENON_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) { return spaced_meta(m, 3); },
      .lower = [](Lower& l) { lower_spaced(l, false); },
  });
  for (const char* schema : {"linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, " TENON_OPTIONS ") -> Tensor",
                             "linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, " TENON_OPTIONS ") -> Tensor",
                             "linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, " TENON_OPTIONS ") -> Tensor"})
    ops.add({
        .schema = schema,
        .meta = [](MetaCall& m) { return spaced_meta(m, 3); },
        .lower = [](Lower& l) { lower_spaced(l, false); },
    });
  for (const char* schema : {"logspace(Scalar start, Scalar end, int steps, float base=10., *, " TENON_OPTIONS ") -> Tensor",
                             "logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, " TENON_OPTIONS ") -> Tensor",
                             "logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, " TENON_OPTIONS ") -> Tensor",
                             "logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, " TENON_OPTIONS ") -> Tensor"})
    ops.add({
        .schema = schema,
        .meta = [](MetaCall& m) { return spaced_meta(m, 4); },
        .lower = [](Lower& l) { lower_spaced(l, true); },
    });

  ops.add({
      .schema = "hann_window(int window_length, *, " TENON_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(cosine_window(b, true, {0.5, -0.5}, 1)); },
  });
  ops.add({
      .schema = "hann_window.periodic(int window_length, bool periodic, *, " TENON_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(cosine_window(b, b.flag(1), {0.5, -0.5}, 2)); },
  });
  ops.add({
      .schema = "hamming_window(int window_length, *, " TENON_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(cosine_window(b, true, {0.54, -0.46}, 1)); },
  });
  ops.add({
      .schema = "hamming_window.periodic(int window_length, bool periodic, *, " TENON_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(cosine_window(b, b.flag(1), {0.54, -0.46}, 2)); },
  });
  ops.add({
      .schema = "hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, " TENON_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(cosine_window(b, b.flag(1), {b.number(2), -0.46}, 3)); },
  });
  ops.add({
      .schema = "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, " TENON_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(cosine_window(b, b.flag(1), {b.number(2), -b.number(3)}, 4)); },
  });
  ops.add({
      .schema = "blackman_window(int window_length, *, " TENON_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(cosine_window(b, true, {0.42, -0.5, 0.08}, 1)); },
  });
  ops.add({
      .schema = "blackman_window.periodic(int window_length, bool periodic, *, " TENON_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(cosine_window(b, b.flag(1), {0.42, -0.5, 0.08}, 2)); },
  });
}

#undef TENON_OPTIONS

}  // namespace tenon
