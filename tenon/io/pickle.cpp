#include "tenon/io/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "tenon/io/pickle_body.h"

namespace tenon {

using detail::no_value;
using detail::PickleBody;
using detail::PickleNode;

namespace {

enum Opcode : uint8_t {
  op_mark = '(',
  op_stop = '.',
  op_none = 'N',
  op_binint = 'J',
  op_binint1 = 'K',
  op_binint2 = 'M',
  op_binfloat = 'G',
  op_binunicode = 'X',
  op_empty_tuple = ')',
  op_tuple = 't',
  op_empty_list = ']',
  op_append = 'a',
  op_appends = 'e',
  op_empty_dict = '}',
  op_setitem = 's',
  op_setitems = 'u',
  op_global = 'c',
  op_reduce = 'R',
  op_build = 'b',
  op_binpersid = 'Q',
  op_binput = 'q',
  op_long_binput = 'r',
  op_binget = 'h',
  op_long_binget = 'j',
  op_binbytes = 'B',
  op_short_binbytes = 'C',
  op_proto = 0x80,
  op_newobj = 0x81,
  op_tuple1 = 0x85,
  op_tuple2 = 0x86,
  op_tuple3 = 0x87,
  op_newtrue = 0x88,
  op_newfalse = 0x89,
  op_long1 = 0x8a,
  op_short_binunicode = 0x8c,
  op_binunicode8 = 0x8d,
  op_empty_set = 0x8f,
  op_additems = 0x90,
  op_frozenset = 0x91,
  op_stack_global = 0x93,
  op_memoize = 0x94,
  op_frame = 0x95,
};

// Opcodes of the format that we do not read, by name.
std::string_view unread_name(uint8_t opcode) {
  switch (opcode) {
    case 'I': return "INT";
    case 'L': return "LONG";
    case 'F': return "FLOAT";
    case 'S': return "STRING";
    case 'T': return "BINSTRING";
    case 'U': return "SHORT_BINSTRING";
    case 'V': return "UNICODE";
    case 'P': return "PERSID";
    case 'd': return "DICT";
    case 'l': return "LIST";
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 'p': return "PUT";
    case 'g': return "GET";
    case '0': return "POP";
    case '1': return "POP_MARK";
    case '2': return "DUP";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    case 0x8b: return "LONG4";
    case 0x8e: return "BINBYTES8";
    case 0x92: return "NEWOBJ_EX";
    case 0x96: return "BYTEARRAY8";
    case 0x97: return "NEXT_BUFFER";
    case 0x98: return "READONLY_BUFFER";
    default: return "unknown";
  }
}

class Reader {
 public:
  Reader(PickleBody& body, const PickleLimits& limits) : body_(body), limits_(limits), rest_(body.bytes) {
    // The commonest values are made once.
    none_ = add({.kind = PickleKind::none});
    false_ = add({.kind = PickleKind::boolean});
    true_ = add({.kind = PickleKind::boolean, .flag = true});
  }

  void read() {
    need(take(1) == "\x80", "it does not start with a protocol number of 2 or more");
    uint8_t protocol = byte();
    need(protocol >= 2 && protocol <= 5, "protocol ", protocol, " is not read, only 2 to 5");
    while (step(byte())) count_step();
    need(marks_.empty() && stack_.size() == 1, "it ends with ", stack_.size(), " values, not one");
    need(rest_.empty(), rest_.size(), " bytes follow its end");
    body_.root = stack_.back();
    check_shape();
  }

 private:
  // Marks, copies and values that are made once take no node but a place on the stack, in the memo or in a list.
  void count_step() {
    constexpr size_t taken_at_once = 1024;
    constexpr uint64_t step_bytes = 2 * sizeof(PickleNode);
    need(++steps_ <= limits_.values, "it has more than ", limits_.values, " instructions");
    if (!limits_.budget || steps_ % taken_at_once != 1) return;
    limits_.budget->take_values(taken_at_once, "a pickle");
    limits_.budget->take_bytes(taken_at_once * step_bytes, "a pickle");
  }

