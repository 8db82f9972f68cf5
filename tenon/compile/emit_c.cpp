#include "tenon/compile/emit_c.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "tenon/base/error.h"
#include "tenon/base/text.h"
#include "tenon/compile/emit_c_prologue.h"
#include "tenon/compile/evaluate.h"

namespace tenon::compile {
namespace {

std::string_view c_type(Type type) {
  switch (type) {
    case Type::b1: return "b1";
    case Type::i32: return "i32";
    case Type::i64: return "i64";
    case Type::f32: return "f32";
    case Type::f64: return "f64";
  }
  unreachable();
}
std::string_view c_type(Element element) {
  switch (element) {
    case Element::boolean: return "u8";
    case Element::i8: return "i8";
    case Element::u8: return "u8";
    case Element::i16: return "i16";
    case Element::u16:
    case Element::f16:
    case Element::bf16: return "u16";
    case Element::i32: return "i32";
    case Element::i64: return "i64";
    case Element::f32: return "f32";
    case Element::f64: return "f64";
  }
  unreachable();
}

std::string literal(Type type, Bits bits) {
  switch (type) {
    case Type::b1: return bits ? "1" : "0";
    case Type::i32: return text("(i32)", static_cast<uint32_t>(bits), "u");
    case Type::i64: return text("(i64)", bits, "ull");
    case Type::f32:
    case Type::f64: break;
  }
  double value = number_of(type, bits);
  const char* suffix = type == Type::f32 ? "f" : "";
  if (std::isnan(value)) return text("__builtin_nan", suffix, "(\"\")");
  if (std::isinf(value)) return text(value < 0 ? "(-__builtin_inf" : "(__builtin_inf", suffix, "())");
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%a%s", value, suffix);
  return std::signbit(value) ? text('(', buffer, ')') : buffer;
}

class Writer {
 public:
  Writer(const Kernel& kernel, std::string& out) : kernel_(kernel), out_(out) {}

  void run() {
    tables();
    out_ += text("int ", kernel_.name, "(const struct tenon_args* args, i64 lo, i64 hi) {\n  int status = 0;\n");
    for (size_t m = 0; m < kernel_.memory.size(); ++m) {
      const Memory& memory = kernel_.memory[m];
      std::string from = memory.scratch ? text("((char*)args->scratch + ", memory.number, ")")
                                        : text("args->buffers[", memory.number, ']');
      const char* constant = memory.written ? "" : "const ";
      out_ += text("  ", constant, c_type(memory.element), "* m", m, " = (", constant, c_type(memory.element), "*)",
                   from, ";  /* ", memory.name, " */\n");
      out_ += text("  (void)m", m, ";\n");
    }
    body(kernel_.body, 1);
    out_ += "  (void)lo; (void)hi;\n  return status;\n}\n\n";
  }

  void run_function() {
    tables();
    size_t result = kernel_.memory.size() - 1;
    out_ += text("HELPER ", c_type(kernel_.memory[result].element), ' ', kernel_.name, '(');
    for (size_t m = 0; m < result; ++m) out_ += text(m ? ", " : "", c_type(kernel_.memory[m].element), " x", m);
    out_ += text(") {\n  ", c_type(kernel_.memory[result].element), " m", result, "[1];\n");
    for (size_t m = 0; m < result; ++m)
      out_ += text("  const ", c_type(kernel_.memory[m].element), " m", m, "[1] = {x", m, "};\n");
    body(kernel_.body, 1);
    out_ += text("  return m", result, "[0];\n}\n\n");
  }

 private:
  void tables() {
    require(is_identifier(kernel_.name), "kernel ", quoted(kernel_.name), " is no C identifier; rename it");
    for (size_t t = 0; t < kernel_.tables.size(); ++t) {
      const Table& table = kernel_.tables[t];
      out_ += text("static const ", c_type(table.type), ' ', kernel_.name, "_t", t, "[16] = {");
      for (int i = 0; i < 16; ++i) out_ += text(i ? ", " : "", literal(table.type, table.bits[i]));
      out_ += "};\n";
    }
  }
  static bool is_identifier(std::string_view s) {
    auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !s.empty() && letter(s[0]) &&
           std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
  }
  Type type(ValueId v) const { return kernel_.values[v].type; }
  static std::string v(ValueId id) { return text('v', id); }
  std::string arg(const Instruction& i, size_t n) const { return v(i.args[n]); }

