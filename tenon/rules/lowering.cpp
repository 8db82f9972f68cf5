#include "tenon/rules/lowering.h"

#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

using loop::BufferId;
using loop::Compute;
using loop::Expr;

Index Index::without(size_t dim) const {
  Index out = *this;
  if (dim >= size()) fail_index(dim, size());
  out.erase(out.begin() + static_cast<ptrdiff_t>(dim));
  return out;
}
Index Index::with(size_t dim, Expr at) const {
  Index out = *this;
  out[dim] = at;
  return out;
}
Index Index::inserted(size_t dim, Expr at) const {
  Index out = *this;
  if (dim > size()) fail_index(dim, size());
  out.insert(out.begin() + static_cast<ptrdiff_t>(dim), at);
  return out;
}

const Sizes& Ref::sizes() const { return lower->program.buffers[id].sizes; }
DType Ref::dtype() const { return lower->program.buffers[id].dtype; }

namespace {
Expr settle(Lower& l, Expr x) {
  return x.arena ? cast(x, Compute::i64) : loop::constant(l.program.arena, x.literal, Compute::i64);
}
}  // namespace

Expr Ref::at(const Index& index) const {
  lower->require(index.size() == sizes().size(), "expected a tensor of ", index.size(),
                 " dimensions, got one of sizes ", sizes());
  loop::ExprNode node{.fn = loop::Fn::load, .type = loop::compute_of(dtype()), .buffer = id};
  for (Expr i : index) node.args.push_back(settle(*lower, i).id);
  return {&lower->program.arena, lower->program.arena.add(std::move(node))};
}

Expr Ref::broadcast_at(const Index& index) const {
  lower->require(sizes().size() <= index.size(), "expected a tensor of at most ", index.size(),
                 " dimensions, got one of sizes ", sizes());
  size_t extra = index.size() - sizes().size();
  Index own;
  for (size_t i = 0; i < sizes().size(); ++i) own.push_back(surely_one(size(i)) ? Expr(0) : index[extra + i]);
  return at(own);
}

Expr Ref::at_if(Expr guard, const Index& index, Expr otherwise) const {
  loop::ExprNode node{.fn = loop::Fn::load, .type = loop::compute_of(dtype()), .buffer = id};
  for (Expr i : index) node.args.push_back(settle(*lower, i).id);
  node.guard = cast(guard, Compute::boolean).id;
  if (!otherwise.arena) otherwise = loop::constant(lower->program.arena, otherwise.literal, node.type);
  node.otherwise = cast(otherwise, node.type).id;
  return {&lower->program.arena, lower->program.arena.add(std::move(node))};
}

loop::Operand Ref::operand() const {
  const loop::Buffer& b = lower->program.buffers[id];
  return {id, b.sizes, b.strides, 0};
}
loop::Operand Ref::operand(Sizes sizes, Sizes strides, SymInt offset) const {
  return {id, std::move(sizes), std::move(strides), offset};
}

Lower::Lower(const Op& op, std::span<const CallArg> args, std::span<const BasicArg<TensorMeta>> results,
             loop::Program& program)
    : ArgsView(op, args), program(program) {
  claim(args, results, {});
}
Lower::Lower(const Op& op, std::span<const CallArg> args, std::span<const BasicArg<TensorMeta>> results,
             loop::Program& program, std::span<const BufferId> buffers)
    : ArgsView(op, args), program(program) {
  claim(args, results, buffers);
}

void Lower::claim(std::span<const CallArg> args, std::span<const BasicArg<TensorMeta>> results,
                  std::span<const BufferId> given) {
  size_t inputs = 0, outputs = 0, next = 0;
  auto claim_one = [&](const TensorMeta& meta, loop::Role role, size_t slot, std::string name) {
    if (!given.empty()) return given[next++];
    program.buffers.push_back({meta.dtype, meta.sizes, meta.strides, role, slot, std::move(name)});
    return static_cast<BufferId>(program.buffers.size() - 1);
  };
  for (const CallArg& arg : args) {
    auto& ids = ins_.emplace_back();
    for_each_tensor(arg, [&](const Tensor& t) {
      if (t) ids.push_back(claim_one(t.meta(), loop::Role::input, inputs, text("in", inputs)));
      else ids.push_back(~0u);
      if (t) ++inputs;
    });
  }
  for (const auto& result : results) {
    auto& ids = outs_.emplace_back();
    for_each_tensor(result, [&](const TensorMeta& meta) {
      ids.push_back(claim_one(meta, loop::Role::output, outputs, text("out", outputs)));
      ++outputs;
    });
  }
}

Ref Lower::operator[](Slot slot) const {
  size_t arg = index(slot);
  expect(arg < ins_.size() && ins_[arg].size() == 1, op.name(), ": argument ", arg, " is no tensor");
  return {const_cast<Lower*>(this), ins_[arg][0]};
}
Ref Lower::item(Slot slot, size_t i) const {
  size_t arg = index(slot);
  expect(arg < ins_.size() && i < ins_[arg].size() && ins_[arg][i] != ~0u, op.name(), ": argument ", arg,
         " has no item ", i);
  return {const_cast<Lower*>(this), ins_[arg][i]};
}
Ref Lower::out(size_t result) const {
  expect(result < outs_.size() && outs_[result].size() == 1, op.name(), ": result ", result, " is no tensor");
  return {const_cast<Lower*>(this), outs_[result][0]};
}

