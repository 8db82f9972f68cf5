// Descriptions of tensors, and the expressions of sizes in them.
#include "tenon/export/serde/codes.h"
#include "tenon/export/serde/graph_reader.h"
#include "tenon/sym/parse.h"

namespace tenon::serde {
namespace {

// Functions that PyTorch's expressions have and Tenon only carries along. Any other is a mistake: PyTorch could not
// read it.
bool is_carried(std::string_view function) {
  return function == "IsNonOverlappingAndDenseIndicator" || starts_with(function, "OpaqueUnaryFn_") ||
         starts_with(function, "BitwiseFn_");
}

void check_functions(SymInt expr) {
  if (expr.is_int() || expr.is_symbol() || expr.is_number()) return;
  require(!expr.is(sym::Kind::unknown_call) || is_carried(expr.name()), "the function ", quoted(expr.name()),
          " is none that PyTorch has in its expressions");
  for (SymInt arg : expr.args()) check_functions(arg);
}

SymInt read_expression(Json json, ReadContext& context) {
  std::string expression(json.at("expr_str").as_string());
  auto found = context.expressions.find(expression);
  if (found == context.expressions.end()) {
    context.budget.take_weight(expression.size(), "symbolic expressions");  // for what is built on the way
    SymInt value;
    try {
      value = sym::parse(expression);
      check_functions(value);
    } catch (const Error& error) { json.fail(error.what()); }
    found = context.expressions.emplace(std::move(expression), value).first;
  }
  context.budget.take_weight(sym::weight(found->second), "symbolic expressions");
  if (found->second.is_symbol())
    if (auto hint = json.given("hint"))
      if (auto number = hint->given("as_int")) context.hints.emplace(found->second.name(), number->as_int());
  return found->second;
}

// Of a tensor: a whole number, or what is one for some symbols.
SymInt read_size(Json json, ReadContext& context) {
  SymInt size = read_symbolic(json, context);
  json.require(!size.is(sym::Kind::real) && !size.is(sym::Kind::boolean), "expected a whole number, got ", size);
  return size;
}

bool elements_fit(const TensorMeta& meta) {
  int64_t elements = 1;
  bool fits = true;
  for (SymInt size : meta.sizes) {
    auto number = size.constant();
    if (number == 0) return true;
    fits = fits && !(number && __builtin_mul_overflow(elements, *number, &elements));
  }
  return fits;
}

}  // namespace

SymInt read_symbolic(Json value, ReadContext& context) {
  auto [key, content] = read_union(value);
  if (key == "as_int") return content.as_int();
  if (key == "as_expr") return read_expression(content, context);
  if (key == "as_float") return SymInt::real(read_float(content));
  if (key == "as_bool") return SymInt::boolean(content.as_bool());
  value.fail("expected as_expr or a constant, found ", quoted(key));
}

TensorMeta read_tensor_meta(Json json, ReadContext& context) {
  constexpr size_t max_rank = 64;  // PyTorch's own limit
  TensorMeta meta;
  meta.dtype = read_dtype(json.at("dtype"));
  for (Json size : json.at("sizes").items()) {
    meta.sizes.push_back(read_size(size, context));
    if (auto number = meta.sizes.back().constant()) size.require(*number >= 0, "a size is negative: ", *number);
  }
  for (Json stride : json.at("strides").items()) {
    meta.strides.push_back(read_size(stride, context));
    if (auto number = meta.strides.back().constant()) stride.require(*number >= 0, "a stride is negative: ", *number);
  }
  json.require(meta.rank() <= max_rank, "a tensor has ", meta.rank(), " dimensions; at most ", max_rank,
               " are allowed");
  json.require(meta.strides.size() == meta.rank(), "expected ", meta.rank(), " strides as there are sizes, found ",
               meta.strides.size());
  if (auto offset = json.given("storage_offset")) meta.offset = read_size(*offset, context);
  if (auto offset = meta.offset.constant()) json.require(*offset >= 0, "the storage offset is negative: ", *offset);
  meta.device = read_device(json.at("device"));
  meta.layout = read_layout(json.at("layout"));
  json.require(elements_fit(meta), "the number of elements of sizes ", meta.sizes, " does not fit into 64 bits");
  if (auto grad = json.given("requires_grad")) meta.requires_grad = grad->as_bool();
  return meta;
}

}  // namespace tenon::serde
