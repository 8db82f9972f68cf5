#include "tenon/io/pickle_body.h"

namespace tenon {

using detail::no_value;
using detail::PickleNode;

PickleValue PickleDocument::root() const { return PickleValue(body_.get(), body_->root); }

namespace {

std::string_view kind_name(PickleKind kind) {
  switch (kind) {
    case PickleKind::none: return "None";
    case PickleKind::boolean: return "a boolean";
    case PickleKind::integer: return "an integer";
    case PickleKind::real: return "a number";
    case PickleKind::string: return "a string";
    case PickleKind::bytes: return "bytes";
    case PickleKind::tuple: return "a tuple";
    case PickleKind::list: return "a list";
    case PickleKind::dict: return "a dict";
    case PickleKind::set: return "a set";
    case PickleKind::global: return "a global";
    case PickleKind::call: return "a call";
    case PickleKind::object: return "an object";
    case PickleKind::persistent: return "a persistent value";
  }
  unreachable();
}

}  // namespace

const PickleNode& PickleValue::node() const { return body_->nodes[index_]; }
const std::string& PickleValue::subject() const { return body_->subject; }
PickleKind PickleValue::kind() const { return node().kind; }

std::string_view PickleValue::text_of(uint32_t index) const {
  const PickleNode& string = body_->nodes[index];
  return {string.string, string.a};
}

std::string PickleValue::describe() const {
  const PickleNode& n = node();
  auto global = [&](uint32_t index) {
    const PickleNode& g = body_->nodes[index];
    return quoted(text(text_of(g.a), ".", text_of(g.b)));
  };
  switch (n.kind) {
    case PickleKind::none: return "None";
    case PickleKind::boolean: return n.flag ? "True" : "False";
    case PickleKind::integer: return text("the integer ", n.integer);
    case PickleKind::real: return text("the number ", n.real);
    case PickleKind::string: return text("the string ", quoted(text_of(index_)));
    case PickleKind::bytes: return text(n.a, " bytes");
    case PickleKind::tuple:
    case PickleKind::list:
    case PickleKind::dict:
    case PickleKind::set: return text(kind_name(n.kind), " of ", size());
    case PickleKind::global: return text("the global ", global(index_));
    case PickleKind::call: return text("a call of ", global(n.a));
    case PickleKind::object: return text("an object of class ", global(n.a));
    case PickleKind::persistent: return "a persistent value";
  }
  unreachable();
}

const PickleNode& PickleValue::need(PickleKind kind) const {
  const PickleNode& n = node();
  if (n.kind != kind) [[unlikely]]
    fail("expected ", kind_name(kind), ", found ", describe());
  return n;
}
const PickleNode& PickleValue::need_callable() const {
  const PickleNode& n = node();
  if (n.kind != PickleKind::call && n.kind != PickleKind::object) fail("expected a call or object, found ", describe());
  return n;
}

bool PickleValue::as_bool() const { return need(PickleKind::boolean).flag; }
int64_t PickleValue::as_int() const { return need(PickleKind::integer).integer; }
double PickleValue::as_real() const {
  return is(PickleKind::integer) ? static_cast<double>(node().integer) : need(PickleKind::real).real;
}
std::string_view PickleValue::as_string() const {
  need(PickleKind::string);
  return text_of(index_);
}
std::string_view PickleValue::as_bytes() const {
  need(PickleKind::bytes);
  return text_of(index_);
}

bool PickleValue::has_pairs() const {
  return is(PickleKind::dict) || ((is(PickleKind::call) || is(PickleKind::object)) && node().flag);
}

size_t PickleValue::size() const {
  const PickleNode& n = node();
  bool sized = n.kind == PickleKind::tuple || n.kind == PickleKind::list || n.kind == PickleKind::dict ||
               n.kind == PickleKind::set || n.kind == PickleKind::call || n.kind == PickleKind::object;
  if (!sized) fail("expected a container, found ", describe());
  if (n.list == no_value) return 0;
  return body_->lists[n.list].size() / (has_pairs() ? 2 : 1);
}

PickleValue PickleValue::operator[](size_t i) const {
  size_t count = size();
  if (has_pairs()) fail("expected a sequence, found ", describe());
  if (i >= count) fail("expected more than ", i, " items, found ", describe());
  return PickleValue(body_, body_->lists[node().list][i]);
}

PicklePair PickleValue::pair(size_t i) const {
  size_t count = size();
  if (!has_pairs() && count != 0) fail("expected a dict, found ", describe());
  if (i >= count) fail("expected more than ", i, " pairs, found ", describe());
  const std::vector<uint32_t>& list = body_->lists[node().list];
  return {PickleValue(body_, list[2 * i]), PickleValue(body_, list[2 * i + 1])};
}

std::string_view PickleValue::module() const { return text_of(need(PickleKind::global).a); }
std::string_view PickleValue::name() const { return text_of(need(PickleKind::global).b); }
bool PickleValue::is_global(std::string_view wanted_module, std::string_view wanted_name) const {
  return is(PickleKind::global) && module() == wanted_module && name() == wanted_name;
}

PickleValue PickleValue::callee() const { return PickleValue(body_, need_callable().a); }
PickleValue PickleValue::args() const { return PickleValue(body_, need_callable().b); }
std::optional<PickleValue> PickleValue::state() const {
  const PickleNode& n = need_callable();
  return n.state == no_value ? std::nullopt : std::optional(PickleValue(body_, n.state));
}
bool PickleValue::is_call(std::string_view wanted_module, std::string_view wanted_name) const {
  return is(PickleKind::call) && callee().is_global(wanted_module, wanted_name);
}
PickleValue PickleValue::id() const { return PickleValue(body_, need(PickleKind::persistent).a); }

}  // namespace tenon
