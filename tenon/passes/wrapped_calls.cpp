#include "tenon/passes/wrapped_calls.h"

#include "tenon/ops/conversion.h"
#include "tenon/ops/structural.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/trace.h"

namespace tenon {
namespace {

size_t operator_position(const Op& op) { return &op == &effectful_call.op() ? 1 : 0; }

const OperatorName* find_operator_name(const Node& node) {
  size_t at = operator_position(*node.op);
  return at < node.args.size() ? node.args[at].get<OperatorName>() : nullptr;
}
const std::string& operator_name(const Node& node) {
  const OperatorName* name = find_operator_name(node);
  require(name != nullptr, node.op->target, ": expected an operator as argument ", operator_position(*node.op));
  return name->name;
}

class Unwrapping {
 public:
  Unwrapping(GraphBody& graph, const Node& node)
      : node_(node), tracer_(graph), mode_(node.grad_enabled), scope_(&tracer_), shapes_(&graph.shapes) {
    tracer_.metadata = node.origin.metadata;
    const Op* op = registry().find(operator_name(node));
    require(op != nullptr, "an operator is not supported: ", operator_name(node));
    require(op->kind != OpKind::structural, node.op->target, ": a call of ", op->target,
            " is not supported yet; the program can be shown and converted");
    require(node.op != &effectful_call.op() || op->stays(), node.op->target, ": ", op->target,
            " is called for its effects, but is registered as one that has none; give it TENON_OPERATOR_EFFECTS");
    op_ = op;
    size_t first = operator_position(*node.op) + (node.op == &typed_call.op() ? 2 : 1),
           named = node.origin.keywords.size();
    require(node.args.size() >= first + named, node.op->target, ": more names than arguments");
    for (size_t i = first; i < node.args.size(); ++i) {
      size_t keyword = i + named;
      std::string name = keyword >= node.args.size() ? node.origin.keywords[keyword - node.args.size()] : "";
      given_.emplace_back(std::move(name),
                          map_tensors<Tensor>(node.args[i], [&](Value v) { return v ? tracer_.tensor(v) : Tensor(); }));
    }
  }

  // Tokens only say what comes after what, which the order of nodes says too.
  Args after_token() {
    Args out = {node_.args[0]};
    for (const CallArg& r : call()) out.push_back(value_of(r));
    return out;
  }

  Args of_dtype() {
    auto* dtype = node_.args.size() > 1 ? node_.args[1].get<DType>() : nullptr;
    require(dtype != nullptr, node_.op->target, ": expected a dtype as argument 1");
    auto typed = [&](const Tensor& t) { return t && t.dtype() != *dtype ? to(t, *dtype) : t; };
    for (auto& [name, value] : given_) value = map_tensors<Tensor>(value, typed);
    Args out;
    for (const CallArg& r : call()) out.push_back(value_of(map_tensors<Tensor>(r, typed)));
    return out;
  }

  Args on_copies() {
    std::vector<Tensor> copies;
    for (const SchemaArg& slot : op_->schema.args) {
      if (!slot.writes) continue;
      copies.emplace_back();
      CallArg* arg = find(slot.name);
      if (!arg || arg->is_none()) continue;
      copies.back() = clone(arg->as<Tensor>());
      *arg = copies.back();
    }
    return with(copies);
  }

  Args on_copies_of_bases() {
    CallArg* bases = find("_all_bases");
    auto* list = bases ? bases->get<std::vector<Tensor>>() : nullptr;
    require(list || (bases && bases->is<Sizes>()), node_.op->target, ": expected a list of tensors as _all_bases");
    std::vector<Tensor> copies;
    if (list)
      for (const Tensor& base : *list) copies.push_back(clone(base));
    std::vector<std::pair<std::string, CallArg>> plain;
    for (const SchemaArg& slot : op_->schema.args) {
      if (slot.writes) {
        require(!slot.type.list, node_.op->target, ": ", op_->target,
                " writes to a list of tensors, which is not supported yet");
        plain.emplace_back(slot.name, written(slot.name, copies));
      } else if (CallArg* arg = find(slot.name)) {
        plain.emplace_back(slot.name, *arg);
      }
    }
    given_ = std::move(plain);
    return with(copies);
  }

 private:
  CallArg* find(const std::string& name) {
    for (auto& [own, value] : given_)
      if (own == name) return &value;
    return nullptr;
  }

  // An argument that is a view of one of the copies.
  CallArg written(const std::string& name, const std::vector<Tensor>& copies) {
    auto part = [&](const char* what) { return find("_" + name + "_" + what); };
    CallArg* index = part("base_index");
    if (!index || index->is_none()) return {};
    auto* number = index->get<SymInt>();
    require(
        number && number->is_int() && number->as_int() >= 0 && static_cast<size_t>(number->as_int()) < copies.size(),
        node_.op->target, ": ", name, " is a view of a tensor that is not among its bases");
    Tensor base = copies[static_cast<size_t>(number->as_int())];
    if (CallArg* size = part("size")) {
      CallArg *stride = part("stride"), *offset = part("storage_offset");
      require(stride && offset, node_.op->target, ": expected sizes, strides and an offset for ", name);
      return CallArg(Tensor(as_strided(base, *size, *stride, *offset)));
    }
    if (CallArg* dim = part("slice_dim")) {
      CallArg *start = part("slice_start"), *end = part("slice_end");
      require(start && end, node_.op->target, ": expected the start and end of a slice for ", name);
      return CallArg(Tensor(slice(base, *dim, *start, *end)));
    }
    return base;
  }

  CallResults call() {
    std::vector<Given> given;
    for (auto& [name, value] : given_) given.push_back(name.empty() ? Given(value) : Given(name.c_str(), value));
    return call_op(*op_, tenon::bind(*op_, given)).values;
  }
  // What the operator returns, or one None, and what it wrote.
  Args with(const std::vector<Tensor>& copies) {
    Args out;
    for (const CallArg& r : call()) out.push_back(value_of(r));
    if (op_->schema.returns.empty()) out.emplace_back();
    for (const Tensor& t : copies) out.push_back(t ? Arg(tracer_.value(t)) : Arg());
    return out;
  }
  Arg value_of(const CallArg& result) {
    return map_tensors<Value>(result, [&](const Tensor& t) { return t ? tracer_.value(t) : Value(); });
  }

  const Node& node_;
  Tracer tracer_;
  GradMode mode_;
  DispatchScope scope_;
  ShapesScope shapes_;
  const Op* op_ = nullptr;
  std::vector<std::pair<std::string, CallArg>> given_;  // by name; positional ones have none
};

}  // namespace

bool is_wrapped_call(const Op& op) {
  return &op == &effectful_call.op() || &op == &functionalized.op() || &op == &functionalized_v2.op() ||
         &op == &typed_call.op();
}

std::optional<std::string> missing_operator(const Node& node) {
  if (!is_wrapped_call(*node.op)) return std::nullopt;
  const OperatorName* name = find_operator_name(node);
  return !name || registry().find(name->name) ? std::nullopt : std::optional(name->name);
}

Args unwrap_call(GraphBody& graph, const Node& node) {
  Unwrapping call(graph, node);
  if (node.op == &effectful_call.op()) return call.after_token();
  if (node.op == &typed_call.op()) return call.of_dtype();
  return node.op == &functionalized.op() ? call.on_copies() : call.on_copies_of_bases();
}

}  // namespace tenon
