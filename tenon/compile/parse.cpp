// The text form back: one statement a line. Values are defined before they are used, so one pass is enough.
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "tenon/base/error.h"
#include "tenon/base/text.h"
#include "tenon/compile/evaluate.h"

namespace tenon::compile {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view source) {
    for (const std::string& line : split(source, '\n')) lines_.push_back(line);
  }

  Kernel run() {
    next_line();
    take("kernel");
    kernel_.name = word();
    for (next_line(); peek() == "memory" || peek() == "table"; next_line()) {
      if (peek() == "memory") memory();
      else table();
    }
    kernel_.body = body("end", nullptr);
    return std::move(kernel_);
  }

 private:
  template <class... Parts>
  void check(bool ok, const Parts&... parts) {
    require(ok, "kernel text, line ", line_, ": ", parts...);
  }

  void next_line() {
    do {
      check(line_ < lines_.size(), "expected 'end', got the end of the text; close every loop and the kernel");
      words_.clear();
      at_ = 0;
      std::string_view rest = lines_[line_++];
      while (!(rest = trim(rest)).empty()) {
        size_t n = 0;
        auto in_word = [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '%';
        };
        if (std::string_view("[]{},:=+*").find(rest[0]) != std::string_view::npos) n = 1;
        else
          while (n < rest.size() && (in_word(rest[n]) || rest[n] == '-' || (rest[n] == '+' && n && rest[n - 1] == 'e')))
            ++n;
        check(n > 0, "expected a word, got ", quoted(rest));
        words_.emplace_back(rest.substr(0, n));
        rest.remove_prefix(n);
      }
    } while (words_.empty());
  }
  std::string peek() const { return at_ < words_.size() ? words_[at_] : std::string(); }
  std::string word() {
    check(at_ < words_.size(), "expected more, got the end of the line");
    return words_[at_++];
  }
  void take(std::string_view expected) {
    std::string got = word();
    check(got == expected, "expected ", expected, ", got ", quoted(got));
  }
  bool taken(std::string_view maybe) {
    if (peek() != maybe) return false;
    ++at_;
    return true;
  }

  template <class E>
  E one_of(E last) {
    std::string got = word();
    for (int i = 0; i <= static_cast<int>(last); ++i)
      if (name(static_cast<E>(i)) == got) return static_cast<E>(i);
    check(false, "there is no ", quoted(got), " here");
    return last;
  }
  template <class T>
  T integer() {
    std::string got = word();
    T value{};
    auto end = std::from_chars(got.data(), got.data() + got.size(), value);
    check(end.ec == std::errc() && end.ptr == got.data() + got.size(), "expected an integer, got ", quoted(got));
    return value;
  }
  template <class T>
  T real() {
    std::string got = word();
    if (got == "nan") return std::numeric_limits<T>::quiet_NaN();
    T value{};
    auto end = std::from_chars(got.data(), got.data() + got.size(), value);
    check(end.ec == std::errc() && end.ptr == got.data() + got.size(), "expected a number, got ", quoted(got));
    return value;
  }
  Bits number(Type type) {
    switch (type) {
      case Type::b1: return taken("true") ? 1 : (take("false"), 0);
      case Type::i32: return bits_of_integer(type, integer<int32_t>());
      case Type::i64: return bits_of_integer(type, integer<int64_t>());
      case Type::f32: return bits_of(type, real<float>());
      case Type::f64: return bits_of(type, real<double>());
    }
    unreachable();
  }

  ValueId define(std::string_view id, Value value) {
    check(starts_with(id, "%"), "expected a value such as %1, got ", quoted(id));
    auto v = static_cast<ValueId>(kernel_.values.size());
    kernel_.values.push_back(value);
    check(values_.emplace(id, v).second, id, " is defined twice");
    return v;
  }
  ValueId define() {  // %3: varying f32
    std::string id = word();
    take(":");
    Value value;
    value.varying = taken("varying");
    value.type = one_of(Type::f64);
    return define(id, value);
  }
  ValueId use() {
    std::string id = word();
    auto found = values_.find(id);
    check(found != values_.end(), "there is no value ", quoted(id), " yet");
    return found->second;
  }

  void memory() {
    take("memory");
    Memory m;
    m.name = word();
    take(":");
    m.element = one_of(Element::f64);
    take("=");
    m.scratch = taken("scratch");
    if (!m.scratch) take("buffer");
    m.number = integer<uint64_t>();
    if (m.scratch) {
      take("[");
      m.count = integer<uint64_t>();
      take("]");
    }
    m.written = taken("written") || m.scratch;
    kernel_.memory.push_back(m);
    ended();
  }
  void table() {
    take("table");
    Table t;
    t.type = one_of(Type::f64);
    take("=");
    take("[");
    for (int i = 0; i < 16; ++i) {
      if (i) take(",");
      t.bits[i] = number(t.type);
    }
    take("]");
    kernel_.tables.push_back(t);
    ended();
  }

  void place(Instruction& i) {
    std::string where = word();
    for (i.memory = 0; i.memory < kernel_.memory.size(); ++i.memory)
      if (kernel_.memory[i.memory].name == where) break;
    check(i.memory < kernel_.memory.size(), "there is no memory ", quoted(where));
    take("[");
    i.args.push_back(use());
    if (taken("+")) {
      if (taken("lane")) {
        i.access = Access::contiguous;
        if (taken("*")) {
          i.access = Access::strided;
          i.args.push_back(use());
        }
      } else {
        i.access = Access::gathered;
        i.args.push_back(use());
      }
    }
    take("]");
  }

  Instruction statement() {
    Instruction i;
    if (peek() == "store" || peek() == "update") {
      i.op = word() == "store" ? Op::store : Op::update;
      if (i.op == Op::update) i.combine = one_of(Combine::any);
      place(i);
      take(",");
      i.args.push_back(use());
      if ((i.guarded = taken("if"))) i.args.push_back(use());
    } else if (taken("fault")) {
      i.op = Op::fault;
      i.bits = integer<uint64_t>();
      take("if");
      i.args.push_back(use());
    } else {
      std::string id = word();
      take(":");
      Value value;
      value.varying = taken("varying");
      value.type = one_of(Type::f64);
      take("=");
      i.op = one_of(Op::load);
      if (i.op == Op::constant) i.bits = number(value.type);
      else if (i.op == Op::param) i.bits = integer<uint64_t>();
      else if (i.op == Op::load) {
        place(i);
        if ((i.guarded = taken("if"))) {
          i.args.push_back(use());
          take("else");
          i.args.push_back(use());
        }
      } else {
        if (i.op == Op::pick) {
          take("table");
          i.bits = integer<uint64_t>();
          check(i.bits < kernel_.tables.size(), "there is no table ", i.bits);
          take(",");
        }
        if (i.op == Op::round_to) {
          i.element = one_of(Element::f64);
          take(",");
        }
        if (at_ < words_.size()) {
          do i.args.push_back(use());
          while (taken(","));
        }
      }
      i.result = define(id, value);
    }
    ended();
    return i;
  }
  void ended() { check(at_ == words_.size(), "expected the end of the line, got ", quoted(peek())); }

  Instruction loop() {
    Loop l;
    l.lanes = word() == "lanes";
    std::string index = word();
    take("=");
    l.lower = use();
    take("to");
    l.upper = use();
    if (l.lanes) {
      take("ways");
      l.ways = integer<int>();
    }
    l.conditional = taken("while");
    l.index = define(index, {Type::i64, l.lanes});
    if (taken("carry")) {
      do {
        Carry c;
        c.argument = define();
        take("=");
        c.init = use();
        if (l.lanes) c.combine = one_of(Combine::position);
        l.carried.push_back(c);
      } while (taken(","));
    }
    take("{");
    ended();
    next_line();
    std::vector<ValueId> next;
    l.body = body("}", &next);
    check(next.size() == l.carried.size(), "expected ", l.carried.size(), " values after 'next', got ", next.size());
    if (taken("gives")) {
      for (size_t k = 0; k < l.carried.size(); ++k) {
        if (k) take(",");
        l.carried[k].result = define();
        l.carried[k].next = next[k];
      }
    } else check(l.carried.empty(), "expected 'gives' after a loop that carries values");
    ended();
    Instruction i;
    i.op = Op::loop;
    i.loop = static_cast<uint32_t>(kernel_.loops.size());
    kernel_.loops.push_back(std::move(l));
    return i;
  }

  // Up to the closing word, which is taken.
  std::vector<Instruction> body(std::string_view close, std::vector<ValueId>* handed_on) {
    check(++depth_ < 64, "loops are nested deeper than 63");
    std::vector<Instruction> out;
    for (; !taken(close); next_line()) {
      if (peek() == "for" || peek() == "lanes") out.push_back(loop());
      else if (handed_on && taken("next")) {
        do handed_on->push_back(use());
        while (taken(","));
        ended();
      } else out.push_back(statement());
    }
    --depth_;
    return out;
  }

  std::vector<std::string> lines_, words_;
  size_t line_ = 0, at_ = 0;
  int depth_ = 0;
  Kernel kernel_;
  std::unordered_map<std::string, ValueId> values_;
};

}  // namespace

Kernel parse_kernel(std::string_view text) { return Parser(text).run(); }

}  // namespace tenon::compile
