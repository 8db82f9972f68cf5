// Expressions as text, for print.cpp.
#pragma once
#include <unordered_map>

#include "tenon/loop/program.h"

namespace tenon::loop {

/// The text of a stage's expressions. Where it would be long, what occurs more than once is written once, under a name.
class ExprText {
 public:
  explicit ExprText(const Program& program) : program_(program) {}
  ExprText(const Program& program, const Stage& stage);
  std::string operator()(ExprId id) const;
  std::string list(std::span<const ExprId> at) const;  // "[i0, i1]"
  /// "  v0 = ..." a line each, each with what comes before it.
  std::string definitions() const;

 private:
  std::string spelled(ExprId id) const;

  const Program& program_;
  std::unordered_map<ExprId, size_t> names_;
  std::vector<ExprId> named_;
};

}  // namespace tenon::loop
