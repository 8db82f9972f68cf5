// Nodes that hold graphs: what they hand in and out against what those graphs take and give.
#include "tenon/export/verify_regions.h"

#include <optional>
#include <span>

namespace tenon {
namespace {

class RegionVerifier {
 public:
  RegionVerifier(const Node& node, const GraphBody& graph) : node_(node), graph_(graph) {}

  void run() {
    switch (node_.op->traits.control) {
      case Control::none: return;
      case Control::grad_region:
        need(node_.args.size() >= 2 && node_.args[0].is<bool>() && node_.args[1].is<Subgraph>(),
             "expected a truth value and a graph as its first arguments");
        return region(1, 2);
      case Control::autocast_region:
        need(node_.args.size() >= 5 && node_.args[0].is<std::string>() &&
                 (node_.args[1].is<DType>() || node_.args[1].is_none()) && node_.args[2].is<bool>() &&
                 (node_.args[3].is<bool>() || node_.args[3].is_none()) && node_.args[4].is<Subgraph>(),
             "expected a device, a dtype, two truth values and a graph as its first arguments");
        return region(4, 5);
      case Control::choose: return choose();
      case Control::repeat: return repeat();
      case Control::map: return map();
      case Control::scan: return scan();
    }
    unreachable();
  }

 private:
  template <class... Parts>
  void need(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      fail("the region ", quoted(node_.origin.name), " (", node_.op->target, "): ", parts...);
  }

  const GraphBody& body(size_t at) const {
    need(at < node_.args.size() && node_.args[at].is<Subgraph>() && node_.args[at].get<Subgraph>()->body,
         "expected a graph as argument ", at);
    return *node_.args[at].get<Subgraph>()->body;
  }

  // The two branches of a choice may differ in sizes, which are symbols outside then, and loops count in symbols; the
  // body of a region is the same program as what is around it.
  bool same_size(SymInt a, SymInt b) const {
    bool inlined = node_.op->traits.control < Control::choose;  // a region
    return a == b || (!inlined && (!a.is_int() || !b.is_int()));
  }
  bool same(const ValueInfo& a, const ValueInfo& b) const {
    if (a.type != b.type) return false;
    if (a.type != ValueType::tensor) return true;
    bool good = a.meta.dtype == b.meta.dtype && a.meta.rank() == b.meta.rank();
    for (size_t i = 0; good && i < a.meta.rank(); ++i) good = same_size(a.meta.sizes[i], b.meta.sizes[i]);
    return good;
  }
  static std::string described(const ValueInfo& info) {
    return info.type == ValueType::tensor ? text(info.meta) : text("the number ", info.expr);
  }

  // Operands behind the graph, one for each of its inputs; then results, one for each output.
  void region(size_t at, size_t first) const {
    const GraphBody& inside = body(at);
    take(inside, std::span(node_.args).subspan(first));
    gives(inside);
  }

  /// The operands of a list, one by one.
  std::vector<Arg> list(size_t at) const {
    need(at < node_.args.size(), "expected a list of values as argument ", at, ", found ", node_.args.size(),
         " arguments");
    const Arg& arg = node_.args[at];
    if (auto* items = arg.get<Arg::Items>()) return *items;
    std::vector<Arg> out;
    if (auto* values = arg.get<std::vector<Value>>()) out.assign(values->begin(), values->end());
    else if (auto* sizes = arg.get<Sizes>()) out.insert(out.end(), sizes->begin(), sizes->end());
    else need(false, "expected a list of values as argument ", at, ", got ", to_text(graph_, arg));
    return out;
  }

  void take(const GraphBody& inside, std::span<const Arg> operands) const {
    need(operands.size() == inside.inputs.size(), "it gets ", operands.size(), " values, but its graph has ",
         inside.inputs.size(), " inputs");
    for (size_t i = 0; i < operands.size(); ++i) takes(operands[i], inside, inside.inputs[i]);
  }

