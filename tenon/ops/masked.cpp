// Elements picked by a mask, and numbers out of tensors: sizes and values that only a run can tell.
#include <cstring>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/where.h"
#include "tenon/ops/index.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle nonzero, nonzero_static, masked_scatter, item;
static Handle masked_scatter_backward, repeat_interleave;

namespace {

using loop::Expr;

// Whether an element is other than zero: any bit set, the sign of a float aside.
bool is_set(const std::byte* at, DType dtype) {
  size_t n = item_size(dtype);
  uint64_t bits[2] = {0, 0};
  std::memcpy(bits, at, n);
  if (is_floating(dtype)) bits[0] &= ~(uint64_t{1} << (8 * n - 1));
  return bits[0] || bits[1];
}

std::vector<int64_t> set_places(const Tensor& x) {
  Tensor own = contiguous_copy(x);
  std::vector<int64_t> out;
  int64_t n = own.numel().as_int();
  size_t step = item_size(own.dtype());
  for (int64_t i = 0; i < n; ++i)
    if (is_set(own.bytes() + static_cast<size_t>(i) * step, own.dtype())) out.push_back(i);
  return out;
}

// PyTorch keeps the coordinates of one dimension together.
TensorMeta nonzero_meta(const TensorMeta& x, SymInt found) {
  TensorMeta out = make_meta(DType::i64, {found, SymInt(static_cast<int64_t>(x.rank()))}, x.device);
  out.strides = {1, larger(found, 1)};
  if (found == SymInt(0) || x.rank() == 0) out.strides = contiguous_strides(out.sizes);
  return out;
}

CallResults find_nonzero(ArgsView& call) {
  Tensor x = call[0];
  std::vector<int64_t> places = set_places(x);
  auto found = static_cast<int64_t>(places.size());
  Tensor out = Tensor::empty(nonzero_meta(x.meta(), found));
  auto* to = out.mutable_data<int64_t>();
  for (int64_t k = 0; k < found; ++k) {
    int64_t rest = places[static_cast<size_t>(k)];
    for (size_t d = x.rank(); d-- > 0;) {
      int64_t size = x.sizes()[d].as_int();
      to[k * out.strides()[0].as_int() + static_cast<int64_t>(d) * out.strides()[1].as_int()] = rest % size;
      rest /= size;
    }
  }
  return {CallArg(out)};
}

CallResults select_masked(ArgsView& call) {
  call.require(call.meta(1).dtype == DType::boolean, "expected a bool mask, got ", call.meta(1));
  Sizes sizes = broadcast(call.meta(0).sizes, call.meta(1).sizes, call);
  Tensor from = contiguous_copy(expand(call[0], sizes));
  std::vector<int64_t> places = set_places(expand(call[1], sizes));
  Tensor out = Tensor::empty(from.dtype(), {SymInt(static_cast<int64_t>(places.size()))});
  size_t step = item_size(from.dtype());
  std::byte* to = out.mutable_bytes();
  for (int64_t place : places) {
    std::memcpy(to, from.bytes() + static_cast<size_t>(place) * step, step);
    to += step;
  }
  return {CallArg(out)};
}

void require_one_element(const ArgsView& call) {
  SymInt n = count(call.meta(0).sizes);
  call.require(!n.is_int() || n.as_int() == 1, "expected a tensor of one element, got ", call.meta(0));
}

CallResults read_number(ArgsView& call) {
  require_one_element(call);
  Tensor x = contiguous_copy(call[0]);
  TensorMeta scalar = make_meta(x.dtype(), {});
  x = x.with_meta(scalar);
  if (x.dtype() == DType::boolean) return {CallArg(scalar_integer(x) != 0)};
  if (is_floating(x.dtype())) return {CallArg(scalar_value(x))};
  return {CallArg(scalar_integer(x))};
}

Metas number_meta(MetaCall& m) {
  require_one_element(m);
  return {BasicArg<TensorMeta>(is_floating(m.meta(0).dtype) ? data_dependent_real() : data_dependent_size())};
}

CallResults count_off(ArgsView& call) {
  Tensor repeats = contiguous_copy(call[0]);
  call.require(repeats.rank() == 1 && (repeats.dtype() == DType::i64 || repeats.dtype() == DType::i32),
               "expected i64 or i32 repeats of 1 dimension, got ", repeats.meta());
  auto at = [&](int64_t i) {
    return repeats.dtype() == DType::i64 ? repeats.data<int64_t>()[i] : repeats.data<int32_t>()[i];
  };
  int64_t n = repeats.numel().as_int(), total = 0;
  for (int64_t i = 0; i < n; ++i) {
    call.require(at(i) >= 0, "repeats must not be negative, got ", at(i));
    total = sym::checked_add(total, at(i));
  }
  if (call.given(1))
    call.require(call.integer(1) == SymInt(total), "output_size: expected the sum of the repeats, ", total, ", got ", call.integer(1));
  Tensor out = Tensor::empty(repeats.dtype(), {total});
  int64_t next = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < at(i); ++k, ++next) {
      if (repeats.dtype() == DType::i64) out.mutable_data<int64_t>()[next] = i;
      else out.mutable_data<int32_t>()[next] = static_cast<int32_t>(i);
    }
  return {CallArg(out)};
}

