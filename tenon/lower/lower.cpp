#include "tenon/lower/lower.h"

#include <algorithm>

#include "tenon/graph/symbol_names.h"
#include "tenon/lower/lowering.h"

namespace tenon {

using loop::no_buffer;
using loop::Role;

void Lowering::run() {
  ShapesScope shapes(&graph_.shapes);
  add_inputs();
  find_outputs();
  program_.origins.emplace_back("the arguments");
  for (const sym::Guard& guard : convention_.guards)
    add_guard(guard.condition, text("the program was exported under ", guard.reason,
                                    guard.where.empty() ? "" : ", where ", guard.where));
  lower_nodes();
  program_.origins.emplace_back("the results");
  add_outputs();
  program_.nodes.resize(program_.steps.size(), static_cast<uint32_t>(program_.origins.size() - 1));
  program_.ranges = lowered_.shapes.ranges;
  add_guards_in_front();
  loop::verify(program_);
}

loop::BufferId Lowering::claim(Value v, Role role, size_t slot) {
  const ValueInfo& info = graph_.info(v);
  TensorMeta meta = info.meta;
  if (role != Role::input && role != Role::state) {
    if (!is_dense(meta)) meta.strides = contiguous_strides(meta.sizes);
    meta.offset = 0;
  }
  return put(v, add_buffer(meta, role, slot, info.name), meta);
}

loop::BufferId Lowering::add_buffer(const TensorMeta& meta, Role role, size_t slot, std::string name) {
  program_.buffers.push_back({meta.dtype, meta.sizes, meta.strides, role, slot, std::move(name)});
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

loop::BufferId Lowering::put(Value v, BufferId buffer, const TensorMeta& meta) {
  tensors_[v.id] = Tensor(meta, const_cast<GraphBody*>(&graph_), v.id);
  buffer_[v.id] = buffer;
  if (program_.buffers[buffer].view_of == no_buffer) root_meta_.emplace(buffer, meta);
  return buffer;
}

void Lowering::add_inputs() {
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    loop::Input input;
    const Value* v = graph_.inputs[i].get<Value>();
    bool described = i < convention_.inputs.size();
    input.name = described ? public_name(convention_.inputs[i]) : v ? graph_.info(*v).name : text("input ", i);
    if (v) {
      const ValueInfo& info = graph_.info(*v);
      bool state = described && is_state(convention_.inputs[i]);
      if (input.name.empty()) input.name = info.name;
      input.meta = info.meta;
      input.number = info.expr;
      if (is_tensor(*v)) input.buffer = claim(*v, state ? Role::state : Role::input, i);
      else if (info.type == ValueType::floating) input.type = loop::Input::Type::floating;
      else if (info.type == ValueType::boolean) input.type = loop::Input::Type::boolean;
      else input.type = loop::Input::Type::integer;
    } else {
      input.type = loop::Input::Type::constant;
    }
    mention(input.number, lowered_.given);
    for (SymInt e : input.meta.sizes) mention(e, lowered_.given);
    program_.inputs.push_back(std::move(input));
  }
}

// The first result that is a value computed by a node can be computed in place.
void Lowering::find_outputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const Value* v = graph_.outputs[i].get<Value>();
    bool update = i < convention_.outputs.size() && std::holds_alternative<output::Updated>(convention_.outputs[i]);
    if (v && *v && is_tensor(*v) && !update && output_of_[v->id] == ~size_t{0}) output_of_[v->id] = i;
  }
}

void Lowering::describe(const Node& node) {
  std::string result;
  for_each_result(node, [&](Value v) {
    if (result.empty()) result = "%" + graph_.info(v).name + " = ";
  });
  program_.origins.push_back(result + node.op->name());
}

void Lowering::lower_nodes() {
  for (const Node& node : graph_.nodes) {
    describe(node);
    auto origin = static_cast<uint32_t>(program_.origins.size() - 1);
    lower_node(node);
    program_.nodes.resize(program_.steps.size(), origin);
  }
}

