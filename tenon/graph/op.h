// What a graph knows of an operator. The rules for it are in its one block, an OpDef of ops/, which `def` points to.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "tenon/graph/schema.h"

namespace tenon {

struct OpDef;  // ops/op_def.h

enum class OpKind : uint8_t {
  pointwise,   // one scalar formula over broadcast operands
  reduction,   // stages with reductions; like general, but its cost is its input's size
  view,        // an index map and nothing else
  composite,   // its meaning in other ops
  general,     // stages, an anchor or a library call
  symbolic,    // computes on sizes and numbers: a sym::Expr
  structural,  // regions and control flow, markers, assertions
};

/// How a structural op runs its subgraphs. Regions are inlined by normalize.
enum class Control : uint8_t { none, grad_region, autocast_region, choose, repeat, map, scan };

/// What an op tells of a tensor as a number: an expression, once normalized.
enum class Measure : uint8_t { none, size, stride, count, offset };

struct Traits {
  bool unknown = false;         // an operator we do not have; made from the file's argument names
  bool random = false;          // draws numbers
  bool asserts = false;         // checks something, returns nothing
  bool effects = false;         // does more than compute: each of its calls is made, in its turn
  bool may_alias = false;       // the result may be (a view of) an argument although the schema does not say so
  bool stops_gradient = false;  // detach
  bool misdescribed = false;    // files of PyTorch say other sizes of its result than its kernel gives
  bool takes_numbers = false;   // PyTorch takes a Python number where the schema says Tensor: x + 1
  Measure measures = Measure::none;
  Control control = Control::none;
};

/// How a symbolic op is written: the kinds of expressions it computes from their operands, and Python's sign for it.
struct Notation {
  class Kinds {
   public:
    constexpr Kinds(std::initializer_list<sym::Kind> kinds) {
      for (sym::Kind k : kinds) bits_ |= 1ull << static_cast<unsigned>(k);
    }
    constexpr bool has(sym::Kind k) const { return bits_ >> static_cast<unsigned>(k) & 1; }

   private:
    uint64_t bits_ = 0;
  };
  Kinds kinds = {};
  std::optional<double> last = {};  // the last operand, where the op does not take it: 0.5 of a square root
  std::string_view call = {};       // the function PyTorch's expressions have for it
  std::string_view sign = {};       // " + " between operands, "-" before one; none: written as a call

  bool computes(sym::Expr e) const {
    if (e.is(sym::Kind::unknown_call)) return !call.empty() && e.name() == call;
    return kinds.has(e.kind()) && (!last || e.args().back() == sym::Expr::real(*last));
  }
};

struct Op {
  Schema schema;
  OpKind kind = OpKind::general;
  Traits traits;
  Notation notation;
  const OpDef* def = nullptr;      // null for an unknown op
  const Op* functional = nullptr;  // for an in-place or out form: the op that computes what it writes
  std::string target;              // as files spell it: torch.ops.aten.add.Tensor, _operator.add

  const std::string& name() const { return schema.name; }  // aten::add.Tensor
  bool writes() const { return schema.writes(); }
  /// Whether its calls stay although nobody reads their results.
  bool stays() const { return traits.asserts || traits.effects || traits.unknown || writes(); }
};

/// Where a reader of files or text finds operators. ops/registry implements it.
class OpTable {
 public:
  virtual ~OpTable() = default;
  /// By the file's spelling (torch.ops.aten.add.Tensor) or the schema's (aten::add.Tensor). Null where there is none.
  virtual const Op* find(std::string_view name) const = 0;
  /// The op on numbers that computes such an expression. Null where there is none.
  virtual const Op* computing(sym::Expr e) const = 0;
  /// The op that tells this of a tensor. Null where there is none.
  virtual const Op* measuring(Measure what) const = 0;
};

}  // namespace tenon