// masked_scatter: true element number n takes source[n] in row-major order.
void lower_masked_scatter(Lower& l) {
  Ref self = l[0], mask = l[1], source = l[2], out = l.out();
  Sizes domain = out.sizes(), from = source.sizes();
  Ref wide = l.temporary(DType::boolean, domain, [&](const Index& i) { return mask.broadcast_at(i); });
  Ref positions = mask_positions(l, wide);
  l.tensor([&](const Index& i) {
    Expr hit = wide.at(i), flat = positions.at(i);
    Index at(from.size(), Expr(0));
    for (size_t d = from.size(); d-- > 0;) {
      at[d] = d == 0 ? flat : call(loop::Fn::remainder, flat, l.extent(from[d]));
      flat = call(loop::Fn::floor_div, flat, l.extent(from[d]));
    }
    return source.at_if(hit, at, self.broadcast_at(i));
  });
}

void lower_nonzero_static(Lower& l) {
  Ref x = l[0], out = l.out();
  Sizes sizes = x.sizes();
  l.fill(out, l.scalar(2, loop::Compute::i64));
  if (sizes.empty()) return;
  Ref positions = mask_positions(l, x);
  l.stage(sizes, [&](const Index& i) {
    Expr at = positions.at(i), hit = cast(x.at(i), loop::Compute::boolean) && at < l.extent(out.size(0));
    for (size_t d = 0; d < sizes.size(); ++d) l.store_if(hit, out, {at, l.extent(static_cast<int64_t>(d))}, i[d]);
  });
}

}  // namespace

