// What a graph knows of an operator. The rules for it are in its one block, an OpDef of ops/, which `def` points to.
#pragma once
#include <string>
#include <string_view>

#include "tenon/graph/schema.h"

namespace tenon {

struct OpDef;  // ops/op_def.h

enum class Kind : uint8_t {
  pointwise,   // one scalar formula over broadcast operands
  reduction,   // stages with reductions; like general, but its cost is its input's size
  view,        // an index map and nothing else
  composite,   // its meaning in other ops
  general,     // stages, an anchor or a library call
  symbolic,    // computes on sizes and numbers: a sym::Expr
  structural,  // regions and control flow, markers, assertions
};

/// How a structural op runs its subgraphs. Regions are inlined by normalise.
enum class Control : uint8_t { none, grad_region, autocast_region, choose, repeat, map, scan };

struct Traits {
  bool unknown = false;         // an operator we do not have; made from the file's argument names
  bool random = false;          // draws numbers
  bool asserts = false;         // checks something, returns nothing, must stay
  bool may_alias = false;       // the result may be (a view of) an argument although the schema does not say so
  bool stops_gradient = false;  // detach
  bool takes_numbers = false;   // PyTorch takes a Python number where the schema says Tensor: x + 1
  bool of_sizes = false;        // gives a tensor's size, stride or offset as a number: an expression, once normalised
  Control control = Control::none;
};

struct Op {
  Schema schema;
  Kind kind = Kind::general;
  Traits traits;
  const OpDef* def = nullptr;      // null for an unknown op
  const Op* functional = nullptr;  // for an in-place or out form: the op that computes what it writes
  std::string target;              // as files spell it: torch.ops.aten.add.Tensor, _operator.add

  const std::string& name() const { return schema.name; }  // aten::add.Tensor
  bool writes() const { return schema.writes(); }
};

/// Where a reader of files or text finds operators. ops/registry implements it.
class OpTable {
 public:
  virtual ~OpTable() = default;
  /// By the file's spelling (torch.ops.aten.add.Tensor) or the schema's (aten::add.Tensor). Null where there is none.
  virtual const Op* find(std::string_view name) const = 0;
  /// An op with the trait unknown, for a target we do not have.
  virtual const Op* unknown(std::string_view target, const std::vector<std::string>& arg_names,
                            size_t results) const = 0;
};

}  // namespace tenon
