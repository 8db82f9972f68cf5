#include "tenon/ops/padding.h"

#include "tenon/ops/accumulation.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/memory_format.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle constant_pad_nd, pad;
static Handle circular;
// Pads of the last n dimensions that repeat what is there, and their gradients.
template <size_t n, bool reflected>
static Handle repeating_pad;
template <size_t n, bool reflected>
static Handle repeating_pad_backward;

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
  Ref x = l["self"];
  Sizes pads = l.ints("pad"), sizes = x.sizes();
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
    return x.at_if(inside, at, l.scalar("value", loop::compute_of(x.dtype())));
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
  const TensorMeta& x = m.meta("self");
  m.require(x.rank() == space + 1 || x.rank() == space + 2, "expected an input of ", space + 1, " or ", space + 2,
            " dimensions, got ", x);
  Sizes pads = m.ints("padding");
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
  Ref x = l["self"];
  Sizes pads = l.ints("padding"), sizes = x.sizes();
  l.tensor([&](const Index& i) { return x.at(source_of(l, i, sizes, pads, space, reflected)); });
}

void lower_repeating_backward(Lower& l, size_t space, bool reflected) {
  Ref grad = l["grad_output"];
  Sizes pads = l.ints("padding"), sizes = l.out().sizes();
  accumulate(l, Sizes(grad.sizes()), [&](Ref target, const Index& i) {
    l.store(target, source_of(l, i, sizes, pads, space, reflected), grad.at(i), loop::Mode::add);
  });
}

Results padded_circularly(Build& b) {
  Tensor x = b["self"];
  Sizes pads = b.ints("pad");
  size_t rank = x.rank(), space = pads.size() / 2;
  b.require(pads.size() % 2 == 0 && (rank == space + 1 || rank == space + 2),
            "expected pads for all but the first one or two dimensions, got ", pads, " for ", x.meta());
  for (size_t d = rank - space; d < rank; ++d) {
    SymInt first = before(pads, d, rank), last = after(pads, d, rank), size = x.sizes()[d];
    b.require(!statically_true(sym::gt(first, size)) && !statically_true(sym::gt(last, size)),
              "a circular pad must not exceed the dimension, got pads ", pads, " for ", b["self"].meta());
    SymInt from = larger(-first, 0), to = size - larger(-last, 0);
    Tensor middle = x;
    if (!(from == SymInt(0) && to == size)) middle = slice(x, d, from, to);
    std::vector<Tensor> parts;
    if (!statically_true(sym::le(first, 0))) parts.push_back(slice(x, d, to - first, to));
    parts.push_back(middle);
    if (!statically_true(sym::le(last, 0))) parts.push_back(slice(x, d, from, from + last));
    if (parts.size() == 1) x = middle;
    else x = cat(parts, d);
  }
  return contiguous(x);
}

Results padded(Build& b, const std::string& mode) {
  const CallArg& value = b.arg("value");
  Tensor x = b["self"];
  Sizes pads = b.ints("pad");
  b.require(pads.size() % 2 == 0, "expected an even number of pads, got ", pads);
  if (mode == "constant") return constant_pad_nd(x, pads, value.is_none() ? CallArg(0.0) : value);
  b.require(value.is_none() || b.number("value") == 0, "a value is only for mode='constant', not for ", quoted(mode));
  b.require(mode == "reflect" || mode == "replicate" || mode == "circular",
            "mode: expected 'constant', 'reflect', 'replicate' or 'circular', got ", quoted(mode));
  size_t space = pads.size() / 2;
  bool fits = space >= 1 && space <= 3 && (x.rank() == space + 1 || x.rank() == space + 2);
  b.require(fits, "mode='", mode, "' pads the last 1, 2 or 3 dimensions of a tensor with one or two more, got pads ",
            pads, " for ", x.meta());
  if (mode == "circular") return circular(x, pads);
  bool reflected = mode == "reflect";
  if (space == 1) return (reflected ? repeating_pad<1, true> : repeating_pad<1, false>)(x, pads);
  if (space == 2) return (reflected ? repeating_pad<2, true> : repeating_pad<2, false>)(x, pads);
  return (reflected ? repeating_pad<3, true> : repeating_pad<3, false>)(x, pads);
}