void register_masked(Registry& ops) {
  ops.add(nonzero, {
      .schema = "nonzero(Tensor self) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return nonzero_meta(m.meta("self"), data_dependent_size()); },
      .kernel = find_nonzero,
  });
  ops.alias(nonzero, {"argwhere"});
  for (const char* schema : {"nonzero_numpy(Tensor self) -> Tensor[]", "where(Tensor condition) -> Tensor[]"})
    ops.add({
        .schema = schema,
        .kind = OpKind::composite,
        .decompose = [](Build& b) { return unbind(nonzero(b[0].rank() == 0 ? Tensor(unsqueeze(b[0], 0)) : b[0]), 1); },
    });
  ops.add(nonzero_static, {
      .schema = "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        return like(m.meta("self"), {m.integer("size"), SymInt(static_cast<int64_t>(m.meta("self").rank()))}, DType::i64);
      },
      .lower = lower_nonzero_static,
  });
  ops.add({
      .schema = "masked_select(Tensor self, Tensor mask) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("mask").dtype == DType::boolean, "expected a bool mask, got ", m.meta("mask"));
        broadcast(m.meta("self").sizes, m.meta("mask").sizes, m);
        return like(m.meta("self"), {data_dependent_size()});
      },
      .vjp = {{"self, mask", [](Vjp& v) -> Grads {
        Sizes sizes = broadcast(v["self"].sizes(), v["mask"].sizes(), v);
        return {masked_scatter(zeros(sizes, v.grad(0)), v["mask"], v.grad(0))};
      }}},
      .kernel = select_masked,
  });
  ops.add(masked_scatter, {
      .schema = "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("mask").dtype == DType::boolean, "expected a bool mask, got ", m.meta("mask"));
        m.require(m.meta("self").dtype == m.meta("source").dtype, "expected a source of the dtype of ",
                  m.meta("self"), ", got ", m.meta("source"));
        return like(m.meta("self"), broadcast(m.meta("self").sizes, m.meta("mask").sizes, m));
      },
      .lower = lower_masked_scatter,
      .vjp = {{"self, mask, source", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        return {v.needs("self") ? Grad(where(v["mask"], 0.0, g)) : Grad(),
                {},
                v.needs("source") ? Grad(masked_scatter_backward(g, v["mask"], v["source"].sizes())) : Grad()};
      }}},
  });
  ops.add(masked_scatter_backward, {
      .schema = "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return like(m.meta("grad_output"), m.ints("sizes")); },
      .lower =
          [](Lower& l) {
            Ref grad = l["grad_output"], mask = l["mask"], out = l.out();
            Sizes domain = grad.sizes(), to = out.sizes();
            l.fill(out, l.constant(0, loop::compute_of(out.dtype())));
            Ref wide = l.temporary(DType::boolean, domain, [&](const Index& i) { return mask.broadcast_at(i); });
            Ref positions = mask_positions(l, wide);
            l.stage(domain, [&](const Index& i) {
              Expr flat = positions.at(i);
              Index at(to.size(), Expr(0));
              for (size_t d = to.size(); d-- > 0;) {
                at[d] = d == 0 ? flat : call(loop::Fn::remainder, flat, l.extent(to[d]));
                flat = call(loop::Fn::floor_div, flat, l.extent(to[d]));
              }
              l.store_if(wide.at(i), out, at, grad.at(i));
            });
          },
      .vjp = {{"grad_output", [](Vjp& v) { return masked_scatter(zeros(v["grad_output"].sizes(), v.grad()), v["mask"], v.grad()); }}},
  });
  ops.add({
      .schema = "_local_scalar_dense(Tensor self) -> Scalar",
      .meta = number_meta,
      .kernel = read_number,
  });
  ops.add(item, {
      .schema = "item(Tensor self) -> Scalar",
      .meta = number_meta,
      .kernel = read_number,
  });
  ops.add({
      .schema = "equal(Tensor self, Tensor other) -> bool",
      .kernel = [](ArgsView& call) -> CallResults {
        if (call.meta("self").sizes != call.meta("other").sizes) return {CallArg(false)};
        Tensor same = eq(call[0], call[1]);
        return {CallArg(static_cast<int64_t>(set_places(same).size()) == same.numel().as_int())};
      },
  });
  ops.add(repeat_interleave, {
      .schema = "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return like(m.meta("repeats"), {m.given("output_size") ? m.integer("output_size") : data_dependent_size()}); },
      .kernel = count_off,
  });
  ops.add({
      .schema = "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? "
                "output_size=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["self"], repeats = b["repeats"];
            if (!b.given("dim")) x = reshape(x, Sizes{x.numel()});
            if (x.rank() == 0) x = reshape(x, Sizes{1});
            size_t dim = b.given("dim") ? b.dim("dim", x.rank()) : 0;
            b.require(repeats.rank() <= 1, "expected repeats of at most 1 dimension, got ", repeats.meta());
            if (repeats.rank() == 0 || repeats.size(0) == SymInt(1))
              repeats = expand(reshape(repeats, Sizes{1}), Sizes{x.sizes()[dim]});
            SymInt a = repeats.size(0), n = x.sizes()[dim];
            b.require(a == n || !a.is_int() || !n.is_int(), "expected ", n, " repeats, got ", repeats.meta());
            return index_select(x, dim, repeat_interleave(repeats, kw("output_size", b.arg("output_size"))));
          },
  });
}

}  // namespace tenon
