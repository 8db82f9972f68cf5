#include "tenon/ops/conversion.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle clone, to_copy, copy, contiguous, overlay;

Tensor to(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : Tensor(to_copy(x, kw("dtype", dtype))); }

namespace {

using loop::Expr;

Sizes copied_strides(const TensorMeta& x, const CallArg& format) {
  auto* f = format.get<MemoryFormat>();
  if (f && *f != MemoryFormat::preserve) return strides_in(*f, x.sizes);
  if (is_dense(x)) return x.strides;
  const TensorMeta* operand = &x;
  return pointwise_strides(x.sizes, std::span<const TensorMeta* const>(&operand, 1));
}

// aten::to and the like: a copy where something changes or a copy is asked for, else the tensor itself.
Results converted(const Tensor& x, std::optional<DType> dtype, bool copy_wanted, const CallArg& format,
                  const CallArg& device = {}) {
  bool changes = dtype && *dtype != x.dtype();
  if (auto* d = device.get<Device>()) changes = changes || d->type != x.meta().device.type;
  if (auto* f = format.get<MemoryFormat>(); f && *f != MemoryFormat::preserve)
    changes = changes || !is_contiguous(x.meta(), *f);
  if (!changes && !copy_wanted) return one(x);
  return to_copy(x, kw("dtype", dtype ? CallArg(*dtype) : CallArg()), kw("device", device),
                 kw("memory_format", format));
}

// Of complex numbers real dtypes keep the real part, truth both.
Results complex_conversion(Build& b) {
  Tensor x = b["self"];
  std::optional<DType> dtype = b.dtype("dtype");
  if (!is_complex(x.dtype())) return as_real_part(b);
  if (dtype == DType::boolean) return one(is_nonzero(parts_of(x)));
  return dtype && !is_complex(*dtype) ? on_real(b, real(x)) : by_parts(b, "self");
}

}  // namespace

void register_conversion(Registry& ops) {
  ops.add(clone, {
                     .schema = "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
                     .kind = OpKind::pointwise,
                     .meta = [](MetaCall& m) -> Metas {
                       TensorMeta out = like(m.meta("self"), m.meta("self").sizes);
                       out.strides = copied_strides(m.meta("self"), m.arg("memory_format"));
                       return out;
                     },
                     .scalar = [](Expr self) { return self; },
                     .vjp = {{"self", [](Vjp& v) { return v.grad(); }}},
                     .complex = [](Build& b) { return by_parts(b, "self"); },
                 });
  ops.add({
      .schema = "lift_fresh_copy(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results { return clone(b["self"]); },
  });
  ops.add(to_copy,
          {
              .schema = "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                        "bool? pin_memory=None, bool non_blocking=False, "
                        "MemoryFormat? memory_format=None) -> Tensor",
              .kind = OpKind::pointwise,
              .meta = [](MetaCall& m) -> Metas {
                TensorMeta out =
                    like(m.meta("self"), m.meta("self").sizes, m.dtype("dtype").value_or(m.meta("self").dtype));
                out.strides = copied_strides(m.meta("self"), m.arg("memory_format"));
                if (auto* d = m.arg("device").get<Device>()) {
                  m.supports(d->type == DeviceType::cpu || d->type == DeviceType::meta, "device ", *d,
                             " is not supported; only cpu is");
                  out.device = *d;
                }
                return out;
              },
              .scalar = [](Expr self) { return self; },
              .vjp = {{"self", [](Vjp& v) { return v.grad(); }}},  // the driver converts back
              .promote = Promote::own,
              .complex = complex_conversion,
          });
  ops.add(copy,
          {
              .schema = "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
              .kind = OpKind::pointwise,
              .traits = {.takes_numbers = true},
              .meta = [](MetaCall& m) -> Metas {
                Sizes spread = broadcast(m.meta("self").sizes, m.is_tensor("src") ? m.meta("src").sizes : Sizes{}, m);
                for (size_t i = 0; i < spread.size(); ++i)
                  m.require(spread.size() == m.meta("self").rank() &&
                                !known(sym::ne(spread[i], m.meta("self").sizes[i])).value_or(false),
                            "expected a tensor that fits into ", m.meta("self"), ", got ", m.meta("src"));
                TensorMeta out = like(m.meta("self"), m.meta("self").sizes);
                out.strides = copied_strides(m.meta("self"), {});
                return out;
              },
              .scalar = [](Expr /*self*/, Expr src) { return src; },
              .vjp = {{"self", [](Vjp& v) { return zeros_like(v.grad()); }}, {"src", [](Vjp& v) { return v.grad(); }}},
              .promote = Promote::first,
              .complex = [](Build& b) -> Results {
                if (is_complex(b.meta("self").dtype)) return by_parts(b, "self, src");
                return copy(b["self"], real(b["src"]));
              },
          });
  ops.add(overlay, {
                       // a write hidden from autograd: the value is the new one, the gradient goes to the old one
                       .schema = "tenon::overlay(Tensor old, Tensor data) -> Tensor",
                       .kind = OpKind::pointwise,
                       .scalar = [](Expr /*old*/, Expr data) { return data; },
                       .to_torch = [](Build& b) -> Results {
                         if (!is_floating(b["old"].dtype())) return copy(b["old"], b["data"]);
                         Tensor none = b["old"] - detach(b["old"]);  // zero, with the gradient of old
                         Tensor finite = isfinite(b["old"]), zero = zeros_like(none);
                         Tensor gradient = where(finite, none, zero);
                         Tensor value = detach(copy(b["old"], b["data"]));
                         return one(value + gradient);
                       },
                       .vjp = {{"old", [](Vjp& v) { return v.grad(); }}},
                       .promote = Promote::first,
                       .complex = [](Build& b) { return by_parts(b, "old, data"); },
                   });
  ops.add(contiguous,
          {
              .schema = "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
              .kind = OpKind::composite,
              .traits = {.may_alias = true},
              .decompose = [](Build& b) -> Results {
                MemoryFormat format = *b.arg("memory_format").get<MemoryFormat>();
                return is_contiguous(b["self"].meta(), format) ? one(b["self"]) : clone(b["self"], format);
              },
          });
  ops.add({
      .schema = "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
                "memory_format=None) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) { return converted(b["self"], b.dtype("dtype"), b.flag("copy"), b.arg("memory_format")); },
  });
  ops.add({
      .schema = "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                "bool? pin_memory=None, bool "
                "non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            return converted(b["self"], b.dtype("dtype"), b.flag("copy"), b.arg("memory_format"), b.arg("device"));
          },
  });
  ops.add({
      .schema = "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
                "MemoryFormat? memory_format=None) -> "
                "Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            return converted(b["self"], b.dtype("dtype"), b.flag("copy"), b.arg("memory_format"), b.arg("device"));
          },
  });
  ops.add({
      .schema = "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
                "memory_format=None) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) { return converted(b["self"], b["other"].dtype(), b.flag("copy"), b.arg("memory_format")); },
  });
  ops.add({
      .schema = "type_as(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return converted(b["self"], b["other"].dtype(), false, {}); },
  });
}

}  // namespace tenon
