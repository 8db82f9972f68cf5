#include "tenon/ops/printing.h"

#include <cstdio>
#include <cstring>
#include <mutex>

#include "tenon/base/python_format.h"
#include "tenon/rules/registry.h"
#include "tenon/tensor/half.h"
#include "tenon/tensor/printed.h"

namespace tenon {

Handle printed_call, print_values;

namespace {

static_assert(static_cast<int>(DType::f8_e8m0fnu) == TENON_F8_E8M0FNU, "dtypes are numbered as in the runtime");

// Element number `at` of each kind, whatever the strides.
template <class T, class F>
void visit(const tenon_tensor& t, const F& f, int dim = 0, int64_t at = 0) {
  if (dim == t.rank) return f(static_cast<const T*>(t.data)[at]);
  for (int64_t i = 0; i < t.sizes[dim]; ++i) visit<T>(t, f, dim + 1, at + i * t.strides[dim]);
}

PrintedTensor widened(const tenon_tensor& t) {
  PrintedTensor out{static_cast<DType>(t.dtype), {t.sizes, t.sizes + t.rank}, {}, {}, {}};
  auto real = [&](auto x) { out.real.push_back(static_cast<double>(x)); };
  auto whole = [&](auto x) { out.integers.push_back(static_cast<int64_t>(x)); };
  switch (out.dtype) {
    case DType::boolean:
    case DType::u8: visit<uint8_t>(t, whole); break;
    case DType::i8: visit<int8_t>(t, whole); break;
    case DType::i16: visit<int16_t>(t, whole); break;
    case DType::i32: visit<int32_t>(t, whole); break;
    case DType::i64: visit<int64_t>(t, whole); break;
    case DType::u16: visit<uint16_t>(t, whole); break;
    case DType::u32: visit<uint32_t>(t, whole); break;
    case DType::u64: visit<uint64_t>(t, whole); break;
    case DType::f16: visit<uint16_t>(t, [&](uint16_t x) { real(half_to_float(x)); }); break;
    case DType::bf16: visit<uint16_t>(t, [&](uint16_t x) { real(bfloat_to_float(x)); }); break;
    case DType::f32: visit<float>(t, real); break;
    case DType::f64: visit<double>(t, real); break;
    case DType::c32:
    case DType::c64:
    case DType::c128:
    case DType::f8_e4m3fn:
    case DType::f8_e5m2:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
    case DType::f8_e8m0fnu: fail("tensors of ", out.dtype, " cannot be printed");
  }
  return out;
}

// A tensor without dimensions is formatted as its number is.
std::string formatted(const tenon_tensor& t, const FormatPiece& field) {
  PrintedTensor numbers = widened(t);
  if (t.rank > 0 || field.as_repr) return python_format(std::string_view(printed(numbers)), field.spec);
  if (numbers.dtype == DType::boolean) return python_format(numbers.integers[0] != 0, field.spec);
  if (!numbers.real.empty()) return python_format(numbers.real[0], field.spec);
  if (numbers.dtype == DType::u64 && numbers.integers[0] < 0) return printed(numbers).substr(7);
  return python_format(numbers.integers[0], field.spec);
}

int print_kernel(const tenon_host_call* call, int64_t, int64_t) {
  try {
    std::string format(static_cast<size_t>(call->params[0]), '\0'), out;
    std::memcpy(format.data(), call->params + 1, format.size());
    uint32_t next = 0;
    for (const FormatPiece& piece : parse_format(format)) {
      out += piece.text;
      if (!piece.has_field) continue;
      if (next == call->input_count) throw Error("more fields than tensors");
      out += formatted(call->inputs[next++], piece);
    }
    out += '\n';
    static std::mutex one_at_a_time;
    std::lock_guard lock(one_at_a_time);
    std::fwrite(out.data(), 1, out.size(), stdout);
    std::fflush(stdout);
    return TENON_KERNEL_OK;
  } catch (...) {
    call->counts[0] = 1;
    return TENON_KERNEL_REFUSED;
  }
}

Metas nothing(MetaCall& m) {
  parse_format(m.string("format"));
  return {};
}

}  // namespace

void register_printing(Registry& ops) {
  ops.add(printed_call, {.schema = "higher_order::print(str format, Any args) -> ()",
                         .kind = OpKind::structural,
                         .traits = {.effects = true}});
  ops.add(print_values, {.schema = "tenon::print(str format, Tensor[] values) -> ()",
                         .traits = {.effects = true},
                         .meta = nothing,
                         .host = {.name = "tenon::print",
                                  .errors = {"a tensor cannot be written as the format {format} asks"},
                                  .function = print_kernel}});
  ops.add({.schema = "_print(str s) -> ()",
           .kind = OpKind::composite,
           .traits = {.effects = true},
           .decompose = [](Build& b) -> Results {
             print_values(escaped_braces(b.string("s")), std::vector<Tensor>{});
             return {};
           }});
}

}  // namespace tenon