// Sequences of different lengths side by side, the shorter ones filled up.
Results padded_together(Build& b) {
  std::vector<Tensor> sequences = b.tensors("sequences"), padded;
  b.require(!sequences.empty(), "expected at least one sequence");
  bool right = b.string("padding_side") == "right";
  b.require(right || b.string("padding_side") == "left", "padding_side: expected 'left' or 'right', got ",
            quoted(b.string("padding_side")));
  SymInt longest = 0;
  for (const Tensor& t : sequences) {
    b.require(t.rank() >= 1, "expected sequences of at least 1 dimension, got ", t.meta());
    longest = larger(longest, t.sizes()[0]);
  }
  for (const Tensor& t : sequences) {
    Sizes pads(2 * (t.rank() - 1), SymInt(0));
    SymInt missing = longest - t.sizes()[0];
    pads.push_back(right ? SymInt(0) : missing);
    pads.push_back(right ? missing : SymInt(0));
    padded.push_back(constant_pad_nd(t, pads, b.arg("padding_value")));
  }
  return stack(padded, b.flag("batch_first") ? 0 : 1);
}

template <size_t n, bool reflected>
void add_repeating_pad(Registry& ops, const char* schema, const char* backward_schema) {
  ops.add(
      repeating_pad<n, reflected>,
      {
          .schema = schema,
          .meta = [](MetaCall& m) { return repeating_meta(m, n, reflected); },
          .lower = [](Lower& l) { lower_repeating(l, n, reflected); },
          .vjp = {{"self",
                   [](Vjp& v) { return repeating_pad_backward<n, reflected>(v.grad(), v["self"], v.arg("padding")); }}},
          .complex = [](Build& b) { return by_parts(b, "self"); },
      });
  ops.add(repeating_pad_backward<n, reflected>,
          {
              .schema = backward_schema,
              .meta = [](MetaCall& m) -> Metas {
                require_sizes(m, "grad_output", repeating_meta(m, n, reflected).values[0].get<TensorMeta>()->sizes);
                return like(m.meta("self"), m.meta("self").sizes);
              },
              .lower = [](Lower& l) { lower_repeating_backward(l, n, reflected); },
              .vjp = {{"grad_output", [](Vjp& v) { return repeating_pad<n, reflected>(v.grad(), v.arg("padding")); }}},
          });
}

}  // namespace

void register_padding(Registry& ops) {
  ops.add(constant_pad_nd, {
                               .schema = "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
                               .meta = [](MetaCall& m) -> Metas {
                                 return formatted_like(m.meta("self"), padded_sizes(m, m.meta("self"), m.ints("pad")));
                               },
                               .lower = lower_constant,
                               .vjp = {{"self",
                                        [](Vjp& v) {
                                          Sizes back = v.ints("pad");
                                          for (SymInt& p : back) p = -p;
                                          return constant_pad_nd(v.grad(), back, 0);
                                        }}},
                               .complex = [](Build& b) { return by_parts(b, "self, value"); },
                           });
  add_repeating_pad<1, true>(ops, "reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
                             "reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor");
  add_repeating_pad<2, true>(ops, "reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
                             "reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor");
  add_repeating_pad<3, true>(ops, "reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
                             "reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor");
  add_repeating_pad<1, false>(
      ops, "replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
      "replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor");
  add_repeating_pad<2, false>(
      ops, "replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
      "replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor");
  add_repeating_pad<3, false>(
      ops, "replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
      "replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor");
  ops.add(circular, {
                        .schema = "_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
                        .kind = OpKind::composite,
                        .decompose = padded_circularly,
                    });
  ops.add(pad, {
                   .schema = "pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
                   .kind = OpKind::composite,
                   .decompose = [](Build& b) { return padded(b, b.string("mode")); },
               });
  ops.add({
      .schema = "_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            static const char* modes[] = {"reflect", "replicate", "circular", "constant"};
            int64_t mode = b.constant("mode");
            b.require(mode >= 0 && mode < 4, "mode: expected 0 to 3, got ", mode);
            return padded(b, modes[mode]);
          },
  });
  ops.add({
      .schema = "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str "
                "padding_side=\"right\") -> Tensor",
      .kind = OpKind::composite,
      .decompose = padded_together,
  });
}

}  // namespace tenon