void Lowering::lower_node(const Node& node) {
  if (node.op->kind == OpKind::symbolic) return;
  if (is_control(node)) return control(node);
  CallArgs args;
  for (const Arg& a : node.args) {
    if (auto* v = a.get<Value>(); v && *v && !is_tensor(*v)) args.emplace_back(graph_.info(*v).expr);
    else args.push_back(map_tensors<Tensor>(a, [&](const Value& v) { return v ? tensors_[v.id] : Tensor(); }));
  }
  guard(node, args);
  switch (implementation_of(*node.op, args)) {
    case Implementation::view: return view(node, args);
    case Implementation::stages: return stages(node, args);
    case Implementation::host: return host(node, args);
    case Implementation::assertion: return checks(node, args);
    case Implementation::number: return;  // an expression over sizes
    case Implementation::composite:
      expect(false, node.op->name(), " stands for others; decompose the graph first");
      return;
    case Implementation::none:
      fail_unsupported(text("the operator ", node.op->name(),
                            meets_complex(args) ? " of complex tensors is not supported yet" : " cannot be executed"));
  }
}

// A way of reading what is there already.
void Lowering::view(const Node& node, CallArgs args) {
  Value base = *node.args[0].get<Value>();
  MetaCall call(*node.op, args);
  std::vector<IndexMap> maps = node.op->def->view(call);
  BufferId from = buffer_[base.id];
  TensorMeta lies = tensors_[base.id].meta();
  for (const IndexMap& map : maps)
    if (!fits(map, lies, base)) {  // it promises a layout that its base was not computed in: a copy has it
      lies = promised(base);
      BufferId copied = add_buffer(lies, Role::arena, 0, graph_.info(base).name + "_laid_out");
      root_meta_.emplace(copied, lies);
      copy(from, copied);
      from = copied;
      break;
    }
  size_t next = 0;
  for_each_result(node, [&](Value v) {
    TensorMeta meta = viewed(maps[next], lies);
    put(v, add_view(from, maps[next], meta, graph_.info(v).name), meta);
    ++next;
  });
}

loop::BufferId Lowering::add_view(BufferId from, const IndexMap& map, const TensorMeta& meta, std::string name) {
  IndexMap before = program_.buffers[from].map;
  BufferId root = program_.buffers[from].view_of == no_buffer ? from : program_.buffers[from].view_of;
  BufferId id = add_buffer(meta, program_.buffers[root].role, program_.buffers[root].slot, std::move(name));
  loop::Buffer& b = program_.buffers[id];
  const TensorMeta& whole = root_meta_.at(root);
  auto item = static_cast<int64_t>(item_size(meta.dtype)), root_item = static_cast<int64_t>(item_size(whole.dtype));
  b.view_of = root;
  b.offset = meta.offset - (item == root_item ? whole.offset : sym::floor_div(whole.offset * root_item, item));
  b.map = before;
  b.map.parts.insert(b.map.parts.end(), map.parts.begin(), map.parts.end());
  // A view of a view of a view: how it lies in its storage says as much, and views without end do not add up.
  constexpr size_t most_parts = 32;
  if (b.map.parts.size() > most_parts && meta.dtype == whole.dtype)
    b.map.parts = {remap::Strided{meta.sizes, meta.strides, meta.offset}};
  return id;
}

bool Lowering::fits(const IndexMap& map, TensorMeta meta, Value base) const {
  for (const remap::Part& part : map.parts) {
    if (!is_view(part, meta)) return false;
    if (std::holds_alternative<remap::Strided>(part)) {
      const TensorMeta& recorded = graph_.info(base).meta;
      bool whole = program_.buffers[buffer_[base.id]].view_of == no_buffer;
      bool given = program_.buffers[buffer_[base.id]].role == Role::input ||
                   program_.buffers[buffer_[base.id]].role == Role::state;
      if (!(recorded.strides == meta.strides) || (!given && !whole) || (given && !(recorded.offset == meta.offset)))
        return false;
    }
    meta = viewed(part, meta);
  }
  return true;
}

