#include "tenon/sym/expr.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "tenon/base/error.h"
#include "tenon/sym/node.h"
#include "tenon/sym/parse.h"

namespace tenon::sym {
namespace {

size_t mix(size_t seed, size_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2);
  return seed * 0xff51afd7ed558ccdull;
}

size_t hash_bytes(std::string_view s) {  // not std::hash: the same in every build
  size_t h = 0xcbf29ce484222325ull;
  for (unsigned char c : s) h = (h ^ c) * 0x100000001b3ull;
  return h;
}

uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(std::isnan(value) ? std::nan("") : value); }

struct NodeHash {
  size_t operator()(const Node* n) const { return n->hash; }
};
struct NodeEqual {
  bool operator()(const Node* a, const Node* b) const {
    return a->hash == b->hash && a->kind == b->kind && a->value == b->value && bits_of(a->real) == bits_of(b->real) &&
           a->traits == b->traits && a->name == b->name && a->args == b->args;
  }
};

struct Table {
  std::mutex mutex;
  std::unordered_set<const Node*, NodeHash, NodeEqual> nodes;
};

Table& table() {
  static Table* table = new Table;  // never destroyed: expressions may be held by other statics
  return *table;
}

void set_hash(Node& n) {
  size_t h = mix(static_cast<size_t>(n.kind), static_cast<size_t>(n.value));
  h = mix(h, bits_of(n.real));
  h = mix(h, hash_bytes(n.name));
  h = mix(h, n.traits.integer | n.traits.real << 1 | n.traits.positive << 2 | n.traits.nonnegative << 3);
  for (const Expr& a : n.args) h = mix(h, a.hash());
  n.hash = h;
}

bool all_integer(std::span<const Expr> args) {
  for (const Expr& a : args)
    if (!a.is_integer_typed()) return false;
  return true;
}
bool all_nonnegative(std::span<const Expr> args) {
  for (const Expr& a : args)
    if (!a.is_nonnegative()) return false;
  return true;
}
bool any_nonnegative(std::span<const Expr> args) {
  for (const Expr& a : args)
    if (a.is_nonnegative()) return true;
  return false;
}

void set_facts(Node& n) {
  const auto& a = n.args;
  switch (n.kind) {
    case Kind::integer: n.integer_typed = true, n.nonnegative = n.value >= 0; break;
    case Kind::rational: n.nonnegative = a[0].is_nonnegative(); break;
    case Kind::real: n.nonnegative = n.real >= 0; break;
    case Kind::symbol:
      n.integer_typed = n.traits.integer;
      n.nonnegative = n.traits.positive || n.traits.nonnegative;
      break;
    case Kind::add:
    case Kind::mul:
    case Kind::min:
    case Kind::bit_or:
    case Kind::lshift:
    case Kind::rshift:
    case Kind::floor_div: n.integer_typed = all_integer(a), n.nonnegative = all_nonnegative(a); break;
    case Kind::max: n.integer_typed = all_integer(a), n.nonnegative = any_nonnegative(a); break;
    case Kind::bit_and: n.integer_typed = true, n.nonnegative = any_nonnegative(a); break;
    case Kind::pow:
      n.integer_typed = all_integer(a) && a[1].is_nonnegative();
      n.nonnegative = a[0].is_nonnegative() || (a[0].is_integer_typed() && a[1].is_int() && a[1].as_int() % 2 == 0);
      break;
    case Kind::mod: n.integer_typed = all_integer(a), n.nonnegative = a[1].is_nonnegative(); break;
    case Kind::true_div:
    case Kind::float_true_div:
    case Kind::float_pow:
    case Kind::to_float:
    case Kind::trunc_float:
    case Kind::round_decimal: n.nonnegative = all_nonnegative(a); break;
    case Kind::trunc:
    case Kind::ceil:
    case Kind::floor:
    case Kind::round: n.integer_typed = true, n.nonnegative = a[0].is_nonnegative(); break;
    case Kind::boolean:
    case Kind::eq:
    case Kind::ne:
    case Kind::lt:
    case Kind::le:
    case Kind::gt:
    case Kind::ge:
    case Kind::logical_and:
    case Kind::logical_or:
    case Kind::logical_not: n.boolean_typed = true; break;
    case Kind::piecewise: {
      n.integer_typed = n.nonnegative = n.boolean_typed = true;
      for (size_t i = 0; i < a.size(); i += 2) {
        n.integer_typed &= a[i].is_integer_typed();
        n.nonnegative &= a[i].is_nonnegative();
        n.boolean_typed &= a[i].is_boolean_typed();
      }
      break;
    }
    case Kind::unknown_call: n.integer_typed = !is_known_call(n.name); break;  // those known are of doubles
  }
}

Expr intern_node(Node n) {
  uint64_t weight = 1;
  for (const Expr& a : n.args) {
    weight += a.is_small() ? 1 : a.node()->weight;
    n.depth = std::max(n.depth, a.is_small() ? 2 : a.node()->depth + 1);
  }
  require(weight <= max_weight, "a symbolic expression grew to ", weight, " nodes, more than the ", max_weight,
          " allowed");
  require(n.depth <= max_depth, "a symbolic expression is nested deeper than the ", max_depth, " levels allowed");
  n.weight = static_cast<uint32_t>(weight);
  set_hash(n);
  set_facts(n);
  Table& t = table();
  std::lock_guard lock(t.mutex);
  auto found = t.nodes.find(&n);
  if (found == t.nodes.end()) found = t.nodes.insert(new Node(std::move(n))).first;
  (*found)->holders.fetch_add(1, std::memory_order_relaxed);
  return Expr(*found);
}

}  // namespace

