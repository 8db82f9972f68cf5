// Every operator, once. A family's file registers its blocks; the registry makes from each the Op that nodes point to,
// and derives in-place and out forms from their functional twin when they are asked for.
#pragma once
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tenon/rules/op_def.h"

namespace tenon {

class Registry : public OpTable {
 public:
  void add(Handle& handle, OpDef def);
  void add(OpDef def);  // an op that no formula calls
  /// More names for an op with the same arguments: multiply.Tensor for mul.Tensor.
  void alias(const Handle& handle, std::initializer_list<const char*> names);

  /// The same rules under other schemas with the same names of arguments: add.Scalar, which takes a number where
  /// add.Tensor takes a tensor.
  void overload(const Handle& of, std::initializer_list<const char*> schemas);
  void overload(const Handle& of, Handle& handle, const char* schema);

  /// An in-place op that is not spelled like its functional twin: bernoulli_.float writes what bernoulli.p computes.
  void in_place(const Handle& functional, const char* schema);

  const Op* find(std::string_view name) const override;
  /// The op that writes what this one computes to its first argument: copy_ for copy.
  const Op& in_place_form(const Op& functional) const;
  const Op* computing(sym::Expr e) const override;
  const Op* measuring(Measure what) const override;
  /// The overload to call where numbers stand in slots for tensors: eq.Scalar for eq.Tensor(x, 1). The op itself where
  /// it takes them, or where there is none.
  const Op& for_numbers(const Op& op, std::span<const CallArg> args) const;
  std::vector<const Op*> all() const;  // registered ops, sorted by name; derived forms are not listed

 private:
  const Op* insert(OpDef def) const;
  const Op* derive_in_place(const std::string& name) const;
  const Op* derive_out(const std::string& name) const;

  // Derived ops are made on demand, also by concurrent readers.
  mutable std::mutex mutex_;
  mutable std::deque<OpDef> defs_;
  mutable std::deque<Op> ops_;
  mutable std::vector<const Op*> of_numbers_;  // symbolic ops, and those that measure tensors
  mutable std::unordered_map<std::string, const Op*> by_name_;
  mutable std::unordered_map<std::string, std::vector<const Op*>> by_base_;  // aten::add -> its overloads
};

/// The one registry, with every family of ops/ in it.
const Registry& registry();

}  // namespace tenon