TensorMeta Lowering::promised(Value v) const {
  TensorMeta meta = graph_.info(v).meta;
  meta.offset = 0;
  return is_dense(meta) ? meta : make_meta(meta.dtype, meta.sizes, meta.device);
}

void Lowering::claim_results(const Node& node) {
  for_each_result(node, [&](Value v) {
    if (!is_tensor(v)) return;
    size_t output = output_of_[v.id];
    claim(v, output == ~size_t{0} ? Role::arena : Role::output, output == ~size_t{0} ? 0 : output);
  });
}

std::vector<BasicArg<TensorMeta>> Lowering::metas_of(const Node& node) const {
  std::vector<BasicArg<TensorMeta>> metas;
  for (const Arg& r : node.results)
    metas.push_back(map_tensors<TensorMeta>(
        r, [&](const Value& v) { return is_tensor(v) ? tensors_[v.id].meta() : graph_.info(v).meta; }));
  return metas;
}

void Lowering::stages(const Node& node, const CallArgs& args) {
  claim_results(node);
  std::vector<BufferId> buffers;
  for (const Arg& a : node.args)
    for_each_tensor(a, [&](const Value& v) {
      if (v && is_tensor(v)) buffers.push_back(buffer_[v.id]);
    });
  for (const Arg& r : node.results) for_each_tensor(r, [&](const Value& v) { buffers.push_back(buffer_[v.id]); });
  Lower one(*node.op, args, metas_of(node), program_, buffers);
  lower_op(one);
}

// The memory of what a call allocates has no gaps, row-major; an output that lies otherwise is a copy of it.
void Lowering::claim_host_results(const Node& node, const std::unordered_set<std::string>& given) {
  for_each_result(node, [&](Value v) {
    if (!is_tensor(v)) return;
    TensorMeta meta = graph_.info(v).meta;
    bool told = false;
    for (SymInt size : meta.sizes)
      for (SymInt s : sym::symbols_of(size))
        told |= !given.contains(std::string(s.name())) && !bound_.contains(std::string(s.name()));
    size_t output = output_of_[v.id];
    bool contiguous = is_contiguous(meta);
    if (!told || contiguous) {
      claim(v, output == ~size_t{0} ? Role::arena : Role::output, output == ~size_t{0} ? 0 : output);
      return;
    }
    meta.strides = contiguous_strides(meta.sizes);
    meta.offset = 0;
    put(v, add_buffer(meta, Role::arena, 0, graph_.info(v).name), meta);
    laid_out_.insert(v.id);
  });
}

void Lowering::host(const Node& node, const CallArgs& args) {
  std::unordered_set<std::string> given;  // symbols that the arguments speak of: the others come from the data
  for (const CallArg& arg : args) mention(arg, given);
  claim_host_results(node, given);
  loop::Call call{node.op, node.op->name(), {}, {}};
  for (size_t i = 0; i < args.size(); ++i)
    call.args.push_back(map_tensors<loop::BufferRef>(
        args[i], [&](const Tensor& t) { return t ? loop::BufferRef{buffer_[t.impl()->value]} : loop::BufferRef{}; }));
  std::vector<loop::Bind> binds;
  for (const Arg& r : node.results) {
    const Value* v = r.get<Value>();
    if (v && *v && !is_tensor(*v)) {  // a number: it comes in a buffer of one element
      const ValueInfo& info = graph_.info(*v);
      DType dtype = info.type == ValueType::floating  ? DType::f64
                    : info.type == ValueType::boolean ? DType::boolean
                                                      : DType::i64;
      program_.buffers.push_back({dtype, {}, {}, Role::arena, 0, info.name});
      auto id = static_cast<BufferId>(program_.buffers.size() - 1);
      call.results.emplace_back(loop::BufferRef{id});
      bind_number(info.expr, id, binds);
      continue;
    }
    call.results.push_back(
        map_tensors<loop::BufferRef>(r, [&](const Value& each) { return loop::BufferRef{buffer_[each.id]}; }));
    for_each_tensor(r, [&](const Value& each) {
      const Sizes& sizes = graph_.info(each).meta.sizes;
      for (size_t d = 0; d < sizes.size(); ++d)
        if (sizes[d].is_symbol() && !given.contains(std::string(sizes[d].name())) &&
            bound_.insert(std::string(sizes[d].name())).second)
          binds.push_back({sizes[d], buffer_[each.id], static_cast<int>(d)});
    });
  }
  program_.steps.emplace_back(std::move(call));
  add_binds(binds);
}

