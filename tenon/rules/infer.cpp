#include "tenon/rules/infer.h"

#include <algorithm>

#include "tenon/rules/guards.h"

namespace tenon {

TensorMeta like(const TensorMeta& meta, Sizes sizes) { return like(meta, std::move(sizes), meta.dtype); }
TensorMeta like(const TensorMeta& meta, Sizes sizes, DType dtype) {
  TensorMeta out = make_meta(dtype, std::move(sizes), meta.device);
  return out;
}

namespace {

int category(DType d) { return d == DType::boolean ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; }

// The default dtype of a number's kind.
DType number_dtype(DType d) { return is_floating(d) ? DType::f32 : is_complex(d) ? DType::c64 : d; }

struct Standing {  // the dtypes met so far, by category of operand
  std::optional<DType> dims, zero_dim, number;
  static void meet(std::optional<DType>& slot, DType d) { slot = slot ? promote(*slot, d) : d; }
  void add(const TensorMeta& m) {
    if (m.wrapped_number) meet(number, number_dtype(m.dtype));
    else if (m.rank() == 0) meet(zero_dim, m.dtype);
    else meet(dims, m.dtype);
  }
  DType result() const {
    auto combine = [](std::optional<DType> higher, std::optional<DType> lower) {
      if (!higher) return lower;
      if (!lower || category(*lower) <= category(*higher)) return higher;
      return std::optional<DType>(promote(*higher, *lower));
    };
    std::optional<DType> d = combine(dims, combine(zero_dim, number));
    return d.value_or(DType::f32);
  }
};

void add_number(Standing& standing, const CallArg& arg) {
  if (arg.is<bool>()) Standing::meet(standing.number, DType::boolean);
  else if (auto* s = arg.get<SymInt>()) {
    bool real = !s->is_int() &&
                (s->kind() == sym::Kind::real || s->kind() == sym::Kind::to_float || s->kind() == sym::Kind::true_div);
    Standing::meet(standing.number, real ? DType::f32 : DType::i64);
  } else if (arg.is<double>()) Standing::meet(standing.number, DType::f32);
  else if (arg.is<std::complex<double>>()) Standing::meet(standing.number, DType::c64);
}

bool takes_operand(const SchemaArg& slot) {
  return !slot.type.list && (slot.type.kind == TypeKind::tensor || slot.type.kind == TypeKind::scalar);
}

}  // namespace

bool is_among(std::string_view name, const char* names) {
  if (!names) return true;
  for (std::string_view rest = names; !rest.empty();) {
    size_t comma = rest.find(',');
    if (trim(rest.substr(0, comma)) == name) return true;
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

DType common_dtype(const ArgsView& call, const char* among) {
  Standing standing;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const SchemaArg& slot = call.op.schema.args[i];
    if (!takes_operand(slot) || !is_among(slot.name, among)) continue;
    if (call.is_tensor(i)) standing.add(call.meta(i));
    else add_number(standing, call.args[i]);
  }
  return standing.result();
}

Sizes broadcast(const Sizes& a, const Sizes& b, const ArgsView& call) {
  const Sizes& longer = a.size() >= b.size() ? a : b;
  const Sizes& shorter = a.size() >= b.size() ? b : a;
  Sizes out = longer;
  size_t extra = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    SymInt x = longer[extra + i], y = shorter[i];
    if (x == y || surely_one(y)) continue;
    if (surely_one(x)) {
      out[extra + i] = y;
      continue;
    }
    if (known(sym::eq(x, y)) == false && (statically_true(sym::eq(x, 1)) || statically_true(sym::eq(y, 1)))) {
      if (statically_true(sym::eq(x, 1))) out[extra + i] = y;  // by the examples, or by what a guard says
      continue;
    }
    relies_on_equal(call, x, y, "sizes ", a, " and ", b, " do not broadcast: dimension ", extra + i, " is ", x,
                    " in one and ", y, " in the other");
    if (y.is_int()) out[extra + i] = y;
  }
  return out;
}

Sizes broadcast_sizes(const ArgsView& call) {
  Sizes sizes;
  for (size_t i = 0; i < call.args.size(); ++i)
    if (call.is_tensor(i)) sizes = broadcast(sizes, call.meta(i).sizes, call);
  return sizes;
}

Sizes pointwise_strides(const Sizes& sizes, std::span<const TensorMeta* const> operands) {
  bool same = true;
  const TensorMeta* first = nullptr;
  for (const TensorMeta* m : operands) {
    if (m->rank() == 0 && !sizes.empty()) continue;
    if (!first) first = m;
    same = same && m->sizes == sizes && m->strides == first->strides;
  }
  if (!first || (same && is_contiguous(*first))) return contiguous_strides(sizes);
  if (same && is_dense(*first)) return first->strides;
  // Dimensions from innermost to outermost: sorted by the operands' strides, as far as they tell.
  std::vector<size_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = sizes.size() - 1 - i;
  auto compare = [&](size_t a, size_t b) {  // > 0: a lies outside b
    for (const TensorMeta* m : operands) {
      auto stride = [&](size_t d) -> std::optional<int64_t> {
        size_t extra = sizes.size() - m->rank();
        if (d < extra || m->sizes[d - extra] == SymInt(1) || !m->strides[d - extra].is_int()) return std::nullopt;
        return m->strides[d - extra].as_int();
      };
      std::optional<int64_t> x = stride(a), y = stride(b);
      if (!x || !y || *x == 0 || *y == 0) continue;
      if (*x != *y) return *x < *y ? -1 : 1;
      if (sizes[a].is_int() && sizes[b].is_int() && sizes[a].as_int() > sizes[b].as_int()) return 1;
    }
    return 0;
  };
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t j = i, k = i; k-- > 0;) {
      int c = compare(order[k], order[j]);
      if (c > 0) {
        std::swap(order[k], order[j]);
        j = k;
      } else if (c < 0) break;
    }
  Sizes strides(sizes.size(), SymInt(1));
  SymInt step = 1;
  for (size_t d : order) {
    strides[d] = step;
    step = step * (sizes[d] == SymInt(0) ? SymInt(1) : sizes[d]);
  }
  return strides;
}

