#include "tenon/ops/creation.h"

#include "tenon/ops/complex.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle full, ones, full_like, zeros_like, ones_like, empty_like, scalar_tensor, new_zeros, new_full, eye;

Tensor zeros(const Sizes& sizes, const Tensor& like) {
  return full(sizes, 0, kw("dtype", like.dtype()), kw("device", like.meta().device));
}

Grads zero_gradient(Vjp& v) { return {zeros_like(v.grad())}; }

TensorMeta factory_meta(const ArgsView& m, Sizes sizes, DType otherwise) {
  Device device;
  if (auto* d = m.arg("device").get<Device>()) device = *d;
  return make_meta(m.dtype("dtype").value_or(otherwise), std::move(sizes), device);
}

DType number_dtype(const CallArg& arg) {
  if (arg.is<bool>()) return DType::boolean;
  if (auto* s = arg.get<SymInt>()) return s->is_int() || s->is_integer_typed() ? DType::i64 : DType::f32;
  return DType::f32;
}

namespace {

Metas sized_meta(MetaCall& m) { return factory_meta(m, m.ints("size"), DType::f32); }

// x_like: what is not given comes from x, and so do the strides where x is dense.
Metas like_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  TensorMeta out = make_meta(m.dtype("dtype").value_or(x.dtype), x.sizes, x.device);
  if (auto* d = m.arg("device").get<Device>()) out.device = *d;
  MemoryFormat wanted = MemoryFormat::preserve;
  if (auto* f = m.arg("memory_format").get<MemoryFormat>()) wanted = *f;
  if (wanted != MemoryFormat::preserve) out.strides = strides_in(wanted, x.sizes);
  else if (is_dense(x)) out.strides = x.strides;
  else {
    const TensorMeta* operand = &x;
    out.strides = pointwise_strides(x.sizes, std::span<const TensorMeta* const>(&operand, 1));
  }
  return out;
}

// x.new_zeros: what is not given comes from x, never the strides.
TensorMeta new_meta(const ArgsView& m) {
  const TensorMeta& x = m.meta("self");
  TensorMeta out = factory_meta(m, m.ints("size"), x.dtype);
  if (!m.given("device")) out.device = x.device;
  return out;
}
Metas new_like_meta(MetaCall& m) { return new_meta(m); }

Sizes checked_strides(const ArgsView& m) {
  Sizes strides = m.ints("stride");
  m.require(strides.size() == m.ints("size").size(), "stride: expected one number per dimension of ", m.ints("size"),
            ", got ", strides);
  return strides;
}

void lower_constant(Lower& l, double value) {
  l.tensor([&](const Index&) { return l.constant(value, loop::compute_of(l.out().dtype())); });
}
void lower_zeros(Lower& l) { lower_constant(l, 0); }
void lower_ones(Lower& l) { lower_constant(l, 1); }
void lower_empty(Lower& l) { lower_constant(l, 0); }  // undefined contents: zeros make every run the same

void lower_number(Lower& l, const char* value) {
  l.tensor([&](const Index&) { return l.scalar(value, loop::compute_of(l.out().dtype())); });
}
void lower_full(Lower& l) { lower_number(l, "fill_value"); }

void lower_eye(Lower& l) {
  l.tensor([&](const Index& i) { return cast(i[0] == i[1], loop::compute_of(l.out().dtype())); });
}

// As pairs of the same strides.
Results complex_strided(Build& b) {
  CallArgs args(b.args.begin(), b.args.end());
  DType dtype = b.dtype("dtype").value_or(args[0].is<Tensor>() ? b.meta("self").dtype : DType::f32);
  if (!is_complex(dtype)) return on_real(b, real(b["self"]));
  Sizes sizes = b.ints("size"), strides = b.ints("stride");
  for (SymInt& stride : strides) stride = stride * 2;
  sizes.push_back(2);
  strides.push_back(1);
  args[b.index("size")] = sizes;
  args[b.index("stride")] = strides;
  args[b.index("dtype")] = real_of(dtype);
  if (args[0].is<Tensor>()) args[0] = parts_of(b["self"]).re;
  return view_as_complex(Tensor(call_op(b.op, std::move(args))));
}

}  // namespace

