// Padding: constant, reflected, replicated, circular.
#include "tenon/ops/conversion.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/rules/memory_format.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle constant_pad_nd;
static Handle reflection[3], reflection_backward[3], replication[3], replication_backward[3], circular;

namespace {

using loop::Expr;

// Pads come in pairs (before, after), the last dimension's first.
SymInt before(const Sizes& pads, size_t dim, size_t rank) {
  return 2 * (rank - 1 - dim) + 1 < pads.size() ? pads[2 * (rank - 1 - dim)] : SymInt(0);
}
SymInt after(const Sizes& pads, size_t dim, size_t rank) {
  return 2 * (rank - 1 - dim) + 1 < pads.size() ? pads[2 * (rank - 1 - dim) + 1] : SymInt(0);
}

Sizes padded_sizes(const ArgsView& m, const TensorMeta& x, const Sizes& pads) {
  m.require(pads.size() % 2 == 0, "expected an even number of pads, got ", pads);
  m.require(pads.size() <= 2 * x.rank(), "expected at most ", 2 * x.rank(), " pads for ", x, ", got ", pads);
  Sizes out = x.sizes;
  for (size_t d = 0; d < out.size(); ++d) {
    out[d] = out[d] + before(pads, d, x.rank()) + after(pads, d, x.rank());
    m.require(!out[d].is_int() || out[d].as_int() >= 0, "pads ", pads, " would give dimension ", d, " of ", x,
              " the size ", out[d]);
  }
  return out;
}

void lower_constant(Lower& l) {
  Ref x = l[0];
  Sizes pads = l.ints(1), sizes = x.sizes();
  size_t rank = sizes.size();
  l.tensor([&](const Index& i) {
    Index at = i;
    Expr inside = loop::constant(l.program.arena, 1.0, loop::Compute::boolean);
    for (size_t d = 0; d < rank; ++d) {
      SymInt first = before(pads, d, rank), last = after(pads, d, rank);
      if (first == SymInt(0) && last == SymInt(0)) continue;
      at[d] = i[d] - l.extent(first);
      inside = inside && at[d] >= 0 && at[d] < l.extent(sizes[d]);
    }
    return x.at_if(inside, at, l.scalar(2, loop::compute_of(x.dtype())));
  });
}

// Where an element of the padded tensor comes from, for pads that repeat what is there.
Expr source(Lower& l, Expr i, SymInt first, SymInt size, bool reflected) {
  Expr at = i - l.extent(first), last = l.extent(size - 1);
  if (!reflected) return min(max(at, l.extent(0)), last);
  at = loop::abs(at);
  return loop::select(at > last, last + last - at, at);
}

Index source_of(Lower& l, const Index& i, const Sizes& sizes, const Sizes& pads, size_t space, bool reflected) {
  Index at = i;
  for (size_t d = sizes.size() - space; d < sizes.size(); ++d)
    at[d] = source(l, i[d], before(pads, d, sizes.size()), sizes[d], reflected);
  return at;
}

Metas repeating_meta(MetaCall& m, size_t space, bool reflected) {
  const TensorMeta& x = m.meta(0);
  m.require(x.rank() == space + 1 || x.rank() == space + 2, "expected an input of ", space + 1, " or ", space + 2,
            " dimensions, got ", x);
  Sizes pads = m.ints(1);
  m.require(pads.size() == 2 * space, "expected ", 2 * space, " pads, got ", pads);
  for (size_t d = x.rank() - space; d < x.rank(); ++d) {
    m.require(!(x.sizes[d] == SymInt(0)), "dimension ", d, " of ", x, " is empty");
    SymInt most = larger(before(pads, d, x.rank()), after(pads, d, x.rank()));
    m.require(!reflected || !statically_true(sym::ge(most, x.sizes[d])),
              "a reflected pad must be smaller than the dimension, got pads ", pads, " for ", x);
  }
  Sizes sizes = padded_sizes(m, x, pads);
  for (size_t d = x.rank() - space; d < x.rank(); ++d)
    m.require(!statically_true(sym::lt(sizes[d], 1)), "pads ", pads, " leave nothing of ", x);
  return space == 2 ? formatted_like(x, sizes) : like(x, sizes);
}

void lower_repeating(Lower& l, size_t space, bool reflected) {
  Ref x = l[0];
  Sizes pads = l.ints(1), sizes = x.sizes();
  l.tensor([&](const Index& i) { return x.at(source_of(l, i, sizes, pads, space, reflected)); });
}

void lower_repeating_backward(Lower& l, size_t space, bool reflected) {
  Ref grad = l[0], out = l.out();
  Sizes pads = l.ints(2), sizes = out.sizes();
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  l.fill(target, l.constant(0, loop::compute_of(compute)));
  l.stage(Sizes(grad.sizes()), [&](const Index& i) {
    l.store(target, source_of(l, i, sizes, pads, space, reflected), grad.at(i), loop::Mode::add);
  });
  if (target.id != out.id) l.copy(target, out);
}

Results padded_circularly(Build& b) {
  Tensor x = b[0];
  Sizes pads = b.ints(1);
  size_t rank = x.rank(), space = pads.size() / 2;
  b.require(pads.size() % 2 == 0 && (rank == space + 1 || rank == space + 2),
            "expected pads for all but the first one or two dimensions, got ", pads, " for ", x.meta());
  for (size_t d = rank - space; d < rank; ++d) {
    SymInt first = before(pads, d, rank), last = after(pads, d, rank), size = x.sizes()[d];
    b.require(!statically_true(sym::gt(first, size)) && !statically_true(sym::gt(last, size)),
              "a circular pad must not exceed the dimension, got pads ", pads, " for ", b[0].meta());
    SymInt from = larger(-first, 0), to = size - larger(-last, 0);
    Tensor middle = from == SymInt(0) && to == size ? x : Tensor(slice(x, d, from, to));
    std::vector<Tensor> parts;
    if (!statically_true(sym::le(first, 0))) parts.push_back(slice(x, d, to - first, to));
    parts.push_back(middle);
    if (!statically_true(sym::le(last, 0))) parts.push_back(slice(x, d, from, from + last));
    x = parts.size() == 1 ? middle : Tensor(cat(parts, d));
  }
  return contiguous(x);
}

Results padded(Build& b, const std::string& mode, const CallArg& value) {
  Tensor x = b[0];
  Sizes pads = b.ints(1);
  b.require(pads.size() % 2 == 0, "expected an even number of pads, got ", pads);
  if (mode == "constant") return constant_pad_nd(x, pads, value.is_none() ? CallArg(0.0) : value);
  b.require(value.is_none() || b.number(3) == 0, "a value is only for mode='constant', not for ", quoted(mode));
  b.require(mode == "reflect" || mode == "replicate" || mode == "circular",
            "mode: expected 'constant', 'reflect', 'replicate' or 'circular', got ", quoted(mode));
  size_t space = pads.size() / 2;
  bool fits = space >= 1 && space <= 3 && (x.rank() == space + 1 || x.rank() == space + 2);
  b.require(fits, "mode='", mode, "' pads the last 1, 2 or 3 dimensions of a tensor with one or two more, got pads ",
            pads, " for ", x.meta());
  if (mode == "circular") return circular(x, pads);
  return (mode == "reflect" ? reflection : replication)[space - 1](x, pads);
}

}  // namespace