// Powers of sizes are computed where they are used: size expressions of compiled programs have none.
static Expr number_expr(loop::Arena& arena, SymInt e, Compute type) {
  if (e.is_int()) return loop::constant(arena, e.as_int(), type);
  if (e.is_number()) return loop::constant(arena, e.real_value(), type);
  auto part = [&](size_t i) { return number_expr(arena, e.args()[i], Compute::f64); };
  if (e.kind() == sym::Kind::float_pow) {
    bool root = e.args()[1].is_number() && std::abs(e.args()[1].real_value()) == 0.5;
    if (!root) return cast(loop::call(loop::Fn::pow, part(0), part(1)), type);
    Expr value = loop::call(loop::Fn::sqrt, part(0));
    return cast(e.args()[1].real_value() < 0 ? 1.0 / value : value, type);
  }
  bool real = !e.is_integer_typed() && !e.is_boolean_typed();
  if (real && (e.kind() == sym::Kind::true_div || e.kind() == sym::Kind::float_true_div))
    return cast(part(0) / part(1), type);
  if (real && (e.kind() == sym::Kind::mul || e.kind() == sym::Kind::add)) {
    Expr out = part(0);
    for (size_t i = 1; i < e.args().size(); ++i) out = e.kind() == sym::Kind::mul ? out * part(i) : out + part(i);
    return cast(out, type);
  }
  return cast(loop::size_expr(arena, e), type);
}

Expr Lower::scalar(Slot slot, Compute type) {
  size_t arg = index(slot);
  if (auto* s = args[arg].get<SymInt>()) {
    if (s->is_int()) return loop::constant(program.arena, s->as_int(), type);
    if (s->kind() != sym::Kind::real) return number_expr(program.arena, *s, type);
  }
  if (is_tensor(arg)) return cast((*this)[arg].at(Index((*this)[arg].sizes().size(), Expr(0))), type);
  return loop::constant(program.arena, number(arg), type);
}

void Lower::stage(const Sizes& domain, const std::function<void(const Index&)>& body) {
  expect(current_ == nullptr, op.name(), ": a stage within a stage");
  loop::Stage stage;
  stage.domain = domain;
  Index index;
  for (size_t i = 0; i < domain.size(); ++i) {
    loop::ExprNode node{.fn = loop::Fn::index, .type = Compute::i64, .integer = static_cast<int64_t>(i)};
    index.push_back({&program.arena, program.arena.add(std::move(node))});
  }
  current_ = &stage;
  body(index);
  current_ = nullptr;
  program.steps.push_back(std::move(stage));
}

void Lower::store(Ref to, const Index& at, Expr value, loop::Mode mode) {
  expect(current_ != nullptr, op.name(), ": a store outside a stage");
  loop::Store store{.to = to.id, .mode = mode};
  for (Expr i : at) store.at.push_back(settle(*this, i).id);
  Compute type = loop::compute_of(to.dtype());
  store.value = value.arena ? cast(value, type).id : loop::constant(program.arena, value.literal, type).id;
  current_->stores.push_back(std::move(store));
}

void Lower::store_if(Expr where, Ref to, const Index& at, Expr value, loop::Mode mode) {
  store(to, at, value, mode);
  current_->stores.back().where = cast(where, Compute::boolean).id;
}

Expr Lower::reduce(loop::Combine combine, const Sizes& extents, const std::function<Expr(const Index&)>& term) {
  expect(current_ != nullptr, op.name(), ": a reduction outside a stage");
  expect(current_->accumulators.empty() || current_->reduce == extents, op.name(),
         ": reductions of one stage must share their extents");
  current_->reduce = extents;
  Index index;
  for (size_t i = 0; i < extents.size(); ++i) {
    loop::ExprNode node{
        .fn = loop::Fn::index, .type = Compute::i64, .integer = static_cast<int64_t>(current_->domain.size() + i)};
    index.push_back({&program.arena, program.arena.add(std::move(node))});
  }
  Expr value = term(index);
  bool position = combine == loop::Combine::argmin || combine == loop::Combine::argmax;
  bool logical = combine == loop::Combine::any || combine == loop::Combine::all;
  if (logical) value = cast(value, Compute::boolean);
  else if (value.type() == Compute::boolean) value = cast(value, Compute::i64);
  current_->accumulators.push_back({combine, value.id, value.type()});
  loop::ExprNode node{.fn = loop::Fn::accumulated,
                      .type = position ? Compute::i64 : value.type(),
                      .integer = static_cast<int64_t>(current_->accumulators.size() - 1)};
  return {&program.arena, program.arena.add(std::move(node))};
}

void Lower::tensor(Ref to, const std::function<Expr(const Index&)>& value) {
  Sizes domain = to.sizes();
  stage(domain, [&](const Index& i) { store(to, i, value(i)); });
}

Ref Lower::temporary(DType dtype, const Sizes& sizes) {
  program.buffers.push_back(
      {dtype, sizes, contiguous_strides(sizes), loop::Role::arena, 0, text("t", program.buffers.size())});
  return {this, static_cast<BufferId>(program.buffers.size() - 1)};
}

Ref Lower::temporary(DType dtype, const Sizes& sizes, const std::function<Expr(const Index&)>& value) {
  Ref t = temporary(dtype, sizes);
  tensor(t, value);
  return t;
}

void Lower::fill(Ref to, Expr value) {
  tensor(to, [&](const Index&) { return value; });
}
void Lower::copy(Ref from, Ref to) {
  tensor(to, [&](const Index& i) { return from.at(i); });
}

DType computable(DType dtype) {
  switch (loop::compute_of(dtype)) {
    case Compute::f32: return DType::f32;
    case Compute::f64: return DType::f64;
    case Compute::i64:
    case Compute::boolean: return DType::i64;
  }
  unreachable();
}

Ref Lower::computable(Ref from) {
  DType dtype = tenon::computable(from.dtype());
  if (dtype == from.dtype()) return from;
  return temporary(dtype, Sizes(from.sizes()), [&](const Index& i) { return from.at(i); });
}

void Lower::anchor(loop::Step step) { program.steps.push_back(std::move(step)); }

}  // namespace tenon