  std::string place(const Instruction& i) {
    std::string at = arg(i, 0);
    switch (i.access) {
      case Access::uniform: break;
      case Access::contiguous: at += text(" + ", lane_); break;
      case Access::strided: at += text(" + ", lane_, " * ", arg(i, 1)); break;
      case Access::gathered: at += text(" + (i64)", arg(i, 1)); break;
    }
    return text('m', i.memory, '[', at, ']');
  }
  static std::string loaded(Element element, const std::string& from) {
    switch (element) {
      case Element::boolean: return text("(b1)(", from, " != 0)");
      case Element::f16: return text("half_to_float(", from, ')');
      case Element::bf16: return text("bfloat_to_float(", from, ')');
      case Element::i8:
      case Element::u8:
      case Element::i16:
      case Element::u16:
      case Element::i32:
      case Element::i64:
      case Element::f32:
      case Element::f64: return from;
    }
    unreachable();
  }
  static std::string stored(Element element, const std::string& value) {
    if (element == Element::f16) return text("float_to_half(", value, ')');
    if (element == Element::bf16) return text("float_to_bfloat(", value, ')');
    return text('(', c_type(element), ")(", value, ')');
  }
  static std::string combined(Combine how, Type type, const std::string& a, const std::string& b) {
    std::string or_nan = is_float(type) ? text(" || ", b, " != ", b) : "";
    switch (how) {
      case Combine::add: return text(a, " + ", b);
      case Combine::mul: return text(a, " * ", b);
      case Combine::min: return text(b, " < ", a, or_nan, " ? ", b, " : ", a);
      case Combine::max: return text(b, " > ", a, or_nan, " ? ", b, " : ", a);
      case Combine::all: return text(a, " & ", b);
      case Combine::any: return text(a, " | ", b);
      case Combine::argmin:
      case Combine::argmax:
      case Combine::position: break;
    }
    unreachable();
  }

  std::string expression(const Instruction& i) {
    Type result = type(i.result);
    auto infix = [&](const char* op) { return text(arg(i, 0), ' ', op, ' ', arg(i, 1)); };
    auto builtin = [&](const char* function) {
      std::string args;
      for (size_t k = 0; k < i.args.size(); ++k) args += text(k ? ", " : "", arg(i, k));
      return text("__builtin_", function, result == Type::f32 ? "f(" : "(", args, ')');
    };
    auto helper = [&](const char* function, Type t) {
      std::string args;
      for (size_t k = 0; k < i.args.size(); ++k) args += text(k ? ", " : "", arg(i, k));
      return text(function, '_', c_type(t), '(', args, ')');
    };
    switch (i.op) {
      case Op::constant: return literal(result, i.bits);
      case Op::param: return text("args->params[", i.bits, ']');
      case Op::lo: return "lo";
      case Op::hi: return "hi";
      case Op::position: return text("(i32)(", lane_, " - ", first_lane_, ')');
      case Op::add: return infix("+");
      case Op::sub: return infix("-");
      case Op::mul: return infix("*");
      case Op::div: return is_int(result) ? helper("div", result) : infix("/");
      case Op::rem: return helper("rem", result);
      case Op::min: return text(infix("<"), " ? ", arg(i, 0), " : ", arg(i, 1));
      case Op::max: return text(infix(">"), " ? ", arg(i, 0), " : ", arg(i, 1));
      case Op::fma: return builtin("fma");
      case Op::neg: return text('-', arg(i, 0));
      case Op::abs: return is_int(result) ? text(arg(i, 0), " < 0 ? -", arg(i, 0), " : ", arg(i, 0)) : builtin("fabs");
      case Op::sqrt: return builtin("sqrt");
      case Op::floor: return builtin("floor");
      case Op::ceil: return builtin("ceil");
      case Op::trunc: return builtin("trunc");
      case Op::round_even: return builtin("rint");
      case Op::scale: return helper("scale", result);
      case Op::mul_low32: return text("(i64)((u64)(u32)", arg(i, 0), " * (u32)", arg(i, 1), ')');
      case Op::bit_and: return infix("&");
      case Op::bit_or: return infix("|");
      case Op::bit_xor: return infix("^");
      case Op::bit_not: return text(result == Type::b1 ? '!' : '~', arg(i, 0));
      case Op::shift_left: return helper("shift_left", result);
      case Op::shift_right: return helper("shift_right", result);
      case Op::shift_sign: return helper("shift_sign", result);
      case Op::bits: return text("bits_", c_type(result), '(', arg(i, 0), ')');
      case Op::eq: return infix("==");
      case Op::ne: return infix("!=");
      case Op::lt: return infix("<");
      case Op::le: return infix("<=");
      case Op::gt: return infix(">");
      case Op::ge: return infix(">=");
      case Op::ult:
        return type(i.args[0]) == Type::i32 ? text("(u32)", arg(i, 0), " < (u32)", arg(i, 1))
                                            : text("(u64)", arg(i, 0), " < (u64)", arg(i, 1));
      case Op::select: return text(arg(i, 0), " ? ", arg(i, 1), " : ", arg(i, 2));
      case Op::convert: {
        if (result == Type::b1) return text(arg(i, 0), " != 0");
        Type from = type(i.args[0]);
        if (is_float(from) && is_int(result)) return text(c_type(result), "_from_", c_type(from), '(', arg(i, 0), ')');
        return text('(', c_type(result), ')', arg(i, 0));
      }
      case Op::round_to:
        return i.element == Element::f16 ? text("half_to_float(float_to_half(", arg(i, 0), "))")
                                         : text("bfloat_to_float(float_to_bfloat(", arg(i, 0), "))");
      case Op::pick: return text(kernel_.name, "_t", i.bits, '[', arg(i, 0), " & 15]");
      case Op::load: {
        std::string from = loaded(kernel_.memory[i.memory].element, place(i));
        if (!i.guarded) return from;
        size_t extra = i.access == Access::strided || i.access == Access::gathered ? 2 : 1;
        return text(arg(i, extra), " ? ", from, " : ", arg(i, extra + 1));
      }
      case Op::store:
      case Op::update:
      case Op::fault:
      case Op::loop: break;
    }
    unreachable();
  }

