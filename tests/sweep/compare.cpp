#include "tests/sweep/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/loop/index_map.h"
#include "tenon/tensor/half.h"

namespace tenon::sweep {
namespace {

template <class To, class From>
std::vector<To> converted(const Tensor& t) {
  const From* data = t.data<From>();
  return std::vector<To>(data, data + t.numel().as_int());
}

template <class To>
std::vector<To> widened(const Tensor& t, float (*convert)(uint16_t)) {
  std::vector<To> out;
  for (uint16_t bits : converted<uint16_t, uint16_t>(t)) out.push_back(static_cast<To>(convert(bits)));
  return out;
}

template <class To>
std::vector<To> elements_as(const Tensor& strided) {
  Tensor t = contiguous_copy(strided);
  if (is_complex(t.dtype())) t = t.with_meta(viewed(remap::AsReal(), t.meta()));  // two numbers each
  switch (t.dtype()) {
    case DType::boolean:
    case DType::u8: return converted<To, uint8_t>(t);
    case DType::i8: return converted<To, int8_t>(t);
    case DType::i16: return converted<To, int16_t>(t);
    case DType::i32: return converted<To, int32_t>(t);
    case DType::i64: return converted<To, int64_t>(t);
    case DType::u64: return converted<To, uint64_t>(t);
    case DType::f16: return widened<To>(t, half_to_float);
    case DType::bf16: return widened<To>(t, bfloat_to_float);
    case DType::f32: return converted<To, float>(t);
    case DType::f64: return converted<To, double>(t);
    default: fail("elements of dtype ", t.dtype(), " cannot be compared");
  }
}

// The share of the largest element that an element may be off.
double share(DType dtype) {
  switch (dtype) {
    case DType::f16: return 2e-3;
    case DType::bf16: return 1.6e-2;
    case DType::f64:
    case DType::c128: return 1e-12;
    default: return 2e-6;
  }
}

std::string index_text(size_t flat, const Sizes& sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    auto size = static_cast<size_t>(sizes[i].as_int());
    index[i] = static_cast<int64_t>(flat % size);
    flat /= size;
  }
  return text(index);
}

}  // namespace

std::vector<double> elements(const Tensor& t) { return elements_as<double>(t); }

std::optional<std::string> meta_differs(const TensorMeta& got, const TensorMeta& want) {
  bool same = got.dtype == want.dtype && got.rank() == want.rank(), empty = false;
  for (size_t i = 0; same && i < want.rank(); ++i) {
    same = !got.sizes[i].is_int() || got.sizes[i] == want.sizes[i];  // a size that only the data decides
    empty |= want.sizes[i] == SymInt(0);
  }
  for (size_t i = 0; same && !empty && i < want.rank(); ++i)
    same = want.sizes[i] == SymInt(1) || !got.strides[i].is_int() || got.strides[i] == want.strides[i];
  if (same) return std::nullopt;
  return text("expected ", want, ", got ", got);
}

std::optional<std::string> values_differ(const Tensor& got, const Tensor& exact, std::optional<double> own_error) {
  if (!is_differentiable(got.dtype())) {
    auto a = elements_as<int64_t>(got), b = elements_as<int64_t>(exact);
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < b.size(); ++i)
      if (a[i] != b[i] && !wrong++) first = i;
    if (!wrong) return std::nullopt;
    return text(wrong, " of ", b.size(), " elements differ, the first at ", index_text(first, got.sizes()),
                ": expected ", b[first], ", got ", a[first]);
  }
  std::vector<double> a = elements(got), b = elements(exact);
  double largest = 0;
  for (double x : b)
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  double allowed = 4 * own_error.value_or(0) + share(got.dtype()) * largest;
  size_t wrong = 0, first = 0;
  double worst = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (same) continue;
    double error = std::fabs(a[i] - b[i]);
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) error = std::numeric_limits<double>::infinity();
    if (error <= allowed) continue;
    if (!wrong++) first = i;
    worst = std::max(worst, error);
  }
  if (!wrong) return std::nullopt;
  return text(wrong, " of ", b.size(), " elements differ, the first at ",
              index_text(is_complex(got.dtype()) ? first / 2 : first, got.sizes()), ": expected ", b[first], ", got ",
              a[first], "; largest error ", worst, ", allowed ", allowed);
}

}  // namespace tenon::sweep
