#include "tenon/ops/indexing.h"

#include "tenon/ops/accumulation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/masking.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle index_tensor, index_put;
static Handle unsafe_index;

void require_index(const ArgsView& call, const TensorMeta& index) {
  bool unread = count(index.sizes) == SymInt(0);
  call.require(index.dtype == DType::i64 || index.dtype == DType::i32 || unread, "expected i64 or i32 indices, got ",
               index);
}

loop::Expr wrapped(Lower& l, loop::Expr index, SymInt size) {
  return loop::select(index < 0, index + l.extent(size), index);
}

Index unravelled(Lower& l, loop::Expr flat, const Sizes& sizes) {
  Index at(sizes.size(), loop::Expr(0));
  for (size_t d = sizes.size(); d-- > 0;) {
    at[d] = d == 0 ? flat : call(loop::Fn::remainder, flat, l.extent(sizes[d]));
    flat = call(loop::Fn::floor_div, flat, l.extent(sizes[d]));
  }
  return at;
}

namespace {

using loop::Expr;

bool is_mask(DType dtype) { return dtype == DType::boolean || dtype == DType::u8; }

// How index tensors and the tensor they index meet: which dims are named, where the results' dims go.
struct Plan {
  std::vector<Tensor> indices;   // per dim of self; none where it is taken whole
  SmallVector<size_t, 6> order;  // dims of self in the order they are handled: named dims in front where they are apart
  size_t first = 0, named = 0;   // named dims are order[first .. first + named)
  Sizes shape, sizes;            // of the broadcast indices, of the result
};

Plan plan(const ArgsView& m, const TensorMeta& self, const std::vector<Tensor>& given) {
  Plan p;
  m.require(given.size() <= self.rank(), "too many indices: ", given.size(), " for ", self);
  p.indices = given;
  p.indices.resize(self.rank());
  SmallVector<size_t, 6> named, rest;
  for (size_t d = 0; d < self.rank(); ++d) {
    const Tensor& t = p.indices[d];
    if (!t) {
      rest.push_back(d);
      continue;
    }
    m.require(t.dtype() == DType::i64 || t.dtype() == DType::i32, "indices must be i64, i32, u8 or bool tensors, got ",
              t.meta());
    p.shape = broadcast(p.shape, t.sizes(), m);
    named.push_back(d);
  }
  bool adjacent = named.empty() || named.back() - named.front() + 1 == named.size();
  p.first = adjacent && !named.empty() ? named.front() : 0;
  p.named = named.size();
  for (size_t i = 0; i < rest.size() + named.size(); ++i) {
    if (i < p.first) p.order.push_back(rest[i]);
    else if (i < p.first + p.named) p.order.push_back(named[i - p.first]);
    else p.order.push_back(rest[i - p.named]);
  }
  for (size_t i = 0; i < p.order.size(); ++i) {
    if (i == p.first && p.named)
      for (SymInt s : p.shape) p.sizes.push_back(s);
    if (i < p.first || i >= p.first + p.named) p.sizes.push_back(self.sizes[p.order[i]]);
  }
  return p;
}

// Strides as an element-wise op over self (standing still in the named dims) and the indices would have them.
Sizes planned_strides(const Plan& p, const TensorMeta& self) {
  std::vector<TensorMeta> operands(1);
  TensorMeta& base = operands[0];
  for (size_t i = 0; i < p.order.size(); ++i) {
    if (i == p.first && p.named)
      for (SymInt s : p.shape) {
        base.sizes.push_back(s);
        base.strides.push_back(0);
      }
    if (i >= p.first && i < p.first + p.named) continue;
    base.sizes.push_back(self.sizes[p.order[i]]);
    base.strides.push_back(self.strides[p.order[i]]);
  }
  for (const Tensor& t : p.indices) {
    if (!t) continue;
    TensorMeta m;
    size_t before = p.first + p.shape.size() - t.rank();
    for (size_t i = 0; i < p.sizes.size(); ++i) {
      bool own = i >= before && i < before + t.rank();
      m.sizes.push_back(own ? t.sizes()[i - before] : SymInt(1));
      m.strides.push_back(own ? t.strides()[i - before] : SymInt(0));
    }
    operands.push_back(std::move(m));
  }
  std::vector<const TensorMeta*> pointers;
  for (const TensorMeta& m : operands) pointers.push_back(&m);
  return pointwise_strides(p.sizes, pointers);
}

// The place in self of element i of the result.
Index place(Lower& l, const Plan& p, const Sizes& self, const Index& i) {
  Index out(self.size(), Expr(0));
  Index shape(i.begin() + static_cast<ptrdiff_t>(p.first),
              i.begin() + static_cast<ptrdiff_t>(p.first + p.shape.size()));
  for (size_t k = 0; k < p.order.size(); ++k) {
    size_t d = p.order[k];
    if (k < p.first) out[d] = i[k];
    else if (k >= p.first + p.named) out[d] = i[k - p.named + p.shape.size()];
    else out[d] = wrapped(l, l.item("indices", d).broadcast_at(shape), self[d]);
  }
  return out;
}

// A mask stands for as many dims as it has; it is the same as the places where it is true, one tensor per dim: those
// that places(mask) gives.
std::vector<Tensor> without_masks(const ArgsView& call, const TensorMeta& self, const std::vector<Tensor>& indices,
                                  const std::function<std::vector<Tensor>(const Tensor& mask)>& places) {
  std::vector<Tensor> out;
  for (const Tensor& t : indices) {
    if (!t || !is_mask(t.dtype())) {
      out.push_back(t);
      continue;
    }
    bool fits = out.size() + t.rank() <= self.rank();
    for (size_t d = 0; fits && d < t.rank(); ++d)
      fits = !statically_true(sym::ne(t.sizes()[d], self.sizes[out.size() + d]));
    call.require(fits, "the mask ", t.meta(), " does not fit dimension ", out.size(), " and those after it of ", self);
    for (Tensor& p : places(t)) out.push_back(std::move(p));
  }
  return out;
}

std::vector<const char*> index_errors() {
  return {"index {} is out of range for dimension {} of size {}", "the sizes of the indices do not go together",
          "a mask does not fit dimension {} and those after it", "the values do not broadcast to what is indexed",
          "too many indices: there are {} dimensions"};
}

// Places whose number is not known yet.
std::vector<Tensor> unknown_places(const Tensor& mask) {
  return std::vector<Tensor>(mask.rank(), Tensor(make_meta(DType::i64, {data_dependent_size()}), nullptr, 0));
}

bool has_mask(const std::vector<Tensor>& indices) {
  for (const Tensor& t : indices)
    if (t && is_mask(t.dtype())) return true;
  return false;
}

// Where the first index is a mask and nothing else is named, its places can be counted on the way.
bool only_first_is_mask(const std::vector<Tensor>& indices) {
  if (indices.empty() || !indices[0] || !is_mask(indices[0].dtype()) || indices[0].rank() == 0) return false;
  for (size_t i = 1; i < indices.size(); ++i)
    if (indices[i]) return false;
  return true;
}

Metas index_meta(MetaCall& m) {
  const TensorMeta& self = m.meta("self");
  std::vector<Tensor> places = without_masks(m, self, m.tensors("indices"), unknown_places);
  Plan p = plan(m, self, places);
  TensorMeta out = like(self, p.sizes);
  out.strides = planned_strides(p, self);
  return out;
}

void lower_index(Lower& l) {
  std::vector<Tensor> indices = l.tensors("indices");
  l.require(!has_mask(indices), "an index by a mask cannot be part of a fused program");
  Ref self = l["self"];
  Sizes sizes = self.sizes();
  Plan p = plan(l, l.meta("self"), indices);
  l.tensor([&](const Index& i) { return self.at(place(l, p, sizes, i)); });
}

Metas put_meta(MetaCall& m) {
  const TensorMeta &self = m.meta("self"), &values = m.meta("values");
  std::vector<Tensor> indices = m.tensors("indices");
  m.require(values.dtype == self.dtype, "expected values of the dtype of ", self, ", got ", values);
  if (!has_mask(indices)) {
    Plan p = plan(m, self, indices);
    Sizes own = values.sizes;
    while (!own.empty() && own.size() > p.sizes.size() && own[0] == SymInt(1)) own.erase(0);
    m.require(own.size() <= p.sizes.size(), "values ", values, " do not broadcast to ", p.sizes);
    Sizes spread = broadcast(own, p.sizes, m);
    m.require(spread.size() == p.sizes.size(), "values ", values, " do not broadcast to ", p.sizes);
  } else {
    auto unnamed = [](const Tensor& mask) { return std::vector<Tensor>(mask.rank()); };
    size_t named = without_masks(m, self, indices, unnamed).size();  // how many values they take is seen when it runs
    m.require(named <= self.rank(), "indices for ", named, " dimensions, but there are only those of ", self);
  }
  TensorMeta out = like(self, self.sizes);
  const TensorMeta* operand = &self;
  out.strides =
      is_dense(self) ? self.strides : pointwise_strides(self.sizes, std::span<const TensorMeta* const>(&operand, 1));
  return out;
}

// The place among the values of element i of what is written; leading dims of size 1 that the values have more are
// dropped.
Index value_place(Ref values, const Index& i) {
  size_t rank = values.sizes().size();
  Index own(rank > i.size() ? rank - i.size() : 0, Expr(0));
  for (size_t d = own.size(); d < rank; ++d)
    own.push_back(values.size(d) == SymInt(1) ? Expr(0) : i[i.size() - rank + d]);
  return own;
}

// index_put by a mask: element number n among the true ones gets values[n, ...].
void lower_put_by_mask(Lower& l, Ref target) {
  Ref mask = l.item("indices", 0), values = l["values"];
  Sizes domain = target.sizes();
  size_t covered = mask.sizes().size();
  bool one_row = values.sizes().size() < domain.size() - covered + 1 ||
                 values.size(values.sizes().size() - (domain.size() - covered) - 1) == SymInt(1);
  std::optional<Ref> positions;
  if (!one_row) positions = mask_positions(l, mask);
  l.stage(domain, [&](const Index& i) {
    Index at(i.begin(), i.begin() + static_cast<ptrdiff_t>(covered)), row = i.drop_first(covered);
    Expr hit = cast(mask.at(at), loop::Compute::boolean);
    row.insert(row.begin(), one_row ? l.extent(0) : loop::select(hit, positions->at(at), l.extent(0)));
    l.store_if(hit, target, i, values.at_if(hit, value_place(values, row), 0),
               l.flag("accumulate") ? loop::Mode::add : loop::Mode::set);
  });
}

void lower_put(Lower& l) {
  Ref out = l.out();
  WideResult wide(l, out);
  l.copy(l["self"], wide.target);
  std::vector<Tensor> indices = l.tensors("indices");
  if (has_mask(indices)) {
    l.require(only_first_is_mask(indices),
              "a mask beside other indices cannot be part of a fused program; write in two steps");
    lower_put_by_mask(l, wide.target);
  } else {
    Plan p = plan(l, l.meta("self"), indices);
    Sizes sizes = out.sizes();
    l.stage(p.sizes, [&](const Index& i) {
      l.store(wide.target, place(l, p, sizes, i), l["values"].at(value_place(l["values"], i)),
              l.flag("accumulate") ? loop::Mode::add : loop::Mode::set);
    });
  }
  wide.finish();
}

Grads index_gradient(Vjp& v) {
  return {index_put(zeros(v["self"].sizes(), v.grad()), v.arg("indices"), v.grad(), true)};
}

// What a masked index looks up where the mask is false may lie anywhere: 0 is as good a place as another.
std::vector<Tensor> masked_indices(const Build& b) {
  std::vector<Tensor> inside;
  for (const Tensor& t : b.tensors("indices")) inside.push_back(t ? Tensor(mul(t, b["mask"])) : none);
  return inside;
}

}  // namespace

