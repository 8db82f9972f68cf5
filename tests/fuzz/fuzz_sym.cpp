// Reads arbitrary text as an expression and as a guard. Only Error may come of it; what is read must print and read
// back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tenon/base/error.h"
#include "tenon/sym/evaluate.h"
#include "tenon/sym/parse.h"
#include "tenon/sym/print.h"
#include "tenon/sym/range.h"

namespace {

using namespace tenon;

/// Whether all parts are numbers: of infinity less infinity, ranges and decisions do not speak.
bool of_numbers(sym::Expr e, const sym::Bindings& bindings) {
  for (sym::Expr arg : e.args())
    if (!of_numbers(arg, bindings)) return false;
  if (e.is_integer_typed() || e.is_boolean_typed()) return true;
  double value = sym::evaluate_real(e, bindings);
  return value == value;
}

void use(sym::Expr e) {
  sym::Ranges ranges;
  sym::Bindings bindings;
  int64_t next = 2;
  for (sym::Expr s : sym::symbols_of(e)) {
    ranges.set(s, {next - 1, next + 1});
    bindings.set(s, next++);
  }
  sym::Range range = sym::range_of(e, ranges);
  auto known = sym::decide(e, ranges);
  try {
    double value = sym::evaluate_real(e, bindings);
    if (!e.is_integer_typed() && !e.is_boolean_typed()) return;
    if (sym::weight(e) > 1000 || !of_numbers(e, bindings)) return;
    if (value < static_cast<double>(range.lo) || value > static_cast<double>(range.hi)) std::abort();
    if (known && *known != (value != 0)) std::abort();
  } catch (const Error&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;  // nodes are never freed
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    sym::Expr e = sym::parse(text);
    use(e);
    std::string written = sym::to_srepr(e);
    try {
      if (!(sym::parse(written) == e)) std::abort();
    } catch (const Error&) {  // written out, it may pass the limits on depth and size
    }
  } catch (const Error&) {}
  try {
    use(sym::parse_guard(text));
  } catch (const Error&) {}
  return 0;
}
