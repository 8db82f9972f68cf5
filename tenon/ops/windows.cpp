// Windows for spectra: sums of cosines, triangles, Bessel functions.
#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/special.h"
#include "tenon/ops/trigonometric.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

// The sum of weight[k] * cos(k * angle); a periodic window is a longer one without its last number.
Results cosine_window(Build& b, bool periodic, std::initializer_list<double> weights) {
  int64_t n = b.constant("window_length");
  b.require(n >= 0, "window_length: expected a number that is not negative, got ", n);
  DType dtype = b.dtype("dtype").value_or(DType::f32);
  b.require(is_floating(dtype), "expected a floating point dtype, got ", dtype);
  if (n <= 1) return full(Sizes{SymInt(n)}, 1, kw("dtype", dtype));
  Tensor angle = arange(0, n, 1, kw("dtype", dtype)) * (2 * M_PI / static_cast<double>(periodic ? n : n - 1)), window;
  double k = 0;
  for (double weight : weights) {
    if (k > 0) {
      Tensor term = cos(k == 1 ? angle : angle * k) * weight;
      window = window ? window + term : term;
    }
    ++k;
  }
  return one(window + *weights.begin());
}

Results hann(Build& b, bool periodic) { return cosine_window(b, periodic, {0.5, -0.5}); }
Results hamming(Build& b, bool periodic, double alpha = 0.54, double beta = 0.46) {
  return cosine_window(b, periodic, {alpha, -beta});
}
Results blackman(Build& b, bool periodic) { return cosine_window(b, periodic, {0.42, -0.5, 0.08}); }

// Rises from 0 to 1 in the middle and falls to 0.
Results bartlett(Build& b, bool periodic) {
  int64_t n = b.constant("window_length");
  b.require(n >= 0, "window_length: expected a number that is not negative, got ", n);
  DType dtype = b.dtype("dtype").value_or(DType::f32);
  b.require(is_floating(dtype), "expected a floating point dtype, got ", dtype);
  if (n <= 1) return full(Sizes{SymInt(n)}, 1, kw("dtype", dtype));
  int64_t last = periodic ? n : n - 1;
  Tensor rising = arange(0, n, 1, kw("dtype", dtype)) * (2 / static_cast<double>(last));
  return where(le(arange(0, n), last / 2), rising, rising * -1.0 + 2.0);
}

// I0(beta * sqrt(1 - x^2)) / I0(beta), for x from -1 to 1.
Results kaiser(Build& b, bool periodic, double beta = 12) {
  int64_t n = b.constant("window_length");
  b.require(n >= 0, "window_length: expected a number that is not negative, got ", n);
  DType dtype = b.dtype("dtype").value_or(DType::f32);
  b.require(is_floating(dtype), "expected a floating point dtype, got ", dtype);
  if (n <= 1) return full(Sizes{SymInt(n)}, 1, kw("dtype", dtype));
  DType wide = dtype == DType::f64 ? dtype : DType::f32;
  Tensor x = arange(0, n, 1, kw("dtype", wide)) * (2 / static_cast<double>(periodic ? n : n - 1)) - 1.0;
  Tensor within = clamp(x * x * -1.0 + 1.0, 0.0);
  Tensor window = i0(sqrt(within) * beta) / i0(full(Sizes{}, beta, kw("dtype", wide)));
  return one(to(window, dtype));
}

}  // namespace

void register_windows(Registry& ops) {
  ops.add({
      .schema = "hann_window(int window_length, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return hann(b, true); },
  });
  ops.add({
      .schema = "hann_window.periodic(int window_length, bool periodic, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return hann(b, b.flag("periodic")); },
  });
  ops.add({
      .schema = "hamming_window(int window_length, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return hamming(b, true); },
  });
  ops.add({
      .schema = "hamming_window.periodic(int window_length, bool periodic, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return hamming(b, b.flag("periodic")); },
  });
  ops.add({
      .schema = "hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, " TENON_TENSOR_OPTIONS
                ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return hamming(b, b.flag("periodic"), b.number("alpha")); },
  });
  ops.add({
      .schema = "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, "
                "*, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return hamming(b, b.flag("periodic"), b.number("alpha"), b.number("beta")); },
  });
  ops.add({
      .schema = "blackman_window(int window_length, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return blackman(b, true); },
  });
  ops.add({
      .schema = "blackman_window.periodic(int window_length, bool periodic, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return blackman(b, b.flag("periodic")); },
  });
  ops.add({
      .schema = "bartlett_window(int window_length, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return bartlett(b, true); },
  });
  ops.add({
      .schema = "bartlett_window.periodic(int window_length, bool periodic, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return bartlett(b, b.flag("periodic")); },
  });
  ops.add({
      .schema = "kaiser_window(int window_length, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return kaiser(b, true); },
  });
  ops.add({
      .schema = "kaiser_window.periodic(int window_length, bool periodic, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return kaiser(b, b.flag("periodic")); },
  });
  ops.add({
      .schema =
          "kaiser_window.beta(int window_length, bool periodic, float beta, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return kaiser(b, b.flag("periodic"), b.number("beta")); },
  });
}

}  // namespace tenon