  void takes(const Arg& operand, const GraphBody& inside, const Arg& input) const {
    const Value *given = operand.get<Value>(), *wanted = input.get<Value>();
    if (!wanted || !*wanted) return;
    const ValueInfo& inner = inside.info(*wanted);
    if (!given || !*given) {
      need(inner.type != ValueType::tensor, "its graph takes the tensor ", quoted(inner.name), ", but it gets ",
           to_text(graph_, operand));
      return;
    }
    const ValueInfo& outer = graph_.info(*given);
    if (!same(outer, inner))
      need(false, "it gets ", described(outer), " for the input ", quoted(inner.name), " of its graph, which is ",
           described(inner));
  }

  void gives(const GraphBody& inside) const {
    std::vector<Value> outputs, results;
    for (const Arg& output : inside.outputs) for_each_tensor(output, [&](const Value& v) { outputs.push_back(v); });
    for (const Arg& result : node_.results) for_each_tensor(result, [&](const Value& v) { results.push_back(v); });
    need(results.size() <= outputs.size(), "it is described as giving ", results.size(),
         " values, but its graph gives ", outputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i]) continue;
      const ValueInfo& said = graph_.info(results[i]);
      need(static_cast<bool>(outputs[i]), "its result ", quoted(said.name), " is described as ", described(said),
           ", but its graph gives None");
      if (const ValueInfo& is = inside.info(outputs[i]); !same(said, is))
        need(false, "its result ", quoted(said.name), " is described as ", described(said), ", but its graph gives ",
             described(is));
    }
  }

  void choose() const {
    need(node_.args.size() >= 3, "expected a condition and two graphs, found ", node_.args.size(), " arguments");
    const Arg& condition = node_.args[0];
    const Value* v = condition.get<Value>();
    bool good = condition.is<bool>() || (v && *v);
    if (v && *v) {
      const ValueInfo& info = graph_.info(*v);
      good = info.type == ValueType::boolean || info.type == ValueType::integer || info.type == ValueType::tensor;
      if (info.type == ValueType::tensor)
        if (auto elements = count(info.meta.sizes).constant())
          need(*elements == 1, "expected a condition of one element, got ", described(info));
    }
    need(good, "expected a condition as its first argument, got ", to_text(graph_, condition));
    std::vector<Arg> operands;
    if (node_.args.size() > 3) operands = list(3);
    for (size_t at : {size_t{1}, size_t{2}}) {
      take(body(at), operands);
      gives(body(at));
    }
    need(body(1).outputs.size() == body(2).outputs.size(), "its graphs give ", body(1).outputs.size(), " and ",
         body(2).outputs.size(), " values, which must be as many");
  }

  using Infos = std::vector<ValueInfo>;

  /// What a graph gives: tensors and numbers that it computes.
  Infos given_by(const GraphBody& inside) const {
    Infos out;
    for (const Arg& output : inside.outputs) {
      auto* v = output.get<Value>();
      if (v && *v) out.push_back(inside.info(*v));
      else out.push_back({.name = "a constant", .type = ValueType::integer});
    }
    return out;
  }
  Infos results() const {
    Infos out;
    for_each_result(node_, [&](Value v) { out.push_back(graph_.info(v)); });
    return out;
  }

  /// A tensor among others along a new first dimension.
  static ValueInfo stacked(ValueInfo info, SymInt rows) {
    if (info.type != ValueType::tensor) return info;
    Sizes sizes = {rows};
    for (SymInt s : info.meta.sizes) sizes.push_back(s);
    info.meta = make_meta(info.meta.dtype, sizes);
    return info;
  }

  void compare(std::string_view what, size_t i, const ValueInfo& said, const ValueInfo& is) const {
    if (!same(said, is)) need(false, what, " ", i, " is ", described(said), " where ", described(is), " is expected");
  }

  // The rows of the tensors that a loop goes over.
  SymInt rows(std::span<const Arg> operands, Infos& row_infos) const {
    std::optional<SymInt> count;
    for (const Arg& operand : operands) {
      const Value* v = operand.get<Value>();
      need(v && *v && graph_.info(*v).type == ValueType::tensor && graph_.info(*v).meta.rank() > 0,
           "expected tensors with rows to go over, got ", to_text(graph_, operand));
      ValueInfo info = graph_.info(*v);
      if (!count) count = info.meta.sizes[0];
      need(same_size(*count, info.meta.sizes[0]), "it goes over ", quoted(info.name), " of ", info.meta.sizes[0],
           " rows and another tensor of ", *count);
      Sizes row = info.meta.sizes;
      row.erase(0);
      info.meta = make_meta(info.meta.dtype, row);
      row_infos.push_back(std::move(info));
    }
    need(count.has_value(), "expected tensors with rows to go over, got none");
    return *count;
  }