  void body(const std::vector<Instruction>& instructions, int depth) {
    std::string indent(static_cast<size_t>(2 * depth), ' ');
    for (const Instruction& i : instructions) {
      if (i.op == Op::loop) {
        const Loop& l = kernel_.loops[i.loop];
        if (l.lanes) lanes(l, depth);
        else counted(l, depth);
        continue;
      }
      size_t extra = i.access == Access::strided || i.access == Access::gathered ? 2 : 1;
      if (i.op == Op::fault) out_ += text(indent, "if (", arg(i, 0), ") status |= ", i.bits, ";\n");
      else if (i.op == Op::store || i.op == Op::update) {
        Element element = kernel_.memory[i.memory].element;
        std::string to = place(i), value = arg(i, extra);
        if (i.guarded) out_ += text(indent, "if (", arg(i, extra + 1), ") {\n");
        if (i.op == Op::update) {
          out_ += text(indent, "{ ", c_type(computed_in(element)), " old = ", loaded(element, to), "; ", to, " = ",
                       stored(element, combined(i.combine, computed_in(element), "old", value)), "; }\n");
        } else out_ += text(indent, to, " = ", stored(element, value), ";\n");
        if (i.guarded) out_ += indent + "}\n";
      } else out_ += text(indent, "const ", c_type(type(i.result)), ' ', v(i.result), " = ", expression(i), ";\n");
    }
  }

  void counted(const Loop& l, int depth) {
    std::string indent(static_cast<size_t>(2 * depth), ' ');
    for (const Carry& c : l.carried)
      out_ += text(indent, c_type(type(c.argument)), ' ', v(c.argument), " = ", v(c.init), ";\n");
    out_ += text(indent, "for (i64 ", v(l.index), " = ", v(l.lower), "; ", v(l.index), " < ", v(l.upper));
    if (l.conditional) out_ += text(" && ", v(l.carried[0].argument));
    out_ += text("; ++", v(l.index), ") {\n");
    body(l.body, depth + 1);
    for (const Carry& c : l.carried)
      out_ += text(indent, "  const ", c_type(type(c.argument)), " next", c.argument, " = ", v(c.next), ";\n");
    for (const Carry& c : l.carried) out_ += text(indent, "  ", v(c.argument), " = next", c.argument, ";\n");
    out_ += indent + "}\n";
    for (const Carry& c : l.carried)
      out_ += text(indent, "const ", c_type(type(c.result)), ' ', v(c.result), " = ", v(c.argument), ";\n");
  }

