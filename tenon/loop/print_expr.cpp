#include "tenon/loop/print_expr.h"

#include "tenon/base/error.h"

namespace tenon::loop {
namespace {

constexpr double long_text = 150, long_part = 8;  // in nodes

/// How often each node below some expressions is used, and how many nodes its text would have.
class Census {
 public:
  explicit Census(const Arena& arena) : arena_(arena) {}
  double add(ExprId id) {
    if (id == ~0u) return 0;
    Entry& known = entries_[id];
    if (known.uses++ > 0) return known.nodes;
    const ExprNode& n = arena_[id];
    double nodes = 1;
    for (ExprId arg : n.args) nodes += add(arg);
    nodes += add(n.guard) + add(n.otherwise);
    entries_[id].nodes = nodes;
    order.push_back(id);
    return nodes;
  }
  bool repeats(ExprId id) const {
    const Entry& entry = entries_.at(id);
    return entry.uses > 1 && entry.nodes >= long_part;
  }
  std::vector<ExprId> order;  // operands first

 private:
  struct Entry {
    size_t uses = 0;
    double nodes = 0;
  };
  const Arena& arena_;
  std::unordered_map<ExprId, Entry> entries_;
};

}  // namespace

ExprText::ExprText(const Program& program, const Stage& stage) : program_(program) {
  Census census(program.arena);
  double nodes = 0;
  for (const Accumulator& a : stage.accumulators) nodes += census.add(a.value);
  for (const Store& s : stage.stores) {
    for (ExprId at : s.at) nodes += census.add(at);
    nodes += census.add(s.value) + census.add(s.where);
  }
  if (nodes < long_text) return;
  for (ExprId id : census.order)
    if (census.repeats(id)) {
      names_.emplace(id, named_.size());
      named_.push_back(id);
    }
}

std::string ExprText::operator()(ExprId id) const {
  auto known = names_.find(id);
  return known == names_.end() ? spelled(id) : text("v", known->second);
}

std::string ExprText::definitions() const {
  std::string out;
  for (size_t i = 0; i < named_.size(); ++i) out += text("  v", i, " = ", spelled(named_[i]), "\n");
  return out;
}

std::string ExprText::list(std::span<const ExprId> at) const {
  std::string out = "[";
  for (size_t i = 0; i < at.size(); ++i) out += (i ? ", " : "") + (*this)(at[i]);
  return out + "]";
}

std::string ExprText::spelled(ExprId id) const {
  const ExprText& of = *this;
  const ExprNode& n = program_.arena[id];
  switch (n.fn) {
    case Fn::constant:
      return n.type == Compute::i64       ? text(n.integer)
             : n.type == Compute::boolean ? text(n.integer != 0)
                                          : text(n.real);
    case Fn::index: return text("i", n.integer);
    case Fn::size: return text(n.size);
    case Fn::accumulated: return text("acc", n.integer);
    case Fn::load: {
      std::string out = program_.buffers[n.buffer].name + list(n.args);
      if (n.guard != ~0u) out = text("(", of(n.guard), " ? ", out, " : ", of(n.otherwise), ")");
      return out;
    }
    case Fn::cast: return text(name(n.type), "(", of(n.args[0]), ")");
    case Fn::round_to: return text("round_to ", n.dtype, "(", of(n.args[0]), ")");
    case Fn::add: return text("(", of(n.args[0]), " + ", of(n.args[1]), ")");
    case Fn::sub: return text("(", of(n.args[0]), " - ", of(n.args[1]), ")");
    case Fn::mul: return text(of(n.args[0]), " * ", of(n.args[1]));
    default: {
      std::string out = text(name(n.fn), "(");
      for (size_t i = 0; i < n.args.size(); ++i) out += (i ? ", " : "") + of(n.args[i]);
      return out + ")";
    }
  }
}

std::string to_text(const Program& program, ExprId id) { return ExprText(program)(id); }

}  // namespace tenon::loop
