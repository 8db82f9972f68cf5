// What an operator of the user gives, in words: "x[..., k], w[n, k] -> x[..., n]".
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tenon/rules/op_def.h"

namespace tenon {

/// The description, read once; sizes are symbolic throughout. runtime/include/tenon/operator_table.h has the grammar.
class CustomResults {
 public:
  CustomResults() = default;
  /// An Error says what is wrong with the text.
  CustomResults(const Schema& schema, std::string_view text);
  /// One meta for each result of the schema.
  std::vector<TensorMeta> metas(const MetaCall& call) const;

 private:
  struct Dim {
    enum class Kind : uint8_t { size, rest, told } kind = Kind::size;
    sym::Expr size = 0;  // over names of sizes and of integer arguments
  };
  struct Pattern {
    std::string arg;
    std::vector<Dim> dims;
  };
  struct Result {
    std::optional<DType> dtype;  // none: of `like`
    std::string like;
    std::optional<std::vector<Dim>> dims;  // none: of `like`
  };
  struct Found;
  std::vector<Dim> dims_of(const Schema& schema, std::string_view text, bool of_result);

  std::vector<Pattern> patterns_;
  std::vector<Result> results_;
  std::vector<sym::Expr> names_;     // of sizes
  std::vector<sym::Expr> integers_;  // arguments that sizes of results speak of
};

}  // namespace tenon