void register_creation(Registry& ops) {
  ops.add(full, {
                    .schema = "full(SymInt[] size, Scalar fill_value, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
                    .meta = [](MetaCall& m) -> Metas {
                      return factory_meta(m, m.ints("size"), number_dtype(m.arg("fill_value")));
                    },
                    .lower = lower_full,
                    .complex = [](Build& b) { return by_parts(b, "fill_value"); },
                });
  ops.add({
      .schema = "zeros(SymInt[] size, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .meta = sized_meta,
      .lower = lower_zeros,
      .complex = [](Build& b) { return by_parts(b, ""); },
  });
  ops.add(ones, {
                    .schema = "ones(SymInt[] size, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
                    .meta = sized_meta,
                    .lower = lower_ones,
                    .complex = as_real_part,
                });
  ops.add({
      .schema =
          "empty.memory_format(SymInt[] size, *, " TENON_TENSOR_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = factory_meta(m, m.ints("size"), DType::f32);
        if (auto* f = m.arg("memory_format").get<MemoryFormat>()) out.strides = strides_in(*f, out.sizes);
        return out;
      },
      .lower = lower_empty,
      .complex = [](Build& b) { return by_parts(b, ""); },
  });
  ops.add(scalar_tensor, {
                             .schema = "scalar_tensor(Scalar s, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
                             .meta = [](MetaCall& m) -> Metas { return factory_meta(m, {}, DType::f32); },
                             .lower = [](Lower& l) { lower_number(l, "s"); },
                             .complex = [](Build& b) { return by_parts(b, "s"); },
                         });
  ops.add(full_like, {
                         .schema = "full_like(Tensor self, Scalar fill_value, *, " TENON_TENSOR_OPTIONS
                                   ", MemoryFormat? memory_format=None) -> Tensor",
                         .meta = like_meta,
                         .lower = lower_full,
                         .vjp = no_gradient(),
                         .complex = [](Build& b) { return by_parts(b, "self, fill_value"); },
                     });
  ops.add(zeros_like, {
                          .schema = "zeros_like(Tensor self, *, " TENON_TENSOR_OPTIONS
                                    ", MemoryFormat? memory_format=None) -> Tensor",
                          .meta = like_meta,
                          .lower = lower_zeros,
                          .vjp = no_gradient(),
                          .complex = [](Build& b) { return by_parts(b, "self"); },
                      });
  ops.add(ones_like, {
                         .schema = "ones_like(Tensor self, *, " TENON_TENSOR_OPTIONS
                                   ", MemoryFormat? memory_format=None) -> Tensor",
                         .meta = like_meta,
                         .lower = lower_ones,
                         .vjp = no_gradient(),
                         .complex = as_real_part,
                     });
  ops.add(empty_like, {
                          .schema = "empty_like(Tensor self, *, " TENON_TENSOR_OPTIONS
                                    ", MemoryFormat? memory_format=None) -> Tensor",
                          .meta = like_meta,
                          .lower = lower_empty,
                          .vjp = no_gradient(),
                          .complex = [](Build& b) { return by_parts(b, "self"); },
                      });
  ops.add(new_zeros, {
                         .schema = "new_zeros(Tensor self, SymInt[] size, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
                         .meta = new_like_meta,
                         .lower = lower_zeros,
                         .vjp = no_gradient(),
                         .complex = [](Build& b) { return by_parts(b, "self"); },
                     });
  ops.add({
      .schema = "new_ones(Tensor self, SymInt[] size, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .meta = new_like_meta,
      .lower = lower_ones,
      .vjp = no_gradient(),
      .complex = as_real_part,
  });
  ops.add({
      .schema = "new_empty(Tensor self, SymInt[] size, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .meta = new_like_meta,
      .lower = lower_empty,
      .vjp = no_gradient(),
      .complex = [](Build& b) { return by_parts(b, "self"); },
  });
  ops.add(new_full, {
                        .schema = "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, " TENON_TENSOR_OPTIONS
                                  ") -> Tensor",
                        .meta = new_like_meta,
                        .lower = lower_full,
                        .vjp = no_gradient(),
                        .complex = [](Build& b) { return by_parts(b, "self, fill_value"); },
                    });
  ops.add({
      .schema = "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = new_meta(m);
        out.strides = checked_strides(m);
        return out;
      },
      .lower = lower_empty,
      .vjp = no_gradient(),
      .complex = complex_strided,
  });
  ops.add({
      .schema = "empty_strided(SymInt[] size, SymInt[] stride, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = factory_meta(m, m.ints("size"), DType::f32);
        out.strides = checked_strides(m);
        return out;
      },
      .lower = lower_empty,
      .complex = complex_strided,
  });
  ops.add({
      .schema = "prims::_make_token() -> Tensor",
      .meta = [](MetaCall&) -> Metas { return make_meta(DType::f32, {0}); },
      .lower = lower_empty,
  });
  ops.add({
      .schema = "empty_permuted(SymInt[] size, int[] physical_layout, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = factory_meta(m, m.ints("size"), DType::f32);
        Sizes order = m.ints("physical_layout");
        m.require(order.size() == out.rank(), "physical_layout: expected every dimension of ", out.sizes, " once, got ",
                  order);
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
      .lower = lower_empty,
      .complex = [](Build& b) { return by_parts(b, ""); },
  });
  ops.add({
      .schema = "eye(SymInt n, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        return factory_meta(m, {m.integer("n"), m.integer("n")}, DType::f32);
      },
      .lower = lower_eye,
      .complex = as_real_part,
  });
  ops.add(eye, {
                   .schema = "eye.m(SymInt n, SymInt m, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
                   .meta = [](MetaCall& m) -> Metas {
                     return factory_meta(m, {m.integer("n"), m.integer("m")}, DType::f32);
                   },
                   .lower = lower_eye,
                   .complex = as_real_part,
               });
}

}  // namespace tenon
