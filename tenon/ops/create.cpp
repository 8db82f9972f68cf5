#include "tenon/ops/create.h"

#include <cmath>

#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle full, full_like, ones, zeros_like, ones_like, empty_like, arange, scalar_tensor;

Tensor zeros(const Sizes& sizes, const Tensor& like) { return full(sizes, 0, kw("dtype", like.dtype()), kw("device", like.meta().device)); }

TensorMeta factory_meta(const ArgsView& m, Sizes sizes, DType otherwise, size_t at) {
  Device device;
  if (auto* d = m.arg(at + 2).get<Device>()) device = *d;
  return make_meta(m.dtype(at).value_or(otherwise), std::move(sizes), device);
}
void lower_filled(Lower& l, double value) {
  l.tensor([&](const Index&) { return l.constant(value, loop::compute_of(l.out().dtype())); });
}
void lower_full(Lower& l, size_t value) {
  l.tensor([&](const Index&) { return l.scalar(value, loop::compute_of(l.out().dtype())); });
}

namespace {

// The same for x_like: what is not given comes from x, and so do the strides where x is dense.
TensorMeta like_meta(const ArgsView& m, size_t at, size_t format) {
  const TensorMeta& x = m.meta(0);
  TensorMeta out = make_meta(m.dtype(at).value_or(x.dtype), x.sizes, x.device);
  if (auto* d = m.arg(at + 2).get<Device>()) out.device = *d;
  MemoryFormat wanted = MemoryFormat::preserve;
  if (auto* f = m.arg(format).get<MemoryFormat>()) wanted = *f;
  if (wanted != MemoryFormat::preserve) out.strides = strides_in(wanted, x.sizes);
  else if (is_dense(x)) out.strides = x.strides;
  else {
    const TensorMeta* operand = &x;
    out.strides = pointwise_strides(x.sizes, std::span<const TensorMeta* const>(&operand, 1));
  }
  return out;
}

DType number_dtype(const CallArg& arg) {
  if (arg.is<bool>()) return DType::boolean;
  if (auto* s = arg.get<SymInt>()) return s->is_int() || s->is_integer_typed() ? DType::i64 : DType::f32;
  return DType::f32;
}

// Positions of start, end and step in arange's three forms; -1: absent.
struct Progression { int start, end, step, options; };

SymInt progression_length(const ArgsView& m, Progression p) {
  bool whole = true;
  for (int i : {p.start, p.end, p.step})
    if (i >= 0) whole = whole && number_dtype(m.arg(static_cast<size_t>(i))) == DType::i64;
  if (whole) {
    SymInt start = p.start >= 0 ? m.integer(static_cast<size_t>(p.start)) : SymInt(0), end = m.integer(static_cast<size_t>(p.end));
    SymInt step = p.step >= 0 ? m.integer(static_cast<size_t>(p.step)) : SymInt(1);
    m.require(!(step == SymInt(0)), "the step must not be 0");
    SymInt n = step == SymInt(1) ? end - start : sym::floor_div(end - start + step - (step.is_int() && step.as_int() < 0 ? SymInt(-1) : SymInt(1)), step);
    m.require(!n.is_int() || n.as_int() >= 0, "the bounds ", start, " and ", end, " do not fit the sign of the step ", step);
    return n;
  }
  double start = p.start >= 0 ? m.number(static_cast<size_t>(p.start)) : 0, end = m.number(static_cast<size_t>(p.end));
  double step = p.step >= 0 ? m.number(static_cast<size_t>(p.step)) : 1;
  m.require(step != 0 && (end - start) / step >= 0, "the bounds ", start, " and ", end, " do not fit the step ", step);
  return static_cast<int64_t>(std::ceil((end - start) / step));
}

Metas arange_meta(const ArgsView& m, Progression p) {
  DType dtype = DType::i64;
  for (int i : {p.start, p.end, p.step})
    if (i >= 0 && number_dtype(m.arg(static_cast<size_t>(i))) != DType::i64) dtype = DType::f32;
  return factory_meta(m, {progression_length(m, p)}, dtype, static_cast<size_t>(p.options));
}

void lower_arange(Lower& l, Progression p) {
  loop::Compute type = loop::compute_of(l.out().dtype());
  if (type == loop::Compute::f32) type = loop::Compute::f64;   // as PyTorch: steps are counted in double
  l.tensor([&](const Index& i) {
    loop::Expr start = p.start >= 0 ? l.scalar(static_cast<size_t>(p.start), type) : l.constant(0, type);
    loop::Expr step = p.step >= 0 ? l.scalar(static_cast<size_t>(p.step), type) : l.constant(1, type);
    return start + cast(i[0], type) * step;
  });
}

}  // namespace

void register_create(Registry& ops) {
  ops.add(full, {
      .schema = "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return factory_meta(m, m.ints("size"), number_dtype(m.arg("fill_value")), 2); },
      .lower = [](Lower& l) { lower_full(l, 1); },
  });
  ops.add({
      .schema = "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return factory_meta(m, m.ints("size"), DType::f32, 1); },
      .lower = [](Lower& l) { lower_filled(l, 0); },
  });
  ops.add(ones, {
      .schema = "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return factory_meta(m, m.ints("size"), DType::f32, 1); },
      .lower = [](Lower& l) { lower_filled(l, 1); },
  });
  ops.add({
      .schema = "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
                "MemoryFormat? memory_format=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = factory_meta(m, m.ints("size"), DType::f32, 1);
        if (auto* f = m.arg("memory_format").get<MemoryFormat>()) out.strides = strides_in(*f, out.sizes);
        return out;
      },
      .lower = [](Lower& l) { lower_filled(l, 0); },   // undefined contents: zeros make every run the same
  });
  ops.add(scalar_tensor, {
      .schema = "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return factory_meta(m, {}, DType::f32, 1); },
      .lower = [](Lower& l) { lower_full(l, 0); },
  });
  ops.add(full_like, {
      .schema = "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
                "MemoryFormat? memory_format=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return like_meta(m, 2, 6); },
      .lower = [](Lower& l) { lower_full(l, 1); },
      .vjp = no_gradient(),
  });
  ops.add(zeros_like, {
      .schema = "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                "memory_format=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return like_meta(m, 1, 5); },
      .lower = [](Lower& l) { lower_filled(l, 0); },
      .vjp = no_gradient(),
  });
  ops.add(ones_like, {
      .schema = "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                "memory_format=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return like_meta(m, 1, 5); },
      .lower = [](Lower& l) { lower_filled(l, 1); },
      .vjp = no_gradient(),
  });
  ops.add(empty_like, {
      .schema = "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                "memory_format=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return like_meta(m, 1, 5); },
      .lower = [](Lower& l) { lower_filled(l, 0); },
      .vjp = no_gradient(),
  });
  ops.add({
      .schema = "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
      .meta = [](MetaCall& m) { return arange_meta(m, {-1, 0, -1, 1}); },
      .lower = [](Lower& l) { lower_arange(l, {-1, 0, -1, 1}); },
  });
  ops.add({
      .schema = "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
      .meta = [](MetaCall& m) { return arange_meta(m, {0, 1, -1, 2}); },
      .lower = [](Lower& l) { lower_arange(l, {0, 1, -1, 2}); },
  });
  ops.add(arange, {
      .schema = "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
                "pin_memory=None) -> Tensor",
      .meta = [](MetaCall& m) { return arange_meta(m, {0, 1, 2, 3}); },
      .lower = [](Lower& l) { lower_arange(l, {0, 1, 2, 3}); },
  });
}

}  // namespace tenon
