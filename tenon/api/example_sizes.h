// The sizes of a program's inputs while export_program makes it: which are open, what the examples decide, and what
// follows for the ranges and conditions of the program.
#pragma once
#include <tenon/export.h>

#include <string>
#include <vector>

#include "tenon/export/exported_program.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon::v0::detail {

/// Forward is traced until a trace learns of no symbol that it is fixed or follows from others: begin, trace, again?
class ExampleSizes : public tenon::Examples {
 public:
  struct Input {
    std::string name;
    tenon::TensorMeta meta;
  };
  /// An Error where shapes speak of what the inputs do not have, or ask for sizes that the inputs do not meet.
  ExampleSizes(std::vector<Input> inputs, const DynamicShapes& shapes);

  void begin(tenon::sym::ShapeEnv& shapes);             // of the program that is traced next; outlives the trace
  tenon::TensorMeta meta(std::size_t input) const;      // over symbols
  void at(std::string what) { at_ = std::move(what); }  // what is called now, for reasons
  bool again() const { return learnt_; }
  /// An Error with suggested fixes where the trace needs more than the named dimensions promise; else the program gets
  /// its ranges, guards and hints.
  void finish(tenon::ExportedProgram& program);

  std::optional<bool> decide(tenon::sym::Expr condition) override;
  std::optional<int64_t> value(tenon::sym::Expr size) const override;

  /// Sizes at which a program should work, too: the ends of named dimensions, and others near the examples.
  struct Probe {
    std::string what;  // n = 2
    tenon::sym::Bindings sizes;
  };
  std::vector<Probe> probes() const;
  std::string where(tenon::sym::Expr symbol) const;  // n (x, dimension 0)

 private:
  struct Symbol {
    tenon::sym::Expr symbol;
    std::string label;   // n, or the place where it stands
    std::string source;  // L['x'].size()[0]; of 2*n: what n is, from that
    std::string place;   // x, dimension 0
    Dim::Kind kind;
    tenon::sym::Range declared, written;
    int64_t hint = 0;
    std::optional<tenon::sym::Expr> known_as;  // a number, or what it follows from
  };
  struct Condition {
    tenon::sym::Expr expr;
    std::string reason;
  };

  void open(std::size_t input, std::size_t dim, const Dim& spec);
  Symbol& named(const Dim& spec, const std::string& place, const std::string& source, int64_t size);
  Symbol& fresh(const Dim& spec, std::string label, const std::string& source, const std::string& place, int64_t hint);
  Symbol* find(tenon::sym::Expr symbol);
  const Symbol* find(tenon::sym::Expr symbol) const { return const_cast<ExampleSizes*>(this)->find(symbol); }
  tenon::sym::Expr resolved(tenon::sym::Expr e) const;
  void learn(tenon::sym::Expr condition);
  bool replace(tenon::sym::Expr left, tenon::sym::Expr right);
  void check_named(const Symbol& s, std::vector<std::string>& faults, std::vector<std::string>& fixes);
  std::string code(tenon::sym::Expr condition) const;  // as Python reads it, over sources

  std::vector<Input> inputs_;
  std::vector<Symbol> symbols_;
  std::vector<Condition> conditions_;
  std::vector<std::string> faults_, fixes_;
  std::vector<std::string> equalities_;  // between sizes of inputs, as code
  tenon::sym::Bindings hints_;
  tenon::sym::ShapeEnv* shapes_ = nullptr;
  std::string at_;
  bool learnt_ = false;
};

}  // namespace tenon::v0::detail