// PyTorch writes the number of a boolean as u0 == 1, that of a number which was asserted to be 3 as 3, and that of one
// which was asserted to equal another as that one.
void Lowering::bind_number(SymInt expr, BufferId from, std::vector<loop::Bind>& binds) {
  // An input that has a size of the data is a cotangent: it may be left out, and is compared where it is not.
  auto open = [&](SymInt e) {
    if (!e.is_symbol() || bound_.contains(std::string(e.name()))) return false;
    return e.name().starts_with('u') || !lowered_.given.contains(std::string(e.name()));
  };
  auto take = [&](SymInt symbol) {
    binds.push_back({symbol, from, -1});
    bound_.emplace(symbol.name());
  };
  if (open(expr)) return take(expr);
  if (expr.kind() == sym::Kind::eq && expr.args()[1] == SymInt(1) && open(expr.args()[0])) return take(expr.args()[0]);
  if (is_floating(program_.buffers[from].dtype)) return;  // a number that was asserted to equal another is not used
  SymInt found = lowered_.shapes.fresh_unbacked({sym::Range::minus_infinity, sym::Range::infinity});
  take(found);
  SymInt wanted = expr.is_boolean_typed() ? sym::where(expr, SymInt(1), SymInt(0)) : expr;
  lowered_.awaiting.push_back(
      {sym::eq(found, wanted), no_buffer,
       text("the program was exported under ", found, " == ", wanted, ", where ", found, " is what the data say")});
}

void Lowering::add_binds(const std::vector<loop::Bind>& binds) {
  for (const loop::Bind& bind : binds) program_.steps.emplace_back(bind);
  for (const loop::Bind& bind : binds) check_range(bind.symbol);
  std::erase_if(lowered_.awaiting, [&](const loop::Check& check) {
    if (!is_known(check.condition)) return false;
    program_.steps.emplace_back(check);
    return true;
  });
}

void Lowering::guard(const Node& node, const CallArgs& args) {
  bool symbolic = false;
  auto look = [&](SymInt e) { symbolic = symbolic || !e.is_int(); };
  for (const CallArg& arg : args) {
    if (auto* e = arg.get<SymInt>()) look(*e);
    else if (auto* list = arg.get<Sizes>())
      for (SymInt e : *list) look(e);
    else
      for_each_tensor(arg, [&](const Tensor& t) {
        if (t)
          for (SymInt e : t.sizes()) look(e);
      });
  }
  bool view = node.op->def && node.op->def->view;
  if (node.op->traits.asserts || (view && !symbolic)) return;
  size_t before = lowered_.relied_on.guards.size();
  {
    // Without symbols too: what a file says of a call that its rule does not support was never compared.
    ShapesScope scope(&lowered_.relied_on);
    MetaCall call(*node.op, args);
    if (view) node.op->def->view(call);  // its base may lie otherwise here
    else infer(*node.op, args);
  }
  for (size_t i = before; i < lowered_.relied_on.guards.size(); ++i) {
    const sym::Guard& guard = lowered_.relied_on.guards.begin()[i];
    add_guard(guard.condition, text(guard.where, " relies on ", guard.condition, ": ", guard.reason));
  }
}

