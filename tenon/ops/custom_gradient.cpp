#include "tenon/ops/custom_gradient.h"

#include <charconv>
#include <cstdlib>

#include "tenon/ops/creation.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

// grad, grad1, out2: which result it speaks of; nothing where the text is something else.
std::optional<size_t> numbered(std::string_view text, std::string_view stem, size_t count) {
  if (!starts_with(text, stem)) return std::nullopt;
  text.remove_prefix(stem.size());
  if (text.empty()) return 0;
  size_t which = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), which);
  if (error != std::errc() || end != text.data() + text.size() || which >= count) return std::nullopt;
  return which;
}

std::optional<CallArg> constant_of(std::string_view text) {
  if (text == "None") return CallArg();
  if (text == "True") return CallArg(true);
  if (text == "False") return CallArg(false);
  std::string whole(text);
  int64_t integer = 0;
  auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), integer);
  if (!whole.empty() && error == std::errc() && end == whole.data() + whole.size()) return CallArg(integer);
  char* rest = nullptr;
  double real = std::strtod(whole.c_str(), &rest);
  if (!whole.empty() && !*rest) return CallArg(real);
  return std::nullopt;
}

}  // namespace

CustomGradient::Operand CustomGradient::operand(const Schema& schema, std::string_view text) const {
  Operand out;
  if (size_t equals = text.find('='); equals != text.npos) {
    out.keyword = trim(text.substr(0, equals));
    text = trim(text.substr(equals + 1));
  }
  if (schema.find(text) >= 0) {
    out.kind = Operand::Kind::argument;
    out.argument = text;
  } else if (auto which = numbered(text, "grad", schema.returns.size())) {
    out.kind = Operand::Kind::gradient;
    out.which = *which;
  } else if (auto result = numbered(text, "out", schema.returns.size())) {
    out.kind = Operand::Kind::result;
    out.which = *result;
  } else {
    auto constant = constant_of(text);
    require(constant.has_value(), "expected an argument, grad, out or a number, got ", quoted(text));
    out.constant = *constant;
  }
  return out;
}

CustomGradient::CustomGradient(const Schema& schema, std::string_view text) {
  for (const std::string& part : split(text, ';')) {
    std::string_view clause = trim(part);
    if (clause.empty()) continue;
    size_t equals = clause.find('='), open = clause.find('(');
    require(equals != clause.npos && open != clause.npos && equals < open && clause.back() == ')',
            "expected a call such as x = mylib::op(grad, x), got ", quoted(clause));
    Clause made;
    for (const std::string& name : split(clause.substr(0, equals), ',')) {
      std::string_view arg = trim(name);
      int at = schema.find(arg);
      require(at >= 0 && schema.args[static_cast<size_t>(at)].type.kind == TypeKind::tensor &&
                  !schema.args[static_cast<size_t>(at)].type.list,
              "expected the name of a tensor before =, got ", quoted(arg));
      made.of.emplace_back(arg);
    }
    made.op = trim(clause.substr(equals + 1, open - equals - 1));
    std::string_view operands = clause.substr(open + 1, clause.size() - open - 2);
    if (!trim(operands).empty())
      for (const std::string& each : split(operands, ',')) made.operands.push_back(operand(schema, trim(each)));
    clauses_.push_back(std::move(made));
  }
}

std::vector<std::pair<std::string, size_t>> CustomGradient::calls() const {
  std::vector<std::pair<std::string, size_t>> out;
  for (const Clause& clause : clauses_) out.emplace_back(clause.op, clause.of.size());
  return out;
}

std::string CustomGradient::of() const {
  std::vector<std::string> names;
  for (const Clause& clause : clauses_) names.insert(names.end(), clause.of.begin(), clause.of.end());
  return join(names, ", ");
}

Grads CustomGradient::evaluate(Vjp& call) const {
  Grads out;
  for (const Clause& clause : clauses_) {
    bool needed = false;
    for (const std::string& name : clause.of) needed = needed || call.needs(name.c_str());
    if (!needed) {
      out.resize(out.size() + clause.of.size());
      continue;
    }
    const Op* op = registry().find(clause.op);
    call.require(op != nullptr, "its gradient calls ", quoted(clause.op), ", which there is not");
    std::vector<Given> given;
    for (const Operand& operand : clause.operands) {
      CallArg value;
      switch (operand.kind) {
        case Operand::Kind::argument: value = call.arg(operand.argument.c_str()); break;
        case Operand::Kind::result: value = call.out(operand.which); break;
        case Operand::Kind::constant: value = operand.constant; break;
        case Operand::Kind::gradient:
          value = call.grad(operand.which) ? call.grad(operand.which) : Tensor(zeros_like(call.out(operand.which)));
          break;
      }
      if (operand.keyword.empty()) given.emplace_back(std::move(value));
      else given.emplace_back(operand.keyword.c_str(), std::move(value));
    }
    Results made = call_op(*op, tenon::bind(*op, given));
    for (size_t i = 0; i < clause.of.size(); ++i) out.emplace_back(made[i]);
  }
  return out;
}

}  // namespace tenon