bool is_operand(const SchemaArg& slot) {
  bool number = slot.type.kind == TypeKind::floating || slot.type.kind == TypeKind::integer;
  return takes_operand(slot) || (number && !slot.type.list);
}

loop::Expr ScalarRule::operator()(const Scalars& x) const {
  if (operands_ == 0) return whole_(x);
  loop::Expr e[4];
  size_t n = 0;
  for (size_t i = 0; i < x.args.size() && n < operands_; ++i)
    if (is_operand(x.op.schema.args[i])) e[n++] = x.values[i];
  switch (operands_) {
    case 1: return one_(e[0]);
    case 2: return two_(e[0], e[1]);
    case 3: return three_(e[0], e[1], e[2]);
    default: return four_(e[0], e[1], e[2], e[3]);
  }
}

namespace {

DType pointwise_compute_dtype(const OpDef& def, const ArgsView& call) {
  if (def.promote == Promote::first) return call.tensor(size_t{0}).dtype();
  DType dtype = common_dtype(call, def.promotes);
  if (def.promote == Promote::int_to_float && !is_floating(dtype) && !is_complex(dtype)) return DType::f32;
  return dtype;
}

void lower_pointwise(const OpDef& def, Lower& l) {
  loop::Compute common = loop::compute_of(def.promote == Promote::own ? DType::f32 : pointwise_compute_dtype(def, l));
  l.tensor([&](const Index& i) {
    std::vector<loop::Expr> values(l.args.size());
    for (size_t k = 0; k < l.args.size(); ++k) {
      const SchemaArg& slot = l.op.schema.args[k];
      if (l.is_tensor(k)) {
        loop::Expr x = l[k].broadcast_at(i);
        bool promotes = def.promote != Promote::own && is_among(slot.name, def.promotes);
        values[k] = promotes ? cast(x, common) : x;
      } else if (l.given(k) && l.args[k].is_number() && is_operand(slot)) {
        values[k] = l.scalar(k, common);
      }
    }
    return def.scalar(Scalars(l, values));
  });
}

Metas view_meta(const OpDef& def, MetaCall& call) {
  std::vector<IndexMap> maps = def.view(call);
  const TensorMeta& base = call.meta(size_t{0});
  if (call.op.schema.returns.size() == 1 && call.op.schema.returns[0].type.list) {
    std::vector<TensorMeta> metas;
    for (const IndexMap& map : maps) metas.push_back(viewed(map, base));
    return {BasicArg<TensorMeta>(std::move(metas))};
  }
  Metas out;
  for (const IndexMap& map : maps) out.values.emplace_back(viewed(map, base));
  return out;
}

}  // namespace