void Lowering::add_guard(SymInt condition, std::string message) {
  loop::Check check{condition, no_buffer, std::move(message)};
  bool from_inputs = lowered_.depth == 0;
  for (SymInt s : sym::symbols_of(condition))
    from_inputs = from_inputs && lowered_.given.contains(std::string(s.name()));
  if (from_inputs) {
    lowered_.guards.push_back(std::move(check));
    lowered_.guard_origins.push_back(static_cast<uint32_t>(program_.origins.size() - 1));
  } else if (is_known(condition)) program_.steps.emplace_back(std::move(check));
}

// Conditions on what the inputs tell come before every other step.
void Lowering::add_guards_in_front() {
  program_.steps.insert(program_.steps.begin(), lowered_.guards.begin(), lowered_.guards.end());
  program_.nodes.insert(program_.nodes.begin(), lowered_.guard_origins.begin(), lowered_.guard_origins.end());
}

void Lowering::mention(SymInt e, std::unordered_set<std::string>& names) {
  for (SymInt s : sym::symbols_of(e)) names.emplace(s.name());
}

void Lowering::mention(const CallArg& arg, std::unordered_set<std::string>& names) {
  if (auto* e = arg.get<SymInt>()) mention(*e, names);
  if (auto* list = arg.get<Sizes>())
    for (SymInt e : *list) mention(e, names);
  for_each_tensor(arg, [&](const Tensor& t) {
    if (t)
      for (SymInt e : t.sizes()) mention(e, names);
  });
}

void Lowering::check_range(SymInt symbol) {
  sym::Range range = graph_.shapes.ranges.of(symbol);
  if (!symbol.is_integer_typed() || symbol.is_boolean_typed()) return;
  std::string message = text("expected a value in ", range);
  if (range.has_lo() && range.lo > 0)
    program_.steps.emplace_back(loop::Check{sym::ge(symbol, range.lo), no_buffer, message});
  if (range.has_hi()) program_.steps.emplace_back(loop::Check{sym::le(symbol, range.hi), no_buffer, message});
}

void Lowering::checks(const Node& node, const CallArgs& args) {
  if (!node.op->def->asserts) return;
  for (Assertion& a : node.op->def->asserts(ArgsView(*node.op, args))) {
    loop::Check check{a.condition, no_buffer, std::move(a.message)};
    if (a.tensor) check.tensor = plain_number(buffer_[a.tensor.impl()->value]);
    program_.steps.emplace_back(std::move(check));
  }
}

