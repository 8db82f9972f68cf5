#include "tenon/rules/call.h"

#include <algorithm>
#include <atomic>

#include "tenon/graph/graph.h"
#include "tenon/rules/registry.h"

namespace tenon {

Results::operator Tensor() const {
  expect(values.size() == 1, "one result was expected, there are ", values.size());
  return (*this)[0];
}
Tensor Results::operator[](size_t i) const {
  expect(i < values.size(), "result ", i, " of ", values.size());
  if (auto* t = values[i].get<Tensor>()) return *t;
  expect(values[i].is_none(), "result ", i, " is no tensor");
  return {};
}
const std::vector<Tensor>& Results::list(size_t i) const {
  auto* l = values[i].get<std::vector<Tensor>>();
  expect(l != nullptr, "result ", i, " is no list of tensors");
  return *l;
}

const Op& Handle::op() const {
  // Another thread may be registering: a handle that is set is good, one that is not waits for the registry.
  std::atomic_ref<const Op*> op(const_cast<const Op*&>(op_));
  if (!op.load(std::memory_order_acquire)) registry();
  const Op* set = op.load(std::memory_order_acquire);
  expect(set != nullptr, "a handle that no op was registered for");
  return *set;
}

Results Handle::call(std::span<Given> args) const {
  CallArgs bound = bind(op(), args);
  const Op& o = registry().for_numbers(op(), bound);
  return {dispatch(o, std::move(bound))};
}

Results call_op(const Op& op, CallArgs args) { return {dispatch(op, std::move(args))}; }

CallArgs bind(const Op& op, std::span<Given> given) {
  const auto& slots = op.schema.args;
  CallArgs args(slots.size());
  uint64_t set = 0;
  size_t position = 0;
  for (Given& g : given) {
    size_t at = position;
    if (g.name) {
      int found = op.schema.find(g.name);
      require(found >= 0, op.name(), ": there is no argument ", quoted(g.name));
      at = static_cast<size_t>(found);
    } else {
      require(position < slots.size(), op.name(), ": expected at most ", slots.size(), " arguments, got ",
              given.size());
      ++position;
    }
    args[at] = std::move(g.value);
    if (auto* t = args[at].get<Tensor>(); t && !*t) args[at] = CallArg();
    if (auto wanted = coerce(args[at], slots[at]))
      fail(op.name(), ": argument ", slots[at].name, ": expected ", *wanted, ", got ", describe(args[at]));
    set |= 1ull << at;
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (set >> i & 1) continue;
    require(slots[i].has_default, op.name(), ": argument ", slots[i].name, " is missing");
    args[i] = slots[i].default_value;
  }
  return args;
}

std::string describe(const CallArg& arg) {
  if (auto* t = arg.get<Tensor>()) return *t ? text(t->meta()) : "None";
  if (auto* l = arg.get<std::vector<Tensor>>()) {
    std::string out = "[";
    for (size_t i = 0; i < l->size(); ++i)
      out += (i ? ", " : "") + ((*l)[i] ? text((*l)[i].meta()) : std::string("None"));
    return out + "]";
  }
  static const GraphBody nothing;
  return to_text(nothing, map_tensors<Value>(arg, [](const Tensor&) { return Value{}; }));
}

size_t ArgsView::index(Slot arg) const {
  if (!arg.name) {
    expect(arg.position < args.size(), op.name(), " has no argument ", arg.position);
    return arg.position;
  }
  int found = op.schema.find(arg.name);
  expect(found >= 0 && static_cast<size_t>(found) < args.size(), op.name(), " has no argument ", arg.name);
  return static_cast<size_t>(found);
}

bool ArgsView::given(Slot arg) const {
  size_t i = index(arg);
  if (args[i].is_none()) return false;
  if (auto* t = args[i].get<Tensor>()) return t->defined();
  return true;
}

bool ArgsView::is_tensor(Slot arg) const {
  size_t i = index(arg);
  auto* t = args[i].get<Tensor>();
  return t && t->defined();
}

Tensor ArgsView::tensor(Slot arg) const {
  size_t i = index(arg);
  const CallArg& a = args[i];
  if (auto* t = a.get<Tensor>()) return *t;
  if (auto* b = a.get<bool>()) return Tensor::number(*b);
  if (auto* d = a.get<double>()) return Tensor::number(*d);
  if (auto* s = a.get<SymInt>()) {
    require(s->is_int(), "argument ", op.schema.args[i].name,
            ": a symbolic number cannot be used as a tensor here, got ", *s);
    return Tensor::number(s->as_int());
  }
  require(a.is_none(), "argument ", op.schema.args[i].name, ": expected a tensor, got ", describe(a));
  return {};
}

const TensorMeta& ArgsView::meta(Slot arg) const {
  size_t i = index(arg);
  auto* t = args[i].get<Tensor>();
  require(t && *t, "argument ", op.schema.args[i].name, ": expected a tensor, got ", describe(args[i]));
  return t->meta();
}

std::vector<Tensor> ArgsView::tensors(Slot arg) const {
  size_t i = index(arg);
  if (args[i].is_none()) return {};
  auto* l = args[i].get<std::vector<Tensor>>();
  expect(l != nullptr, op.name(), ": argument ", i, " is no list of tensors");
  return *l;
}

SymInt ArgsView::integer(Slot arg) const {
  size_t i = index(arg);
  if (auto* s = args[i].get<SymInt>()) return *s;
  if (auto* b = args[i].get<bool>()) return *b ? 1 : 0;
  if (auto* d = args[i].get<double>()) {
    require(*d >= -0x1p63 && *d < 0x1p63, "argument ", op.schema.args[i].name, ": expected an integer, got ", *d);
    return static_cast<int64_t>(*d);
  }
  if (auto* t = args[i].get<Tensor>(); t && *t && !t->is_traced() && t->rank() == 0) return scalar_integer(*t);
  fail(op.name(), ": argument ", op.schema.args[i].name, ": expected an integer, got ", describe(args[i]));
}

int64_t ArgsView::constant(Slot arg) const {
  size_t i = index(arg);
  SymInt s = integer(arg);
  require(s.is_int(), "argument ", op.schema.args[i].name, ": expected a constant, got ", s);
  return s.as_int();
}

double ArgsView::number(Slot arg) const {
  size_t i = index(arg);
  if (auto* d = args[i].get<double>()) return *d;
  if (auto* b = args[i].get<bool>()) return *b ? 1 : 0;
  if (auto* s = args[i].get<SymInt>()) {
    if (s->is_int()) return static_cast<double>(s->as_int());
    if (s->kind() == sym::Kind::real) return s->real_value();
  }
  if (auto* t = args[i].get<Tensor>(); t && *t && !t->is_traced() && t->rank() == 0) return scalar_value(*t);
  fail(op.name(), ": argument ", op.schema.args[i].name, ": expected a number, got ", describe(args[i]));
}

bool ArgsView::flag(Slot arg) const {
  size_t i = index(arg);
  if (auto* b = args[i].get<bool>()) return *b;
  if (args[i].is_none()) return false;
  return constant(arg) != 0;
}

Sizes ArgsView::ints(Slot arg) const {
  size_t i = index(arg);
  if (auto* l = args[i].get<Sizes>()) return *l;
  if (auto* s = args[i].get<SymInt>()) return Sizes(1, *s);
  if (args[i].is_none()) return {};
  fail(op.name(), ": argument ", op.schema.args[i].name, ": expected a list of integers, got ", describe(args[i]));
}

Sizes ArgsView::ints(Slot arg, size_t count) const {
  size_t i = index(arg);
  Sizes list = ints(arg);
  const SchemaArg& slot = op.schema.args[i];
  bool is_default = slot.has_default && args[i] == slot.default_value;
  if (list.size() == 1 || (is_default && !list.empty())) return Sizes(count, list[0]);
  require(list.size() == count, "argument ", slot.name, ": expected ", count, " numbers, got ", list);
  return list;
}

std::optional<DType> ArgsView::dtype(Slot arg) const {
  size_t i = index(arg);
  if (auto* d = args[i].get<DType>()) return *d;
  return std::nullopt;
}

const std::string& ArgsView::string(Slot arg) const {
  size_t i = index(arg);
  auto* s = args[i].get<std::string>();
  require(s != nullptr, "argument ", op.schema.args[i].name, ": expected a string, got ", describe(args[i]));
  return *s;
}

size_t ArgsView::dim(Slot arg, size_t rank) const {
  try {
    return normal_dim(constant(arg), rank);
  } catch (const Error& e) { fail(op.name(), ": ", e.what()); }
}

SmallVector<size_t, 6> ArgsView::dims(Slot arg, size_t rank) const {
  SmallVector<size_t, 6> out;
  Sizes list = ints(arg);
  if (list.empty())
    for (size_t d = 0; d < rank; ++d) out.push_back(d);
  for (SymInt d : list) {
    require(d.is_int(), "expected numbers as dims, got ", list);
    size_t normal = normal_dim(d.as_int(), rank);
    if (rank == 0) continue;  // dims of a scalar: 0 or -1, nothing to reduce
    require(std::find(out.begin(), out.end(), normal) == out.end(), "dim ", normal,
            " appears multiple times in the list of dims");
    out.push_back(normal);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace tenon
