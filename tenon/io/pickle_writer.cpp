#include <bit>
#include <utility>

#include "tenon/io/pickle.h"

namespace tenon {

namespace {
void put(std::string& out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i));
}

// A class by its names, each of which ends with the line.
std::string class_line(std::string_view module, std::string_view name) {
  auto plain = [](std::string_view word) { return !word.empty() && word.find_first_of("\n\r") == word.npos; };
  require(plain(module) && plain(name), "cannot pickle an object of the class ", quoted(text(module, ".", name)));
  return text('c', module, '\n', name, '\n');
}
}  // namespace

PickleWriter::PickleWriter() : out_("\x80\x02") {}

void PickleWriter::value() {
  expect(!done_ || !open_.empty(), "a second value at the top of a pickle");
  if (open_.empty()) done_ = true;
  else ++open_.back().count;
}

void PickleWriter::none() {
  value();
  out_ += 'N';
}
void PickleWriter::boolean(bool v) {
  value();
  out_ += v ? '\x88' : '\x89';
}
void PickleWriter::integer(int64_t v) {
  value();
  auto bits = static_cast<uint64_t>(v);
  if (v >= 0 && v < 256) {
    out_ += 'K';
    put(out_, bits, 1);
  } else if (v >= 0 && v < 65536) {
    out_ += 'M';
    put(out_, bits, 2);
  } else if (v >= INT32_MIN && v <= INT32_MAX) {
    out_ += 'J';
    put(out_, bits, 4);
  } else {
    out_ += "\x8a\x08";
    put(out_, bits, 8);
  }
}
void PickleWriter::real(double v) {
  value();
  out_ += 'G';
  put(out_, __builtin_bswap64(std::bit_cast<uint64_t>(v)), 8);
}
void PickleWriter::string(std::string_view v) {
  value();
  require(v.size() < UINT32_MAX, "cannot pickle a string of ", v.size(), " bytes");
  out_ += 'X';
  put(out_, v.size(), 4);
  out_ += v;
}

// A kind is told by the opcode that ends it.
void PickleWriter::begin(char kind) {
  value();
  open_.push_back({kind, 0});
}
void PickleWriter::end(char kind, char opcode) {
  expect(!open_.empty() && open_.back().kind == kind, "a pickled container is ended as another");
  expect(kind != 'u' || open_.back().count % 2 == 0, "a pickled dict ends with a key");
  open_.pop_back();
  out_ += opcode;
}
void PickleWriter::begin_tuple() {
  begin('t');
  out_ += '(';
}
void PickleWriter::end_tuple() { end('t', 't'); }
void PickleWriter::begin_list() {
  begin('e');
  out_ += "](";
}
void PickleWriter::end_list() { end('e', 'e'); }
void PickleWriter::begin_dict() {
  begin('u');
  out_ += "}(";
}
void PickleWriter::begin_ordered_dict() {
  begin('u');
  out_ += "ccollections\nOrderedDict\n)R(";
}
void PickleWriter::begin_default_dict(std::string_view module, std::string_view name) {
  begin('u');
  out_ += "ccollections\ndefaultdict\n";
  out_ += name.empty() ? "N" : class_line(module, name);
  out_ += "\x85R(";
}
void PickleWriter::end_dict() { end('u', 'u'); }

void PickleWriter::begin_deque(std::optional<int64_t> limit) {
  begin('e');
  out_ += "ccollections\ndeque\n)";
  if (limit) {
    open_.push_back({'n', 0});
    integer(*limit);
    open_.pop_back();
    out_ += '\x86';
  }
  out_ += "R(";
}
void PickleWriter::begin_object(std::string_view module, std::string_view name) {
  begin('o');
  out_ += class_line(module, name) + '(';
}
void PickleWriter::end_object() { end('o', 't'), out_ += '\x81'; }
void PickleWriter::begin_object_with_fields(std::string_view module, std::string_view name) {
  begin('b');
  out_ += class_line(module, name) + ")\x81}(";
}
void PickleWriter::end_object_with_fields() { end('b', 'u'), out_ += 'b'; }

void PickleWriter::begin_object_with_state(std::string_view module, std::string_view name) {
  begin('s');
  out_ += class_line(module, name) + ")\x81";
}
void PickleWriter::end_object_with_state() {
  expect(!open_.empty() && open_.back().count == 1, "a pickled object has one state");
  end('s', 'b');
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  value();
  out_ += text('c', module, '\n', name, '\n');
}
void PickleWriter::integers(std::span<const int64_t> values) {
  begin_tuple();
  for (int64_t v : values) integer(v);
  end_tuple();
}

void PickleWriter::tensor(const PickledTensor& tensor) {
  bool typed = !tensor.storage.empty();
  expect(typed != !tensor.dtype.empty(), "a pickled tensor has either a storage class or a dtype");
  value();
  out_ += typed ? "ctorch._utils\n_rebuild_tensor_v2\n" : "ctorch._utils\n_rebuild_tensor_v3\n";
  open_.push_back({'t', 0});  // the arguments
  out_ += '(';
  begin_tuple();
  string("storage");
  if (typed) global("torch", tensor.storage);
  else global("torch.storage", "UntypedStorage");
  string(tensor.key);
  string(tensor.location);
  integer(tensor.count);
  end_tuple();
  out_ += 'Q';
  integer(tensor.offset);
  integers(tensor.sizes);
  integers(tensor.strides);
  boolean(tensor.requires_grad);
  global("collections", "OrderedDict");
  out_ += ")R";  // backward hooks: there are none
  if (!typed) global("torch", tensor.dtype);
  end_tuple();
  out_ += 'R';
}

std::string PickleWriter::take() {
  expect(open_.empty() && done_, "an unfinished pickle");
  return std::exchange(out_, {}) + '.';
}

}  // namespace tenon
