// PyTorch's schema language: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/tensor/dispatch.h"

namespace tenon {

enum class TypeKind : uint8_t {
  tensor,
  scalar,
  integer,
  floating,
  boolean,
  string,
  dtype,
  layout,
  memory_format,
  device,
  generator,
  storage,
  stream,
  other
};

struct Type {
  TypeKind kind = TypeKind::other;
  bool optional = false;           // T?
  bool list = false;               // T[]
  bool optional_items = false;     // T?[]
  bool broadcasting_list = false;  // int[2]: one number stands for all of the list
  std::string text;                // as written, without alias annotation
};

struct SchemaArg {
  std::string name;
  Type type;
  CallArg default_value;
  bool has_default = false;
  bool keyword_only = false;
  std::string alias;       // the letter of Tensor(a) or Tensor(a!); empty: none
  bool writes = false;     // Tensor(a!)
  bool alias_any = false;  // Tensor(a -> *): items of the result may be views of it
};

struct Schema {
  std::string name;  // aten::add.Tensor; the overload "default" is not written
  std::vector<SchemaArg> args;
  std::vector<SchemaArg> returns;

  std::string_view space() const;        // aten
  std::string_view base() const;         // add
  std::string_view overload() const;     // Tensor, or default
  int find(std::string_view arg) const;  // position, -1 where there is none
  bool writes() const;
};

/// The namespace is aten where the text names none. Errors quote the schema: it is ours, so they are internal errors.
Schema parse_schema(std::string_view text);
std::string to_text(const Schema& schema);  // canonical spelling, as str(op._schema)

/// Gives an argument the form its slot has: int to float, int[] of one to int[n], empty lists the right element type, a
/// number or list of numbers where PyTorch accepts one. Returns a description of what was expected where it does not
/// fit.
std::optional<std::string> coerce(CallArg& arg, const SchemaArg& slot);

}  // namespace tenon
