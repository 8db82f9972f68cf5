#include "tenon/ops/repeat.h"

#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/index_select.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle repeat, repeat_interleave_int;
static Handle repeat_interleave;

namespace {

using loop::Expr;

Metas repeat_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  Sizes repeats = m.ints("repeats"), sizes;
  m.require(repeats.size() >= x.rank(), "expected at least ", x.rank(), " repeats, got ", repeats);
  for (size_t i = 0; i < repeats.size(); ++i) {
    m.require(!repeats[i].is_int() || repeats[i].as_int() >= 0, "repeats must not be negative, got ", repeats);
    size_t fresh = repeats.size() - x.rank();
    sizes.push_back(i < fresh ? repeats[i] : repeats[i] * x.sizes[i - fresh]);
  }
  return like(x, sizes);
}

void lower_repeat(Lower& l) {
  Ref x = l["self"];
  size_t rank = x.sizes().size();
  l.tensor([&](const Index& i) {
    Index at;
    for (size_t d = 0; d < rank; ++d) {
      Expr own = i[i.size() - rank + d];
      at.push_back(
          x.size(d) == l.out().size(i.size() - rank + d) ? own : call(loop::Fn::remainder, own, l.extent(x.size(d))));
    }
    return x.at(at);
  });
}

// Each repeat is a dimension of its own; the sum over them is what one element gets.
Grads repeat_gradient(Vjp& v) {
  Sizes repeats = v.ints("repeats"), own = v["self"].sizes(), split, dims;
  size_t fresh = repeats.size() - own.size();
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (i < fresh || !(repeats[i] == SymInt(1))) {
      dims.push_back(static_cast<int64_t>(split.size()));
      split.push_back(repeats[i]);
    }
    if (i >= fresh) split.push_back(own[i - fresh]);
  }
  for (SymInt r : repeats)
    if (r == SymInt(0)) return {zeros(own, v.grad())};
  if (dims.empty()) return {v.grad()};
  return {sum(reshape(v.grad(), split), dims)};
}

Tensor repeated(const Tensor& x, Sizes repeats) {
  while (repeats.size() < x.rank()) repeats.insert(0, 1);
  return repeat(x, repeats);
}

Tensor interleaved(Tensor x, SymInt times, const ArgsView& call) {
  if (!call.given("dim")) x = reshape(x, Sizes{x.numel()});
  else if (x.rank() == 0) x = reshape(x, Sizes{1});
  const size_t dim = call.given("dim") ? call.dim("dim", x.rank()) : 0;
  call.require(!times.is_int() || times.as_int() >= 0, "repeats must not be negative, got ", times);
  Sizes wide = x.sizes(), flat = x.sizes();
  wide.insert(dim + 1, times);
  flat[dim] = flat[dim] * times;
  Tensor spread = expand(unsqueeze(x, static_cast<int64_t>(dim + 1)), wide);
  return view(clone(spread, MemoryFormat::contiguous), flat);
}

}  // namespace

void register_repeat(Registry& ops) {
  ops.add(repeat, {
                      .schema = "repeat(Tensor self, SymInt[] repeats) -> Tensor",
                      .meta = repeat_meta,
                      .lower = lower_repeat,
                      .vjp = {{"self", repeat_gradient}},
                      .complex = [](Build& b) { return by_parts(b, "self"); },
                  });
  ops.add({
      .schema = "tile(Tensor self, SymInt[] dims) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results { return one(repeated(b["self"], b.ints("dims"))); },
  });
  ops.add(repeat_interleave_int,
          {
              .schema =
                  "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) "
                  "-> Tensor",
              .kind = OpKind::composite,
              .decompose = [](Build& b) -> Results { return one(interleaved(b["self"], b.integer("repeats"), b)); },
          });
  ops.add(repeat_interleave,
          {
              .schema = "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
              .meta = [](MetaCall& m) -> Metas {
                const TensorMeta& repeats = m.meta("repeats");
                m.require(repeats.rank() == 1 && (repeats.dtype == DType::i64 || repeats.dtype == DType::i32),
                          "expected i64 or i32 repeats of 1 dimension, got ", repeats);
                return like(repeats, {m.given("output_size") ? m.integer("output_size") : data_dependent_size()});
              },
              .host = {"repeat_interleave",
                       {"repeats must not be negative, got {}",
                        "output_size: expected the sum of the repeats, {}, got {}"}},
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
            relies_on_equal(b, a, n, "expected ", n, " repeats, got ", repeats.meta());
            return index_select(x, dim, repeat_interleave(repeats, kw("output_size", b.arg("output_size"))));
          },
  });
}

}  // namespace tenon