  // What a body gets beside rows.
  void take(const GraphBody& inside, const Infos& rows, size_t first, std::span<const Arg> rest, size_t rest_at) const {
    for (size_t i = 0; i < rows.size(); ++i) {
      const Value* v = inside.inputs[first + i].get<Value>();
      if (v && *v) compare("input", first + i, inside.info(*v), rows[i]);
    }
    for (size_t i = 0; i < rest.size(); ++i) takes(rest[i], inside, inside.inputs[rest_at + i]);
  }
  void count_inputs(const GraphBody& inside, size_t count) const {
    need(inside.inputs.size() == count, "it gets ", count, " values, but its graph has ", inside.inputs.size(),
         " inputs");
  }
  void count_outputs(const GraphBody& inside, size_t least, bool more) const {
    size_t count = inside.outputs.size();
    need(count == least || (more && count > least), "its graph gives ", count, " values where ", least,
         more ? " or more" : "", " are expected");
  }
  void count_results(const Infos& said, size_t count) const {
    need(said.size() == count, "it is described as giving ", said.size(), " values, but it gives ", count);
  }

  void map() const {
    const GraphBody& inside = body(0);
    std::vector<Arg> mapped = list(1), captured = list(2);
    count_inputs(inside, mapped.size() + captured.size());
    Infos row_infos, made = given_by(inside), said = results();
    SymInt count = rows(mapped, row_infos);
    take(inside, row_infos, 0, captured, mapped.size());
    count_results(said, made.size());
    for (size_t i = 0; i < said.size(); ++i) compare("result", i, said[i], stacked(made[i], count));
  }

  void scan() const {
    const GraphBody& inside = body(0);
    std::vector<Arg> carried = list(1), scanned = list(2), captured = list(3);
    count_inputs(inside, carried.size() + scanned.size() + captured.size());
    count_outputs(inside, carried.size(), true);
    Infos row_infos, made = given_by(inside), said = results();
    SymInt count = rows(scanned, row_infos);
    for (size_t i = 0; i < carried.size(); ++i) takes(carried[i], inside, inside.inputs[i]);
    take(inside, row_infos, carried.size(), captured, carried.size() + scanned.size());
    carries_on(inside, carried.size());
    count_results(said, made.size());
    for (size_t i = 0; i < said.size(); ++i)
      compare("result", i, said[i], i < carried.size() ? made[i] : stacked(made[i], count));
  }

  void repeat() const {
    const GraphBody &condition = body(0), &inside = body(1);
    std::vector<Arg> operands = list(2), captured = list(3);
    size_t carried = operands.size();
    operands.insert(operands.end(), captured.begin(), captured.end());
    take(condition, operands);
    take(inside, operands);
    count_outputs(condition, 1, false);
    ValueInfo holds = given_by(condition)[0];
    need(holds.type == ValueType::boolean || holds.type == ValueType::integer ||
             (holds.type == ValueType::tensor && count(holds.meta.sizes) == SymInt(1)),
         "expected its first graph to give a condition, got ", described(holds));
    count_outputs(inside, carried, false);
    carries_on(inside, carried);
    Infos made = given_by(inside), said = results();
    count_results(said, carried);
    for (size_t i = 0; i < carried; ++i) compare("result", i, said[i], made[i]);
  }

  // What is carried goes into the next round as what it came in as.
  void carries_on(const GraphBody& inside, size_t carried) const {
    Infos made = given_by(inside);
    for (size_t i = 0; i < carried; ++i) {
      const Value* v = inside.inputs[i].get<Value>();
      if (v && *v) compare("output", i, made[i], inside.info(*v));
    }
  }

  const Node& node_;
  const GraphBody& graph_;
};

}  // namespace

void verify_region(const Node& node, const GraphBody& graph) { RegionVerifier(node, graph).run(); }

}  // namespace tenon