loop::BufferId Lowering::temporary(const loop::Buffer& like, Role role, size_t slot, std::string name) {
  loop::Buffer b = like;
  b.role = role;
  b.slot = slot;
  b.name = std::move(name);
  b.view_of = no_buffer;
  b.offset = 0;
  b.map = {};
  for (size_t d = 0; d < b.sizes.size(); ++d)  // elements that share a place get one each
    if (b.strides[d] == SymInt(0) && !(b.sizes[d] == SymInt(1))) b.strides = contiguous_strides(b.sizes);
  program_.buffers.push_back(std::move(b));
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

// Numbers are read out of tensors of dtypes that C has; halves are widened first.
loop::BufferId Lowering::plain_number(BufferId of) {
  loop::Buffer wide = program_.buffers[of];
  if (wide.dtype == DType::f32 || loop::compute_of(wide.dtype) != loop::Compute::f32) return of;
  wide.dtype = DType::f32;
  BufferId out = temporary(wide, Role::arena, 0, wide.name + "_wide");
  fill_from(of, out);
  return out;
}

void Lowering::copy(BufferId from, BufferId to) {
  const loop::Buffer &given = program_.buffers[from], &wanted = program_.buffers[to];
  require(given.dtype == wanted.dtype && given.sizes.size() == wanted.sizes.size(), given.name, " is ", given.dtype,
          given.sizes, " where ", wanted.dtype, wanted.sizes, " is expected");
  fill_from(from, to);
}

// Complex numbers as their parts: stages have real ones alone.
loop::BufferId Lowering::as_real(BufferId of) {
  BufferId root = program_.buffers[of].view_of == no_buffer ? of : program_.buffers[of].view_of;
  if (!root_meta_.contains(root)) root_meta_.emplace(root, meta_of(root));
  IndexMap map{{remap::AsReal()}};
  const TensorMeta& whole = root_meta_.at(root);
  TensorMeta meta = meta_of(of);
  auto item = static_cast<int64_t>(item_size(meta.dtype)), root_item = static_cast<int64_t>(item_size(whole.dtype));
  meta.offset =
      program_.buffers[of].offset + (item == root_item ? whole.offset : sym::floor_div(whole.offset * root_item, item));
  return add_view(of, map, viewed(map, meta), program_.buffers[of].name + "_parts");
}

void Lowering::fill_from(BufferId from, BufferId to) {
  if (is_complex(program_.buffers[to].dtype)) return fill_from(as_real(from), as_real(to));
  loop::Stage stage;
  stage.domain = program_.buffers[to].sizes;
  loop::Compute type = loop::compute_of(program_.buffers[to].dtype);
  loop::ExprNode load{.fn = loop::Fn::load, .type = type, .buffer = from};
  loop::Store store{.to = to};
  for (size_t i = 0; i < stage.domain.size(); ++i) {
    loop::ExprNode index{.fn = loop::Fn::index, .type = loop::Compute::i64, .integer = static_cast<int64_t>(i)};
    loop::ExprId id = program_.arena.add(std::move(index));
    load.args.push_back(id);
    store.at.push_back(id);
  }
  store.value = program_.arena.add(std::move(load));
  stage.stores.push_back(std::move(store));
  program_.steps.emplace_back(std::move(stage));
}

void Lowering::add_outputs() {
  struct Update {
    BufferId from, to;
  };
  std::vector<Update> updates;
  std::vector<size_t> written;
  for (size_t i = 0; i < graph_.outputs.size(); ++i)
    if (auto* u = i < convention_.outputs.size() ? std::get_if<output::Updated>(&convention_.outputs[i]) : nullptr)
      program_.inputs[u->input].written = true;
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    loop::Output out;
    const Value* v = graph_.outputs[i].get<Value>();
    if (!v || !*v) {
      if (auto* e = graph_.outputs[i].get<SymInt>()) out.number = *e;
      program_.outputs.push_back(out);
      continue;
    }
    if (!is_tensor(*v)) {
      out.number = graph_.info(*v).expr;
      program_.outputs.push_back(out);
      continue;
    }
    BufferId from = buffer_[v->id];
    const std::string& name = graph_.info(*v).name;
    auto* updated = i < convention_.outputs.size() ? std::get_if<output::Updated>(&convention_.outputs[i]) : nullptr;
    if (updated) {
      out.updates = updated->input;
      BufferId to = program_.inputs[updated->input].buffer;
      out.buffer = to;
      Role role = program_.buffers[from].role;
      if (from != to && (role == Role::input || role == Role::state)) {  // it may be overwritten before it is read
        BufferId kept = temporary(program_.buffers[from], Role::arena, 0, name + "_kept");
        copy(from, kept);
        from = kept;
      }
      if (from != to) updates.push_back({from, to});
    } else if (output_of_[v->id] == i && program_.buffers[from].role == Role::output &&
               program_.buffers[from].view_of == no_buffer) {
      out.buffer = from;
    } else {
      out.buffer = temporary(program_.buffers[from], Role::output, i, name);
      if (laid_out_.contains(v->id)) program_.buffers[out.buffer].strides = promised(*v).strides;
      copy(from, out.buffer);
    }
    program_.outputs.push_back(out);
  }
  for (const Update& u : updates) copy(u.from, u.to);
}

loop::Program lower(const GraphBody& graph, const CallingConvention& convention) {
  Lowered lowered;
  lowered.shapes = graph.shapes;
  lowered.relied_on = graph.shapes;
  lowered.relied_on.guards = {};  // taken anew, of those nodes alone that are left
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return Lowering::is_control(n); }))
    reserve_names(graph, lowered.shapes);
  Lowering(graph, convention, lowered).run();
  return std::move(lowered.program);
}

}  // namespace tenon
