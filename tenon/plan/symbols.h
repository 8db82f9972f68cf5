// The symbols of a program in an artifact's tables, and expressions over them in the tables' own form.
#pragma once
#include <functional>
#include <string>
#include <unordered_map>

#include "tenon/loop/param.h"
#include "tenon/package/tables.h"
#include "tenon/sym/range.h"

namespace tenon::plan {

class Symbols {
 public:
  /// `bind` gives a symbol the value of an expression that has become too long to stand in another.
  using Bind = std::function<package::Id(const package::Expr&)>;
  Symbols(package::Tables& tables, Bind bind) : tables_(tables), bind_(std::move(bind)) {}

  /// Makes a symbol of the program one of the tables, within its range.
  package::Id declare(SymInt symbol, sym::Range range);
  /// One that the program does not know.
  package::Id fresh(std::string_view name, tenon_type type = TENON_INTEGER);
  bool has(SymInt symbol) const { return ids_.contains(symbol.name()); }
  package::Id id(SymInt symbol) const;

  /// The value of an expression; a condition is 1 or 0. Unsupported names what the tables cannot say.
  package::Expr expr(SymInt e) const { return shortened(whole(e)); }
  package::Expr real(SymInt e) const;
  package::Expr param(const loop::Param& param) const;
  std::vector<package::Expr> list(const Sizes& sizes) const;

 private:
  package::Expr whole(SymInt e) const;
  package::Expr shortened(package::Expr e) const;

  package::Tables& tables_;
  Bind bind_;
  struct Known {
    package::Id id;
    tenon_type type;
  };
  std::unordered_map<std::string_view, Known> ids_;  // names are interned
};

/// Whether the value of an expression is a real number in the tables.
bool is_real(SymInt e);

}  // namespace tenon::plan
