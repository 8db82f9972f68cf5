// Functions written once in Kernel IR, for f32 and f64: both emitters, and so every machine, give the same bits. At
// most 2 ulp where nothing else is said; NaN, infinities, zeros and denormals as PyTorch has them.
#pragma once
#include "tenon/compile/builder.h"

namespace tenon::compile {

Val exp(Val x);
Val exp2(Val x);
Val expm1(Val x);
Val sigmoid(Val x);
Val tanh(Val x);
Val sinh(Val x);
Val cosh(Val x);
Val erf(Val x);
Val erfc(Val x);       // 4 ulp in f64
Val erfinv(Val x);     // 4 ulp in f64
Val lgamma(Val x);     // to 1e-14 of 1 + |lgamma(x)| in f64
Val digamma(Val x);    // the same
Val gelu(Val x);       // x Phi(x)
Val gelu_tanh(Val x);  // its approximation by tanh
Val silu(Val x);

Val log(Val x);
Val log2(Val x);
Val log10(Val x);
Val log1p(Val x);
Val pow(Val x, Val y);  // integers wrap; a negative exponent gives 0 but for the bases 1 and -1
Val asinh(Val x);
Val acosh(Val x);
Val atanh(Val x);

Val sin(Val x);
Val cos(Val x);
Val tan(Val x);
Val asin(Val x);
Val acos(Val x);
Val atan(Val x);
Val atan2(Val y, Val x);

Val min_nan(Val a, Val b);  // NaN wins
Val max_nan(Val a, Val b);
Val min_number(Val a, Val b);  // NaN loses
Val max_number(Val a, Val b);
Val copysign(Val magnitude, Val sign);
Val sign(Val x);  // -1, 0 or 1; 0 for NaN
Val rsqrt(Val x);
Val reciprocal(Val x);
Val hypot(Val x, Val y);
Val nextafter(Val x, Val towards);
Val is_nan(Val x);
Val is_inf(Val x);

/// C's remainder: exact, the sign of x. Integers: x fmod 0 is 0, so check first.
Val fmod(Val x, Val y);
/// Python's: the sign of y.
Val remainder(Val x, Val y);
Val floor_div(Val x, Val y);

/// Philox 4x32-10: 32 uniform bits, as an i64, for i64 seed, stream and position.
Val random_bits(Val seed, Val stream, Val position);

Val round_to(Val x, Element element);  // f32 to what f16 or bf16 holds

}  // namespace tenon::compile