void register_indexing(Registry& ops) {
  ops.add(index_tensor, {
                            .schema = "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
                            .meta = index_meta,
                            .lower = lower_index,
                            .vjp = {{"self", index_gradient}},
                            .host = {"index_by_masks", index_errors()},
                            .host_if = [](const ArgsView& call) { return has_mask(call.tensors("indices")); },
                            .complex = [](Build& b) { return by_parts(b, "self"); },
                        });
  ops.add(unsafe_index, {
                            .schema = "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
                            .meta = index_meta,
                            .lower = lower_index,
                            .vjp = {{"self", index_gradient}},
                        });
  ops.add(index_put,
          {
              .schema = "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
              .meta = put_meta,
              .lower = lower_put,
              .vjp = {{"self",
                       [](Vjp& v) -> Tensor {
                         if (v.flag("accumulate")) return v.grad();
                         return index_put(v.grad(), v.arg("indices"), zeros(Sizes{}, v.grad()), false);
                       }},
                      {"values", [](Vjp& v) { return index_tensor(v.grad(), v.arg("indices")); }}},
              .host = {"put_by_masks", index_errors()},
              .host_if =
                  [](const ArgsView& call) {
                    std::vector<Tensor> indices = call.tensors("indices");
                    return has_mask(indices) && !only_first_is_mask(indices);
                  },
              .complex = [](Build& b) { return by_parts(b, "self, values"); },
          });
  ops.alias(index_put, {"_unsafe_index_put"});
  ops.add({
      .schema = "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor taken = index_tensor(b["self"], masked_indices(b));
        return where(b["mask"], taken, full(Sizes{}, b.arg("fill"), kw("dtype", taken.dtype())));
      },
  });
  ops.add({
      .schema =
          "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        if (b["self"].numel() == SymInt(0)) return one(b["self"]);
        return index_put(b["self"], masked_indices(b), where(b["mask"], b["values"], zeros(Sizes{}, b["values"])),
                         true);
      },
  });
}

}  // namespace tenon
