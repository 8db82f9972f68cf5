// Control flow: graphs within the graph become steps within a step, over buffers of the same program.
#include <algorithm>
#include <utility>

#include "tenon/lower/lowering.h"
#include "tenon/ops/structural.h"

namespace tenon {

using loop::BufferId;
using loop::no_buffer;
using loop::Role;
using Kind = loop::Control::Kind;

namespace {

const GraphBody& body_of(const Node& node, size_t at) { return *node.args[at].as<Subgraph>().body; }
const std::vector<Value>& values_of(const Arg& list) { return list.as<std::vector<Value>>(); }

const CallingConvention& no_convention() {
  static const CallingConvention none;
  return none;
}

std::vector<Value> results_of(const Node& node) {
  std::vector<Value> out;
  for_each_result(node, [&](Value v) { out.push_back(v); });
  return out;
}

}  // namespace

bool Lowering::is_control(const Node& node) {
  return node.op->traits.control != Control::none || node.op == &tenon::repeat_stacked.op();
}

void Lowering::control(const Node& node) {
  if (node.op == &tenon::repeat_stacked.op()) return repeat_stacked(node);
  switch (node.op->traits.control) {
    case Control::choose: return choose(node);
    case Control::repeat: return repeat(node);
    case Control::map: return rows(node, false);
    case Control::scan: return rows(node, true);
    case Control::none:
    case Control::grad_region:
    case Control::autocast_region: break;
  }
  expect(false, node.op->name(), " is to be normalized first");
}

void Lowering::choose(const Node& node) {
  const GraphBody &then = body_of(node, 1), &otherwise = body_of(node, 2);
  loop::Control step;
  step.kind = Kind::choose;
  step.value = condition(node.args[0]);
  bind_sizes(node, step.value, then, otherwise);
  claim_results(node);
  std::vector<Value> results = results_of(node);
  for (const GraphBody* graph : {&otherwise, &then})
    body(step, [&] {
      Lowering inside(*graph, no_convention(), lowered_);
      size_t next = 0;
      take_operands(inside, node.args[3], next);
      inside.lower_inside();
      for (size_t i = 0; i < results.size(); ++i) copy(inside.result_of(graph->outputs.at(i)), buffer_[results[i].id]);
    });
  program_.steps.emplace_back(std::move(step));
}

void Lowering::repeat(const Node& node) {
  std::vector<BufferId> carried = carry(node.args[2]);
  loop::Control step;
  step.kind = Kind::repeat;
  for (size_t at : {size_t{0}, size_t{1}})
    body(step, [&] {
      Lowering inside(body_of(node, at), no_convention(), lowered_);
      take_carried(inside, carried);
      size_t next = carried.size();
      take_operands(inside, node.args[3], next);
      inside.lower_inside();
      if (at == 0) step.value = inside.condition(inside.graph_.outputs.at(0));
      else carry_on(inside, carried);
    });
  program_.steps.emplace_back(std::move(step));
  give_carried(node, carried);
}

// The number of rounds tells how much memory the results take: a first loop counts them, a second keeps what they give.
void Lowering::repeat_stacked(const Node& node) {
  std::vector<BufferId> carried = carry(node.args[2]);
  auto counter = [&](int64_t value) { return loop::constant(program_.arena, value, loop::Compute::i64); };
  BufferId rounds = number("rounds", counter(0), DType::i64);
  loop::Control first;
  first.kind = Kind::repeat;
  auto run = [&](Lowering& inside) {
    take_carried(inside, carried);
    size_t next = carried.size();
    take_operands(inside, node.args[3], next);
    inside.lower_inside();
  };
  body(first, [&] {
    Lowering inside(body_of(node, 0), no_convention(), lowered_);
    run(inside);
    first.value = inside.condition(inside.graph_.outputs.at(0));
  });
  body(first, [&] {
    Lowering inside(body_of(node, 1), no_convention(), lowered_);
    run(inside);
    carry_on(inside, carried);
    loop::Expr so_far(&program_.arena,
                      program_.arena.add({.fn = loop::Fn::load, .type = loop::Compute::i64, .buffer = rounds}));
    BufferId more = number("rounds_more", so_far + counter(1), DType::i64);
    copy(more, rounds);
  });
  program_.steps.emplace_back(std::move(first));

  loop::Control second;
  second.kind = Kind::counted;
  second.symbol = lowered_.shapes.fresh_unbacked();
  std::vector<Value> results = results_of(node);
  for (Value v : results) {  // one symbol each, or one for all
    SymInt size = graph_.info(v).meta.sizes[0];
    if (size.is_symbol() && !is_known(size)) {
      program_.steps.emplace_back(loop::Bind{size, rounds, -1});
      bound_.emplace(size.name());
    }
    second.value = size;
  }
  for (size_t i = 0; i < carried.size(); ++i) copy(buffer_[values_of(node.args[2])[i].id], carried[i]);
  claim_results(node);
  body(second, [&] {
    Lowering inside(body_of(node, 1), no_convention(), lowered_);
    run(inside);
    for (size_t i = 0; i < results.size(); ++i) {
      TensorMeta made;
      copy(inside.result_of(inside.graph_.outputs.at(i)), row(buffer_[results[i].id], second.symbol, made));
    }
    carry_on(inside, carried);
  });
  program_.steps.emplace_back(std::move(second));
}

void Lowering::rows(const Node& node, bool carries) {
  size_t first = carries ? 2 : 1;
  const std::vector<Value>& scanned = values_of(node.args[first]);
  require(!scanned.empty(), node.op->name(), ": expected tensors to go over, got none");
  std::vector<BufferId> carried;
  if (carries) carried = carry(node.args[1]);
  std::vector<Value> results = results_of(node);
  for (size_t i = carried.size(); i < results.size(); ++i) {
    size_t output = output_of_[results[i].id];
    claim(results[i], output == ~size_t{0} ? Role::arena : Role::output, output == ~size_t{0} ? 0 : output);
  }
  loop::Control step;
  step.kind = Kind::counted;
  step.value = tensors_[scanned[0].id].sizes()[0];
  step.symbol = lowered_.shapes.fresh_unbacked();
  body(step, [&] {
    Lowering inside(body_of(node, 0), no_convention(), lowered_);
    take_carried(inside, carried);
    size_t next = carried.size();
    for (Value v : scanned) {
      TensorMeta made;
      BufferId from = row(buffer_[v.id], step.symbol, made);
      inside.take(next++, from, made);
    }
    take_operands(inside, node.args[first + 1], next);
    inside.lower_inside();
    for (size_t i = carried.size(); i < results.size(); ++i) {
      TensorMeta made;
      copy(inside.result_of(inside.graph_.outputs.at(i)), row(buffer_[results[i].id], step.symbol, made));
    }
    carry_on(inside, carried);
  });
  program_.steps.emplace_back(std::move(step));
  give_carried(node, carried);
}

SymInt Lowering::condition(const Arg& arg) {
  if (auto* b = arg.get<bool>()) return *b ? 1 : 0;
  if (auto* e = arg.get<SymInt>()) return e->is_boolean_typed() || e->is_int() ? *e : sym::ne(*e, SymInt(0));
  Value v = arg.as<Value>();
  BufferId from = buffer_[v.id];
  if (program_.buffers[from].dtype != DType::boolean) {
    loop::ExprNode load{.fn = loop::Fn::load, .type = loop::compute_of(program_.buffers[from].dtype), .buffer = from};
    for (size_t d = 0; d < program_.buffers[from].sizes.size(); ++d)
      load.args.push_back(loop::constant(program_.arena, int64_t{0}, loop::Compute::i64).id);
    loop::Expr element(&program_.arena, program_.arena.add(std::move(load)));
    from = number(graph_.info(v).name + "_holds", element != loop::constant(program_.arena, int64_t{0}, element.type()),
                  DType::boolean);
  }
  SymInt which = lowered_.shapes.fresh_unbacked({0, 1});
  program_.steps.emplace_back(loop::Bind{which, from, -1});
  return which;
}

bool Lowering::is_known(SymInt size) const {
  for (SymInt s : sym::symbols_of(size))
    if (!bound_.contains(std::string(s.name())) && !lowered_.given.contains(std::string(s.name()))) return false;
  return true;
}

void Lowering::bind_sizes(const Node& node, SymInt which, const GraphBody& then, const GraphBody& otherwise) {
  std::vector<Value> results = results_of(node);
  for (size_t i = 0; i < results.size(); ++i) {
    const ValueInfo& info = graph_.info(results[i]);
    for (size_t d = 0; d < info.meta.rank(); ++d) {
      SymInt size = info.meta.sizes[d];
      if (!size.is_symbol() || is_known(size)) continue;
      auto given = [&](const GraphBody& branch) {
        SymInt e = branch.info(branch.outputs.at(i).as<Value>()).meta.sizes[d];
        if (!is_known(e))
          fail_unsupported(text("the size ", e, " of the result ", quoted(info.name),
                                " is told by the data within a branch, which is not supported yet; give a tensor of a "
                                "size that is known before"));
        return loop::size_expr(program_.arena, e);
      };
      loop::Expr holds = loop::size_expr(program_.arena, which);
      if (holds.type() != loop::Compute::boolean) holds = holds != int64_t{0};
      BufferId from = number(info.name + "_size", loop::select(holds, given(then), given(otherwise)), DType::i64);
      program_.steps.emplace_back(loop::Bind{size, from, -1});
      bound_.emplace(size.name());
      check_range(size);
    }
  }
}

template <class Make>
void Lowering::body(loop::Control& control, const Make& make) {
  std::vector<loop::Step> steps = std::exchange(program_.steps, {});
  std::vector<uint32_t> nodes = std::exchange(program_.nodes, {});
  std::unordered_set<std::string> bound = bound_;     // what is bound in a body is known there alone
  sym::Guards relied_on = lowered_.relied_on.guards;  // likewise what was checked in it
  auto origin = static_cast<uint32_t>(program_.origins.size() - 1);
  size_t awaiting = lowered_.awaiting.size();
  ++lowered_.depth;
  make();
  --lowered_.depth;
  if (lowered_.awaiting.size() > awaiting) lowered_.awaiting.resize(awaiting);
  program_.nodes.resize(program_.steps.size(), origin);
  loop::Body made{std::exchange(program_.steps, std::move(steps)), std::exchange(program_.nodes, std::move(nodes))};
  control.bodies.push_back(std::move(made));
  bound_ = std::move(bound);
  lowered_.relied_on.guards = std::move(relied_on);
}

void Lowering::lower_inside() {
  ShapesScope shapes(&graph_.shapes);
  lower_nodes();
}

void Lowering::take_operands(Lowering& inside, const Arg& list, size_t& next) {
  for (Value v : values_of(list)) inside.take(next++, buffer_[v.id], tensors_[v.id].meta());
}

void Lowering::take(size_t input, BufferId buffer, const TensorMeta& meta) {
  Value v = graph_.inputs.at(input).as<Value>();
  const ValueInfo& info = graph_.info(v);
  bool fits = info.meta.rank() == meta.rank() && info.meta.dtype == meta.dtype;
  for (size_t d = 0; fits && d < meta.rank(); ++d)
    fits = info.meta.sizes[d] == meta.sizes[d] || (is_known(info.meta.sizes[d]) && is_known(meta.sizes[d]));
  require(fits, "the input ", quoted(info.name), " of a graph within the program is ", info.meta, ", but it gets ",
          meta, "; sizes that go by other names within are not supported yet");
  TensorMeta seen = meta;
  for (size_t d = 0; d < meta.rank();
       ++d) {  // one of the same, once it is checked: what each branch says of its result
    if (info.meta.sizes[d] == meta.sizes[d]) continue;
    add_guard(
        sym::eq(info.meta.sizes[d], meta.sizes[d]),
        text("the input ", quoted(info.name), " of a graph within the program is ", info.meta, " and gets ", meta));
    seen.sizes[d] = info.meta.sizes[d];
  }
  put(v, buffer, seen);
}

TensorMeta Lowering::meta_of(BufferId buffer) const {
  TensorMeta meta;
  meta.dtype = program_.buffers[buffer].dtype;
  meta.sizes = program_.buffers[buffer].sizes;
  meta.strides = program_.buffers[buffer].strides;
  return meta;
}

std::vector<BufferId> Lowering::carry(const Arg& list) {
  std::vector<BufferId> out;
  for (Value v : values_of(list)) {
    TensorMeta meta = make_meta(tensors_[v.id].dtype(), tensors_[v.id].sizes());
    BufferId id = add_buffer(meta, Role::arena, 0, graph_.info(v).name + "_carried");
    root_meta_.emplace(id, meta);
    copy(buffer_[v.id], id);
    out.push_back(id);
  }
  return out;
}

void Lowering::take_carried(Lowering& inside, const std::vector<BufferId>& carried) const {
  for (size_t i = 0; i < carried.size(); ++i) inside.take(i, carried[i], meta_of(carried[i]));
}

void Lowering::carry_on(Lowering& inside, const std::vector<BufferId>& carried) {
  std::vector<BufferId> from;
  for (size_t i = 0; i < carried.size(); ++i) {
    BufferId b = inside.result_of(inside.graph_.outputs.at(i));
    BufferId root = program_.buffers[b].view_of == no_buffer ? b : program_.buffers[b].view_of;
    if (b != carried[i] && std::find(carried.begin(), carried.end(), root) != carried.end()) {
      BufferId kept = temporary(program_.buffers[b], Role::arena, 0, program_.buffers[b].name + "_kept");
      copy(b, kept);  // it may be overwritten before it is read
      b = kept;
    }
    from.push_back(b);
  }
  for (size_t i = 0; i < carried.size(); ++i)
    if (from[i] != carried[i]) copy(from[i], carried[i]);
}

void Lowering::give_carried(const Node& node, const std::vector<BufferId>& carried) {
  std::vector<Value> results = results_of(node);
  for (size_t i = 0; i < carried.size(); ++i) put(results.at(i), carried[i], meta_of(carried[i]));
}

BufferId Lowering::row(BufferId of, SymInt at, TensorMeta& made) {
  const loop::Buffer& b = program_.buffers[of];
  Sizes rest;
  for (size_t d = 1; d < b.sizes.size(); ++d) rest.push_back(b.sizes[d]);
  IndexMap map{{remap::Slice{.dim = 0, .start = at, .size = 1, .step = 1}, remap::Reshape{rest}}};
  TensorMeta whole = meta_of(of);
  BufferId root = b.view_of == no_buffer ? of : b.view_of;
  whole.offset = b.offset + root_meta_.at(root).offset;
  made = viewed(map, whole);
  return add_view(of, map, made, b.name + "_row");
}

BufferId Lowering::number(std::string name, loop::Expr value, DType dtype) {
  TensorMeta meta = make_meta(dtype, {});
  BufferId id = add_buffer(meta, Role::arena, 0, std::move(name));
  root_meta_.emplace(id, meta);
  loop::Stage stage;
  stage.stores.push_back({.to = id, .value = value.id});
  program_.steps.emplace_back(std::move(stage));
  return id;
}

BufferId Lowering::result_of(const Arg& output) const {
  auto* v = output.get<Value>();
  if (!v || !*v || buffer_[v->id] == no_buffer)
    fail_unsupported("a graph within the program gives a number or nothing where a tensor is expected");
  return buffer_[v->id];
}

}  // namespace tenon