  // Iterations may only be taken as independent where none writes where another may.
  bool independent(const std::vector<Instruction>& instructions) const {
    return std::all_of(instructions.begin(), instructions.end(), [&](const Instruction& i) {
      if (i.op == Op::loop) return independent(kernel_.loops[i.loop].body);
      return i.op != Op::update &&
             !(i.op == Op::store && (i.access == Access::gathered || i.access == Access::strided));
    });
  }

  void lanes(const Loop& l, int depth) {
    std::string indent(static_cast<size_t>(2 * depth), ' ');
    std::string pragma = independent(l.body) ? "#pragma GCC ivdep\n" : "";
    lane_ = v(l.index);
    first_lane_ = v(l.lower);
    if (l.carried.empty()) {
      out_ += pragma;
      out_ +=
          text(indent, "for (i64 ", lane_, " = ", v(l.lower), "; ", lane_, " < ", v(l.upper), "; ++", lane_, ") {\n");
      body(l.body, depth + 1);
      out_ += indent + "}\n";
      return;
    }
    std::string start = text("start", l.index);
    for (const Carry& c : l.carried) {
      out_ += text(indent, c_type(type(c.argument)), " c", c.argument, '[', l.ways, "];\n");
      out_ += text(indent, "for (int w = 0; w < ", l.ways, "; ++w) c", c.argument, "[w] = ", v(c.init), ";\n");
    }
    out_ += text(indent, "for (i64 ", start, " = ", v(l.lower), "; ", start, " < ", v(l.upper), "; ", start,
                 " += ", l.ways, ") {\n");
    out_ += text(indent, "  const i64 count = ", v(l.upper), " - ", start, " < ", l.ways, " ? ", v(l.upper), " - ",
                 start, " : ", l.ways, ";\n");
    out_ += pragma;
    out_ += text(indent, "  for (i64 way = 0; way < count; ++way) {\n");
    out_ += text(indent, "    const i64 ", lane_, " = ", start, " + way;\n");
    for (const Carry& c : l.carried)
      out_ += text(indent, "    const ", c_type(type(c.argument)), ' ', v(c.argument), " = c", c.argument, "[way];\n");
    body(l.body, depth + 2);
    for (const Carry& c : l.carried) out_ += text(indent, "    c", c.argument, "[way] = ", v(c.next), ";\n");
    out_ += text(indent, "  }\n", indent, "}\n");
    for (size_t k = 0; k < l.carried.size(); ++k) {
      const Carry& c = l.carried[k];
      if (c.combine == Combine::position) continue;
      out_ += text(indent, "for (int half = ", l.ways / 2, "; half; half /= 2)\n", indent,
                   "  for (int w = 0; w < half; ++w) {\n");
      std::string own = text('c', c.argument, "[w]"), other = text('c', c.argument, "[w + half]");
      if (c.combine == Combine::argmin || c.combine == Combine::argmax) {
        std::string at = text('c', l.carried[k + 1].argument, "[w]"),
                    there = text('c', l.carried[k + 1].argument, "[w + half]");
        std::string better = text(other, c.combine == Combine::argmin ? " < " : " > ", own);
        std::string displaces = text(own, " != ", own, " || ", other, " != ", other, " ? (", own, " != ", own, " && ",
                                     other, " != ", other, " ? ", there, " < ", at, " : ", other, " != ", other,
                                     ") : ", own, " == ", other, " ? ", there, " < ", at, " : ", better);
        out_ += text(indent, "    if (", displaces, ") { ", own, " = ", other, "; ", at, " = ", there, "; }\n");
      } else out_ += text(indent, "    ", own, " = ", combined(c.combine, type(c.argument), own, other), ";\n");
      out_ += indent + "  }\n";
    }
    for (const Carry& c : l.carried)
      out_ += text(indent, "const ", c_type(type(c.result)), ' ', v(c.result), " = c", c.argument, "[0];\n");
  }

  const Kernel& kernel_;
  std::string& out_;
  std::string lane_, first_lane_;
};

}  // namespace

std::string emit_c(std::span<const Kernel> kernels) {
  std::string out = text(c_types, c_args, c_operations);
  for (const Kernel& kernel : kernels) Writer(kernel, out).run();
  return out;
}

std::string emit_c_functions(std::span<const Kernel> kernels) {
  std::string out = text(c_types, c_operations);
  for (const Kernel& kernel : kernels) Writer(kernel, out).run_function();
  return out;
}

}  // namespace tenon::compile