void register_pad(Registry& ops) {
  ops.add(constant_pad_nd, {
      .schema = "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        return formatted_like(m.meta("self"), padded_sizes(m, m.meta("self"), m.ints("pad")));
      },
      .lower = lower_constant,
      .vjp = {{"self, pad, value", [](Vjp& v) -> Grads {
        Sizes back = v.ints("pad");
        for (SymInt& p : back) p = -p;
        return {constant_pad_nd(v.grad(0), back, 0)};
      }}},
  });
#define TENON_REPEATING_PAD(n, pads, name, array, array_backward, reflected)                                           \
  ops.add(array[n - 1], {.schema = name "_pad" #n "d(Tensor self, SymInt[" #pads "] padding) -> Tensor",               \
                         .meta = [](MetaCall& m) { return repeating_meta(m, n, reflected); },                          \
                         .lower = [](Lower& l) { lower_repeating(l, n, reflected); },                                  \
                         .vjp = {{"self", [](Vjp& v) { return array_backward[n - 1](v.grad(), v["self"], v.arg("padding")); }}}});  \
  ops.add(array_backward[n - 1], {.schema = name "_pad" #n "d_backward(Tensor grad_output, Tensor self, SymInt[" #pads \
                                                 "] padding) -> Tensor",                                               \
                                  .meta = [](MetaCall& m) -> Metas { return like(m.meta("self"), m.meta("self").sizes); },       \
                                  .lower = [](Lower& l) { lower_repeating_backward(l, n, reflected); },                \
                                  .vjp = {{"grad_output", [](Vjp& v) { return array[n - 1](v.grad(), v.arg("padding")); }}}})
  TENON_REPEATING_PAD(1, 2, "reflection", reflection, reflection_backward, true);
  TENON_REPEATING_PAD(2, 4, "reflection", reflection, reflection_backward, true);
  TENON_REPEATING_PAD(3, 6, "reflection", reflection, reflection_backward, true);
  TENON_REPEATING_PAD(1, 2, "replication", replication, replication_backward, false);
  TENON_REPEATING_PAD(2, 4, "replication", replication, replication_backward, false);
  TENON_REPEATING_PAD(3, 6, "replication", replication, replication_backward, false);
#undef TENON_REPEATING_PAD
  ops.add(circular, {
      .schema = "_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
      .kind = OpKind::composite,
      .decompose = padded_circularly,
  });
  ops.add({
      .schema = "pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return padded(b, b.string("mode"), b.arg("value")); },
  });
  ops.add({
      .schema = "_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            static const char* modes[] = {"reflect", "replicate", "circular", "constant"};
            int64_t mode = b.constant("mode");
            b.require(mode >= 0 && mode < 4, "mode: expected 0 to 3, got ", mode);
            return padded(b, modes[mode], b.arg("value"));
          },
  });
}

}  // namespace tenon