  template <class... Parts>
  void need(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      fail(body_.subject, ": not a pickle that can be read: ", parts..., " (at byte ",
           body_.bytes.size() - rest_.size(), ")");
  }

  std::string_view take(uint64_t size) {
    need(size <= rest_.size(), "it ends too early");
    std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view line() {
    size_t end = rest_.find('\n');
    need(end != std::string_view::npos && end < 4096, "a name does not end");
    std::string_view part = take(end);
    take(1);
    return part;
  }

  uint32_t add(PickleNode node) {
    need(body_.nodes.size() < limits_.values, "it has more than ", limits_.values, " values");
    body_.nodes.push_back(node);
    return static_cast<uint32_t>(body_.nodes.size() - 1);
  }
  uint32_t add_integer(int64_t value) {
    PickleNode node{.kind = PickleKind::integer};
    node.integer = value;
    return add(node);
  }
  uint32_t add_string(PickleKind kind, std::string_view value) {
    PickleNode node{.kind = kind, .a = static_cast<uint32_t>(value.size())};
    node.string = value.data();
    return add(node);
  }
  uint32_t add_list(PickleKind kind, std::vector<uint32_t> items) {
    body_.lists.push_back(std::move(items));
    return add({.kind = kind, .list = static_cast<uint32_t>(body_.lists.size() - 1)});
  }
  uint32_t add_call(PickleKind kind) {
    uint32_t args = pop(), callee = pop();
    need(at(callee).kind == PickleKind::global, "something other than a global is called");
    need(at(args).kind == PickleKind::tuple, "the arguments of a call are not a tuple");
    PickleNode node{.kind = kind, .a = callee, .b = args};
    node.state = no_value;
    return add(node);
  }

  PickleNode& at(uint32_t index) { return body_.nodes[index]; }
  void push(uint32_t index) { stack_.push_back(index); }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  uint32_t top() const {
    need(stack_.size() > floor(), "an opcode needs a value and there is none");
    return stack_.back();
  }
  uint32_t pop() {
    uint32_t index = top();
    stack_.pop_back();
    return index;
  }
  std::vector<uint32_t> pop_some(size_t count) {
    need(stack_.size() - floor() >= count, "an opcode needs ", count, " values and there are fewer");
    std::vector<uint32_t> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  std::vector<uint32_t> pop_marked() {
    need(!marks_.empty(), "an opcode needs a mark and there is none");
    std::vector<uint32_t> items = pop_some(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }

  // Adds to the container on top of the stack.
  void extend(PickleKind plain, bool pairs, const std::vector<uint32_t>& items) {
    need(!pairs || items.size() % 2 == 0, "a key has no value");
    PickleNode& target = at(top());
    bool called = (target.kind == PickleKind::call || target.kind == PickleKind::object) && plain != PickleKind::set;
    need(called || target.kind == plain, "items are added to something that takes none");
    if (items.empty()) return;
    if (target.list == no_value) {
      target.list = static_cast<uint32_t>(body_.lists.size());
      target.flag = pairs;
      body_.lists.emplace_back();
    }
    need(!called || target.flag == pairs, "both items and pairs are added to one object");
    std::vector<uint32_t>& list = body_.lists[target.list];
    list.insert(list.end(), items.begin(), items.end());
  }

  void put(uint64_t place) {
    need(place < limits_.values, "the memo number ", place, " is above the limit of ", limits_.values);
    if (place >= memo_.size()) {
      if (limits_.budget) limits_.budget->take_bytes((place + 1 - memo_.size()) * sizeof(uint32_t), "a pickle");
      memo_.resize(place + 1, no_value);
    }
    if (memo_[place] == no_value) ++memo_count_;
    memo_[place] = top();
  }
  void get(uint64_t place) {
    need(place < memo_.size() && memo_[place] != no_value, "memo number ", place, " was never set");
    push(memo_[place]);
  }

  int64_t long_integer() {
    std::string_view digits = take(byte());
    need(digits.size() <= 8, "an integer of ", digits.size(), " bytes does not fit 64 bits");
    uint64_t value = !digits.empty() && (digits.back() & 0x80) ? ~uint64_t{0} : 0;
    std::memcpy(&value, digits.data(), digits.size());
    return static_cast<int64_t>(value);
  }

  /// Runs one opcode; false at the end.
  bool step(uint8_t opcode) {
    switch (opcode) {
      case op_stop: return false;
      case op_frame: need(number<uint64_t>() <= rest_.size(), "a frame reaches past the end"); break;
      case op_mark: marks_.push_back(stack_.size()); break;
      case op_none: push(none_); break;
      case op_newtrue: push(true_); break;
      case op_newfalse: push(false_); break;
      case op_binint: push(add_integer(number<int32_t>())); break;
      case op_binint1: push(add_integer(byte())); break;
      case op_binint2: push(add_integer(number<uint16_t>())); break;
      case op_long1: push(add_integer(long_integer())); break;
      case op_binfloat: {
        PickleNode node{.kind = PickleKind::real};
        node.real = std::bit_cast<double>(__builtin_bswap64(number<uint64_t>()));
        push(add(node));
        break;
      }
      case op_short_binunicode: push(add_string(PickleKind::string, take(byte()))); break;
      case op_binunicode: push(add_string(PickleKind::string, take(number<uint32_t>()))); break;
      case op_binunicode8: push(add_string(PickleKind::string, take(number<uint64_t>()))); break;
      case op_short_binbytes: push(add_string(PickleKind::bytes, take(byte()))); break;
      case op_binbytes: push(add_string(PickleKind::bytes, take(number<uint32_t>()))); break;
      case op_empty_tuple: push(add_list(PickleKind::tuple, {})); break;
      case op_tuple1: push(add_list(PickleKind::tuple, pop_some(1))); break;
      case op_tuple2: push(add_list(PickleKind::tuple, pop_some(2))); break;
      case op_tuple3: push(add_list(PickleKind::tuple, pop_some(3))); break;
      case op_tuple: push(add_list(PickleKind::tuple, pop_marked())); break;
      case op_empty_list: push(add_list(PickleKind::list, {})); break;
      case op_empty_dict: push(add_list(PickleKind::dict, {})); break;
      case op_empty_set: push(add_list(PickleKind::set, {})); break;
      case op_frozenset: push(add_list(PickleKind::set, pop_marked())); break;
      case op_append: extend(PickleKind::list, false, pop_some(1)); break;
      case op_appends: extend(PickleKind::list, false, pop_marked()); break;
      case op_setitem: extend(PickleKind::dict, true, pop_some(2)); break;
      case op_setitems: extend(PickleKind::dict, true, pop_marked()); break;
      case op_additems: extend(PickleKind::set, false, pop_marked()); break;
      case op_global: {
        uint32_t module = add_string(PickleKind::string, line());
        uint32_t name = add_string(PickleKind::string, line());
        push(add({.kind = PickleKind::global, .a = module, .b = name}));
        break;
      }
      case op_stack_global: {
        uint32_t name = pop(), module = pop();
        need(at(name).kind == PickleKind::string && at(module).kind == PickleKind::string,
             "a global is not named by strings");
        push(add({.kind = PickleKind::global, .a = module, .b = name}));
        break;
      }
      case op_reduce: push(add_call(PickleKind::call)); break;
      case op_newobj: push(add_call(PickleKind::object)); break;
      case op_build: {
        uint32_t state = pop();
        PickleNode& target = at(top());
        need((target.kind == PickleKind::call || target.kind == PickleKind::object) && target.state == no_value,
             "a state is set on something that takes none, or a second time");
        target.state = state;
        break;
      }
      case op_binpersid: push(add({.kind = PickleKind::persistent, .a = pop()})); break;
      case op_binput: put(byte()); break;
      case op_long_binput: put(number<uint32_t>()); break;
      case op_memoize: put(memo_count_); break;
      case op_binget: get(byte()); break;
      case op_long_binget: get(number<uint32_t>()); break;
      default: need(false, "the opcode ", unread_name(opcode), " (", opcode, ") is not one that torch.save writes");
    }
    return true;
  }

  /// The values that the value refers to, one after the other; no_value behind the last.
  uint32_t child(const PickleNode& node, size_t i) const {
    switch (node.kind) {
      case PickleKind::none:
      case PickleKind::boolean:
      case PickleKind::integer:
      case PickleKind::real:
      case PickleKind::string:
      case PickleKind::bytes:
      case PickleKind::global: return no_value;
      case PickleKind::persistent: return i == 0 ? node.a : no_value;
      case PickleKind::call:
      case PickleKind::object:
        if (i == 0) return node.a;
        if (i == 1) return node.b;
        if (node.state != no_value && i == 2) return node.state;
        i -= node.state != no_value ? 3 : 2;
        break;
      case PickleKind::tuple:
      case PickleKind::list:
      case PickleKind::dict:
      case PickleKind::set: break;
    }
    if (node.list == no_value || i >= body_.lists[node.list].size()) return no_value;
    return body_.lists[node.list][i];
  }

  // A value may be shared, so a small pickle can spell an endless or enormous tree; such ones are refused here, once.
  void check_shape() const {
    struct Visit {
      uint32_t index;
      uint32_t depth = 1;
      size_t next = 0;
      uint64_t size = 1;
    };
    struct Result {
      uint64_t size = 0;  // 0: not met; 1 with depth 0: being visited
      uint32_t depth = 0;
    };
    std::vector<Result> results(body_.nodes.size());
    std::vector<Visit> path{{body_.root}};
    results[body_.root].size = 1;
    while (!path.empty()) {
      Visit& visit = path.back();
      uint32_t index = child(body_.nodes[visit.index], visit.next);
      if (index == no_value) {
        Visit done = visit;
        results[done.index] = {done.size, done.depth};
        path.pop_back();
        continue;
      }
      const Result& result = results[index];
      if (result.size == 0) {
        results[index].size = 1;
        path.push_back({index});
        need(path.size() <= limits_.depth, "it is nested deeper than ", limits_.depth, " levels");
        continue;
      }
      need(result.depth != 0, "it contains itself");
      visit.size += result.size;
      visit.depth = std::max(visit.depth, result.depth + 1);
      ++visit.next;
      need(visit.depth <= limits_.depth, "it is nested deeper than ", limits_.depth, " levels");
      need(visit.size <= limits_.expanded, "shared values make it larger than ", limits_.expanded, " values");
    }
  }

  PickleBody& body_;
  const PickleLimits& limits_;
  std::string_view rest_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  size_t steps_ = 0;
  std::vector<uint32_t> memo_;
  size_t memo_count_ = 0;
  uint32_t none_ = 0, false_ = 0, true_ = 0;
};

}  // namespace

PickleDocument::PickleDocument(std::span<const std::byte> bytes, std::string subject, const PickleLimits& limits)
    : body_(std::make_unique<PickleBody>()) {
  size_t most = std::min(limits.bytes, size_t{UINT32_MAX} - 1);
  require(bytes.size() <= most, subject, ": a pickle of ", bytes.size(), " bytes is above the limit of ", most);
  body_->subject = std::move(subject);
  if (limits.budget) limits.budget->take_bytes(bytes.size(), "a pickle");
  body_->bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Reader(*body_, limits).read();
}

PickleDocument::~PickleDocument() = default;
PickleDocument::PickleDocument(PickleDocument&&) noexcept = default;
PickleDocument& PickleDocument::operator=(PickleDocument&&) noexcept = default;

}  // namespace tenon