Expr intern(Kind kind, std::span<const Expr> args, std::string_view name) {
  Node n;
  n.kind = kind;
  n.name = name;
  n.args.assign(args.begin(), args.end());
  return intern_node(std::move(n));
}

uintptr_t Expr::intern_large(int64_t value) {
  Node n;
  n.value = value;
  Expr made = intern_node(std::move(n));
  return std::exchange(made.word_, tag(0));
}

// A node that one Expr holds can only be found by others in the table: its last holder leaves under the table's lock.
void Expr::release() const {
  const Node* n = node();
  uint32_t holders = n->holders.load(std::memory_order_relaxed);
  while (holders > 1)
    if (n->holders.compare_exchange_weak(holders, holders - 1, std::memory_order_release, std::memory_order_relaxed))
      return;
  Table& t = table();
  {
    std::lock_guard lock(t.mutex);
    if (n->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    t.nodes.erase(n);
  }
  delete n;  // and with it, it holds its arguments no more
}

size_t interned_nodes() {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  return t.nodes.size();
}

uintptr_t Expr::reject_unsigned(uint64_t value) { fail("integer ", value, " does not fit into 64 bits with a sign"); }

Expr Expr::real(double value) {
  Node n;
  n.kind = Kind::real;
  n.real = value;
  return intern_node(std::move(n));
}

Expr Expr::boolean(bool value) {
  static const auto make = [](bool b) {
    Node n;
    n.kind = Kind::boolean;
    n.value = b;
    return intern_node(std::move(n));
  };
  static const Expr* both = new Expr[2]{make(false), make(true)};  // for ever: nearly every condition ends as one
  return both[value];
}

Expr Expr::rational(int64_t numerator, int64_t denominator) {
  return expr_of(Number::fraction(numerator, denominator));
}

Expr Expr::symbol(std::string_view name, SymbolTraits traits) {
  require(!name.empty(), "a symbol needs a name");
  Node n;
  n.kind = Kind::symbol;
  n.name = name;
  n.traits = traits;
  return intern_node(std::move(n));
}

Expr Expr::unknown_call(std::string_view name, std::span<const Expr> args) {
  if (is_known_call(name)) {
    std::vector<Number> numbers;
    for (const Expr& a : args)
      if (auto n = number_of(a)) numbers.push_back(*n);
    if (numbers.size() == args.size()) return expr_of(apply(Kind::unknown_call, name, numbers));
  }
  return intern(Kind::unknown_call, args, name);
}

bool Expr::is_large_int() const { return node()->kind == Kind::integer; }
int64_t Expr::large_int() const {
  expect(node()->kind == Kind::integer, "as_int() of something that is not an integer");
  return node()->value;
}

Kind Expr::kind() const { return is_small() ? Kind::integer : node()->kind; }
bool Expr::is_number() const { return kind() <= Kind::real; }
bool Expr::is_integer_typed() const { return is_small() || node()->integer_typed; }
bool Expr::is_boolean_typed() const { return !is_small() && node()->boolean_typed; }
bool Expr::is_nonnegative() const { return is_small() ? small() >= 0 : node()->nonnegative; }
std::span<const Expr> Expr::args() const& { return is_small() ? std::span<const Expr>() : node()->args; }
std::string_view Expr::name() const& { return is_small() ? std::string_view() : node()->name; }
SymbolTraits Expr::traits() const { return is_small() ? SymbolTraits() : node()->traits; }

double Expr::real_value() const {
  auto n = number_of(*this);
  expect(n.has_value(), "real_value() of something that is not a number");
  return n->as_double();
}

bool Expr::boolean_value() const {
  expect(kind() == Kind::boolean, "boolean_value() of something that is not a boolean constant");
  return node()->value != 0;
}

uint64_t weight(const Expr& e) { return e.is_small() ? 1 : e.node()->weight; }

size_t Expr::hash() const { return is_small() ? mix(0x51, static_cast<size_t>(small())) : node()->hash; }

std::strong_ordering compare(const Expr& a, const Expr& b) {
  if (a == b) return std::strong_ordering::equal;
  auto na = number_of(a), nb = number_of(b);
  if (na && nb) {
    int c = compare_numbers(*na, *nb);
    if (c == -1) return std::strong_ordering::less;
    if (c == 1) return std::strong_ordering::greater;
    if (auto by_kind = a.kind() <=> b.kind(); by_kind != 0) return by_kind;
    return bits_of(na->as_double()) <=> bits_of(nb->as_double());
  }
  auto rank = [](Kind k) { return k < Kind::symbol ? 0 : k == Kind::symbol ? 1 : k <= Kind::pow ? 2 : 3; };
  if (auto by_rank = rank(a.kind()) <=> rank(b.kind()); by_rank != 0) return by_rank;
  if (auto by_name = function_name(a) <=> function_name(b); by_name != 0) return by_name;
  if (auto by_kind = a.kind() <=> b.kind(); by_kind != 0) return by_kind;
  auto xs = a.args(), ys = b.args();
  for (size_t i = 0; i < std::min(xs.size(), ys.size()); i++)
    if (auto c = compare(xs[i], ys[i]); c != 0) return c;
  if (auto by_size = xs.size() <=> ys.size(); by_size != 0) return by_size;
  auto s = a.traits(), t = b.traits();  // two symbols of one name
  auto key = [](SymbolTraits x) { return x.integer | x.real << 1 | x.positive << 2 | x.nonnegative << 3; };
  return key(s) <=> key(t);
}

}  // namespace tenon::sym