Metas pointwise_meta(const ArgsView& call) {
  const OpDef& def = *call.op.def;
  std::vector<const TensorMeta*> operands;
  for (size_t i = 0; i < call.args.size(); ++i)
    if (call.is_tensor(i)) operands.push_back(&call.meta(i));
  TensorMeta out;
  out.dtype = def.promote == Promote::to_boolean ? DType::boolean : pointwise_compute_dtype(def, call);
  out.sizes = broadcast_sizes(call);
  out.strides = pointwise_strides(out.sizes, operands);
  if (!operands.empty()) out.device = operands[0]->device;
  return out;
}

Metas floating_meta(MetaCall& m) {
  for (size_t i = 0; i < m.args.size(); ++i)
    m.require(!m.is_tensor(i) || is_floating(m.meta(i).dtype) || m.meta(i).wrapped_number,
              "expected a floating point tensor, got ", describe(m.arg(i)));
  return pointwise_meta(m);
}

Metas numeric_meta(MetaCall& m) {
  Metas out = pointwise_meta(m);
  m.require(common_dtype(m, m.op.def->promotes) != DType::boolean, "boolean tensors are not supported, got ",
            describe(m.args[0]), "; convert it first");
  return out;
}

namespace {

void require_not_negative(const ArgsView& call, const TensorMeta& result) {
  auto negative = [](SymInt e) { return e.is_int() && e.as_int() < 0; };
  for (const Sizes* list : {&result.sizes, &result.strides})
    for (SymInt e : *list)
      call.require(!negative(e), "the result would have a negative ",
                   list == &result.sizes ? "size: " : "stride: ", *list);
  call.require(!negative(result.offset), "the result would begin in front of its storage, at ", result.offset);
}

}  // namespace

bool meets_complex(std::span<const CallArg> args) {
  for (const CallArg& arg : args) {
    if (auto* t = arg.get<Tensor>()) {
      if (*t && is_complex(t->dtype())) return true;
    } else if (auto* list = arg.get<std::vector<Tensor>>()) {
      for (const Tensor& t : *list)
        if (t && is_complex(t.dtype())) return true;
    } else if (auto* dtype = arg.get<DType>()) {
      if (is_complex(*dtype)) return true;
    } else if (arg.is<std::complex<double>>()) {
      return true;
    }
  }
  return false;
}

std::optional<Metas> infer(const Op& op, std::span<const CallArg> args) {
  const OpDef* def = op.def;
  if (!def) return std::nullopt;
  if (!def->view && op.kind != OpKind::symbolic && meets_complex(args)) {
    if (def->complex || def->decompose) return std::nullopt;
    if (def->lower || def->scalar || def->host)
      fail_unsupported(text("the operator ", op.name(), " of complex tensors is not supported yet"));
  }
  MetaCall call(op, args);
  if (def->meta || def->view) {
    Metas out = def->meta ? def->meta(call) : view_meta(*def, call);
    for (const auto& value : out.values)
      for_each_tensor(value, [&](const TensorMeta& meta) { require_not_negative(call, meta); });
    return out;
  }
  if (def->scalar) return pointwise_meta(call);
  return std::nullopt;
}

Implementation implementation_of(const Op& op, std::span<const CallArg> args) {
  const OpDef* def = op.def;
  if (!def || op.functional) return Implementation::none;
  bool complex = op.kind != OpKind::symbolic && meets_complex(args);
  if (complex && def->complex) return Implementation::composite;
  if (def->view) return Implementation::view;
  if (complex && (def->lower || def->scalar || def->host))
    return def->decompose ? Implementation::composite : Implementation::none;
  bool stages = def->lower || def->scalar;
  if (def->host && (!stages || !def->host_if || def->host_if(ArgsView(op, args)))) return Implementation::host;
  if (stages) return Implementation::stages;
  if (def->decompose) return Implementation::composite;
  if (op.traits.asserts) return Implementation::assertion;
  if (op.traits.measures != Measure::none) return Implementation::number;
  return Implementation::none;
}

DecomposeRule meaning_of(const Op& op, std::span<const CallArg> args) {
  if (implementation_of(op, args) != Implementation::composite) return nullptr;
  return op.def->complex && meets_complex(args) ? op.def->complex : op.def->decompose;
}

void lower_op(Lower& lower) {
  const OpDef* def = lower.op.def;
  expect(def && (def->lower || def->scalar), lower.op.name(), " has no stages");
  if (def->lower) def->lower(lower);
  else lower_pointwise(*def, lower);
}

}  // namespace tenon
