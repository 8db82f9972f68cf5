// Elements of type std::complex: data<std::complex<float>>(). Not part of tenon.h, since few need <complex>, which is
// slow to compile.
#pragma once
#include <tenon/tensor.h>

#include <complex>

namespace tenon::TENON_INLINE v0::detail {
template <>
struct ElementOf<std::complex<float>> {
  static constexpr DType dtype = DType::c64;
};
template <>
struct ElementOf<std::complex<double>> {
  static constexpr DType dtype = DType::c128;
};

}  // namespace tenon::TENON_INLINEv0::detail
