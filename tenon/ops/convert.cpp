#include "tenon/ops/convert.h"

#include "tenon/ops/create.h"
#include "tenon/ops/infer.h"
#include "tenon/ops/known.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle clone, to_copy, copy, contiguous, overlay;

Tensor to(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : Tensor(to_copy(x, kw("dtype", dtype))); }

namespace {

Sizes copied_strides(const TensorMeta& x, const CallArg& format) {
  auto* f = format.get<MemoryFormat>();
  if (f && *f != MemoryFormat::preserve) return strides_in(*f, x.sizes);
  if (is_dense(x)) return x.strides;
  const TensorMeta* operand = &x;
  return pointwise_strides(x.sizes, std::span<const TensorMeta* const>(&operand, 1));
}

// aten::to and its kin: a copy where something changes or a copy is asked for, else the tensor itself.
Results converted(const Tensor& x, std::optional<DType> dtype, bool copy_wanted, const CallArg& format, const CallArg& device = {}) {
  bool changes = dtype && *dtype != x.dtype();
  if (auto* d = device.get<Device>()) changes = changes || d->type != x.meta().device.type;
  if (auto* f = format.get<MemoryFormat>(); f && *f != MemoryFormat::preserve) changes = changes || !is_contiguous(x.meta(), *f);
  if (!changes && !copy_wanted) return one(x);
  return to_copy(x, kw("dtype", dtype ? CallArg(*dtype) : CallArg()), kw("device", device), kw("memory_format", format));
}

}  // namespace

void register_convert(Registry& ops) {
  ops.add(clone, {
      .schema = "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
      .kind = Kind::pointwise,
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = like(m.meta(0), m.meta(0).sizes);
        out.strides = copied_strides(m.meta(0), m.arg(1));
        return out;
      },
      .scalar = [](const Scalars& x) { return x[0]; },
      .vjp = [](Vjp& v) -> Grads { return {v.grad(0)}; },
  });
  ops.add({
      .schema = "lift_fresh_copy(Tensor self) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) -> Results { return clone(b[0]); },
  });
  ops.add(to_copy, {
      .schema = "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, "
                "MemoryFormat? memory_format=None) -> Tensor",
      .kind = Kind::pointwise,
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = like(m.meta(0), m.meta(0).sizes, m.dtype(1).value_or(m.meta(0).dtype));
        out.strides = copied_strides(m.meta(0), m.arg(6));
        if (auto* d = m.arg(3).get<Device>()) {
          m.supports(d->type == "cpu" || d->type == "meta", "device ", *d, " is not supported; only cpu is");
          out.device = *d;
        }
        return out;
      },
      .scalar = [](const Scalars& x) { return x[0]; },
      .vjp = [](Vjp& v) -> Grads { return {v.grad(0)}; },   // the driver converts back
      .promote = Promote::own,
  });
  ops.add(copy, {
      .schema = "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
      .kind = Kind::pointwise,
      .traits = {.takes_numbers = true},
      .meta = [](MetaCall& m) -> Metas {
        Sizes spread = broadcast(m.meta(0).sizes, m.is_tensor(1) ? m.meta(1).sizes : Sizes{}, m);
        for (size_t i = 0; i < spread.size(); ++i)
          m.require(spread.size() == m.meta(0).rank() && !known(sym::ne(spread[i], m.meta(0).sizes[i])).value_or(false), "expected a tensor that fits into ",
                    m.meta(0), ", got ", m.meta(1));
        TensorMeta out = like(m.meta(0), m.meta(0).sizes);
        out.strides = copied_strides(m.meta(0), {});
        return out;
      },
      .scalar = [](const Scalars& x) { return x[1]; },
      .vjp = [](Vjp& v) -> Grads { return {v.needs(0) ? Grad(zeros_like(v.grad(0))) : Grad(), v.grad(0)}; },
      .promote = Promote::first,
  });
  ops.add(overlay, {   // a write hidden from autograd: the value is the new one, the gradient goes to the old one
      .schema = "tenon::overlay(Tensor old, Tensor data) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return x[1]; },
      .to_torch = [](Build& b) { return copy(b[0], b[1]); },   // what is written has its gradients in it already
      .vjp = [](Vjp& v) -> Grads { return {v.grad(0), none}; },
      .promote = Promote::first,
  });
  ops.add(contiguous, {
      .schema = "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        MemoryFormat format = *b.arg(1).get<MemoryFormat>();
        return is_contiguous(b[0].meta(), format) ? one(b[0]) : clone(b[0], format);
      },
  });
  ops.add({
      .schema = "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return converted(b[0], b.dtype(1), b.flag(3), b.arg(4)); },
  });
  ops.add({
      .schema = "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool "
                "non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return converted(b[0], b.dtype(1), b.flag(6), b.arg(7), b.arg(3)); },
  });
  ops.add({
      .schema = "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> "
                "Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return converted(b[0], b.dtype(2), b.flag(4), b.arg(5), b.arg(1)); },
  });
  ops.add({
      .schema = "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return converted(b[0], b[1].dtype(), b.flag(3), b.arg(4)); },
  });
  ops.add({
      .schema = "type_as(Tensor self, Tensor other) -> Tensor",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return converted(b[0], b[1].dtype(), false, {}); },
  });
}

}  // namespace tenon
