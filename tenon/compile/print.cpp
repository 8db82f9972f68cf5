#include <bit>
#include <charconv>
#include <cmath>

#include "tenon/base/error.h"
#include "tenon/base/text.h"
#include "tenon/compile/evaluate.h"

namespace tenon::compile {
namespace {

template <class T>
std::string shortest(T value) {
  if (std::isnan(value)) return "nan";
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}
std::string number(Type type, Bits bits) {
  switch (type) {
    case Type::b1: return bits ? "true" : "false";
    case Type::i32:
    case Type::i64: return text(integer_of(type, bits));
    case Type::f32: return shortest(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case Type::f64: return shortest(std::bit_cast<double>(bits));
  }
  unreachable();
}

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel), numbers_(kernel.values.size(), no_value) {}

  std::string run() {
    out_ = text("kernel ", kernel_.name, "\n");
    for (const Memory& m : kernel_.memory) {
      out_ += text("memory ", m.name, ": ", name(m.element), " = ");
      if (m.scratch) out_ += text("scratch ", m.number, " [", m.count, "]");
      else out_ += text("buffer ", m.number);
      out_ += m.written && !m.scratch ? " written\n" : "\n";
    }
    for (const Table& t : kernel_.tables) {
      out_ += text("table ", name(t.type), " = [");
      for (int i = 0; i < 16; ++i) out_ += text(i ? ", " : "", number(t.type, t.bits[i]));
      out_ += "]\n";
    }
    body(kernel_.body, 0);
    out_ += "end\n";
    return std::move(out_);
  }

 private:
  std::string value(ValueId v) { return text('%', numbers_[v]); }
  std::string define(ValueId v) {
    numbers_[v] = next_++;
    const Value& known = kernel_.values[v];
    return text(value(v), ": ", known.varying ? "varying " : "", name(known.type));
  }
  std::string list(std::span<const ValueId> values) {
    std::string out;
    for (ValueId v : values) out += text(out.empty() ? "" : ", ", value(v));
    return out;
  }

  std::string place(const Instruction& i) {
    std::string at = text(kernel_.memory[i.memory].name, '[', value(i.args[0]));
    switch (i.access) {
      case Access::uniform: break;
      case Access::contiguous: at += " + lane"; break;
      case Access::strided: at += text(" + lane * ", value(i.args[1])); break;
      case Access::gathered: at += text(" + ", value(i.args[1])); break;
    }
    return at + ']';
  }

  void body(const std::vector<Instruction>& instructions, int depth) {
    for (const Instruction& i : instructions) {
      std::string indent(static_cast<size_t>(2 * depth), ' ');
      if (i.op == Op::loop) {
        loop(kernel_.loops[i.loop], depth);
        continue;
      }
      size_t extra = i.access == Access::strided || i.access == Access::gathered ? 2 : 1;
      switch (i.op) {
        case Op::store:
        case Op::update:
          out_ += text(indent, name(i.op), ' ', i.op == Op::update ? text(name(i.combine), ' ') : "", place(i), ", ",
                       value(i.args[extra]), i.guarded ? text(" if ", value(i.args[extra + 1])) : "", '\n');
          continue;
        case Op::fault: out_ += text(indent, "fault ", i.bits, " if ", value(i.args[0]), '\n'); continue;
        default: break;
      }
      std::string args = list(i.args);  // before the result gets its number
      if (i.op == Op::load)
        args = text(place(i), i.guarded ? text(" if ", value(i.args[extra]), " else ", value(i.args[extra + 1])) : "");
      if (i.op == Op::constant) args = number(kernel_.values[i.result].type, i.bits);
      if (i.op == Op::param) args = text(i.bits);
      if (i.op == Op::pick) args = text("table ", i.bits, ", ", args);
      if (i.op == Op::round_to) args = text(name(i.element), ", ", args);
      out_ += text(indent, define(i.result), " = ", name(i.op), args.empty() ? "" : " ", args, '\n');
    }
  }

  void loop(const Loop& l, int depth) {
    std::string indent(static_cast<size_t>(2 * depth), ' ');
    std::string bounds = text(" = ", value(l.lower), " to ", value(l.upper));
    std::vector<std::string> inits;
    for (const Carry& c : l.carried) inits.push_back(value(c.init));
    numbers_[l.index] = next_++;
    out_ += text(indent, l.lanes ? "lanes " : "for ", value(l.index), bounds);
    if (l.lanes) out_ += text(" ways ", l.ways);
    if (l.conditional) out_ += " while";
    for (size_t k = 0; k < l.carried.size(); ++k) {
      out_ += text(k ? ", " : " carry ", define(l.carried[k].argument), " = ", inits[k]);
      if (l.lanes) out_ += text(' ', name(l.carried[k].combine));
    }
    out_ += " {\n";
    body(l.body, depth + 1);
    if (!l.carried.empty()) {
      out_ += indent + "  next ";
      for (size_t k = 0; k < l.carried.size(); ++k) out_ += text(k ? ", " : "", value(l.carried[k].next));
      out_ += '\n';
    }
    out_ += indent + '}';
    for (size_t k = 0; k < l.carried.size(); ++k) out_ += text(k ? ", " : " gives ", define(l.carried[k].result));
    out_ += '\n';
  }

  const Kernel& kernel_;
  std::vector<uint32_t> numbers_;
  uint32_t next_ = 0;
  std::string out_;
};

}  // namespace

std::string to_text(const Kernel& kernel) { return Printer(kernel).run(); }

}  // namespace tenon::compile
