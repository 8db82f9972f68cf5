// Discrete Fourier transforms of any length along one dimension, computed in f64: lengths of small factors in as many
// steps, others as a convolution of a length that is a power of two (Bluestein).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")  // as in spectrum.cpp
#endif
#include "kernels/host/call.h"

namespace tenon::kernels {
namespace {

struct Number {
  double re, im;
  Number() = default;
  Number(double re, double im = 0) : re(re), im(im) {}
};
Number operator+(Number a, Number b) { return {a.re + b.re, a.im + b.im}; }
Number operator-(Number a, Number b) { return {a.re - b.re, a.im - b.im}; }
Number operator*(Number a, Number b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Number conjugate(Number a) { return {a.re, -a.im}; }

// exp(-2 pi i k / n), by an angle of at most an eighth of a turn: as exact as the functions are.
Number root_of_unity(int64_t k, int64_t n) {
  constexpr double turn = 6.283185307179586476925286766559;
  int64_t eighths = 8 * k;
  bool below = eighths > 4 * n;  // conjugates of one another
  if (below) eighths = 8 * n - eighths;
  bool left = eighths > 2 * n;
  if (left) eighths = 4 * n - eighths;
  bool steep = eighths > n;
  if (steep) eighths = 2 * n - eighths;
  double angle = turn * (static_cast<double>(eighths) / static_cast<double>(8 * n));
  double c = cos(angle), s = sin(angle);
  if (steep) {
    double other = c;
    c = s;
    s = other;
  }
  return {left ? -c : c, below ? s : -s};
}

constexpr int64_t largest_factor = 31;

/// Transforms of one length, unscaled and forward.
class Steps {
 public:
  // False where memory ran out. Lengths of large factors are refused by fits().
  static bool fits(int64_t n) {
    for (int64_t p = 2; p <= largest_factor; ++p)
      while (n % p == 0) n /= p;
    return n <= 1;
  }
  bool prepare(Call& call, int64_t n) {
    n_ = n;
    roots_ = work<Number>(call, n);
    spare_ = work<Number>(call, n);
    if (!roots_ || !spare_) return false;
    for (int64_t k = 0; k < n; ++k) roots_[k] = root_of_unity(k, n);
    return true;
  }
  /// In place.
  void run(Number* x) const {
    Number *from = x, *to = spare_;
    int64_t stride = 1;
    for (int64_t left = n_; left > 1;) {
      int64_t p = left % 4 == 0 ? 4 : 2;
      while (left % p) ++p;
      if (p == 4) four(from, to, left / 4, stride);
      else some(from, to, p, left / p, stride);
      left /= p;
      stride *= p;
      Number* other = from;
      from = to;
      to = other;
    }
    if (from != x)
      for (int64_t i = 0; i < n_; ++i) x[i] = from[i];
  }

 private:
  void four(const Number* x, Number* y, int64_t m, int64_t s) const {
    for (int64_t k = 0; k < m; ++k) {
      Number w1 = roots_[k * s], w2 = roots_[2 * k * s], w3 = roots_[3 * k * s];
      for (int64_t q = 0; q < s; ++q) {
        Number a = x[q + s * k], b = x[q + s * (k + m)], c = x[q + s * (k + 2 * m)], d = x[q + s * (k + 3 * m)];
        Number sum = a + c, difference = a - c, others = b + d, turned = b - d;
        turned = {turned.im, -turned.re};  // times -i
        Number* out = y + q + s * 4 * k;
        out[0] = sum + others;
        out[s] = (difference + turned) * w1;
        out[2 * s] = (sum - others) * w2;
        out[3 * s] = (difference - turned) * w3;
      }
    }
  }
  void some(const Number* x, Number* y, int64_t p, int64_t m, int64_t s) const {
    Number terms[largest_factor];
    int64_t turn = n_ / p;
    for (int64_t k = 0; k < m; ++k)
      for (int64_t q = 0; q < s; ++q) {
        for (int64_t t = 0; t < p; ++t) terms[t] = x[q + s * (k + m * t)];
        for (int64_t u = 0; u < p; ++u) {
          Number sum = terms[0];
          for (int64_t t = 1, at = u; t < p; ++t, at = at + u < p ? at + u : at + u - p)
            sum = sum + terms[t] * roots_[at * turn];
          y[q + s * (p * k + u)] = sum * roots_[k * u * s];
        }
      }
  }

  int64_t n_ = 0;
  Number *roots_ = nullptr, *spare_ = nullptr;
};

class Transform {
 public:
  bool prepare(Call& call, int64_t n) {
    n_ = n;
    if (Steps::fits(n)) return steps_.prepare(call, n);
    m_ = 1;
    while (m_ < 2 * n - 1) m_ *= 2;
    chirp_ = work<Number>(call, n);
    kernel_ = zeroed_work<Number>(call, m_);
    padded_ = work<Number>(call, m_);
    if (!chirp_ || !kernel_ || !padded_ || !steps_.prepare(call, m_)) return false;
    for (int64_t k = 0, square = 0; k < n; ++k) {  // k squared, of 2n
      chirp_[k] = root_of_unity(square, 2 * n);
      square += 2 * k + 1;
      while (square >= 2 * n) square -= 2 * n;
    }
    for (int64_t k = 0; k < n; ++k) kernel_[k] = conjugate(chirp_[k]);
    for (int64_t k = 1; k < n; ++k) kernel_[m_ - k] = kernel_[k];
    steps_.run(kernel_);
    return true;
  }
  void run(Number* x) const {
    if (m_ == 0) return steps_.run(x);
    for (int64_t k = 0; k < n_; ++k) padded_[k] = x[k] * chirp_[k];
    for (int64_t k = n_; k < m_; ++k) padded_[k] = {0, 0};
    steps_.run(padded_);
    for (int64_t k = 0; k < m_; ++k) padded_[k] = conjugate(padded_[k] * kernel_[k]);
    steps_.run(padded_);  // backward: of the conjugate, conjugated
    double scale = 1 / static_cast<double>(m_);
    for (int64_t k = 0; k < n_; ++k) {
      Number value = conjugate(padded_[k]);
      x[k] = Number{value.re * scale, value.im * scale} * chirp_[k];
    }
  }

 private:
  int64_t n_ = 0, m_ = 0;  // m: of the convolution, 0 where there is none
  Steps steps_;
  Number *chirp_ = nullptr, *kernel_ = nullptr, *padded_ = nullptr;
};

template <class T>
int transform(Call& call, int64_t dim, bool forward, double scale) {
  const tenon_tensor &x = call.inputs[0], &out = call.results[0];
  int64_t n = x.sizes[dim], lines = 1;
  for (int32_t d = 0; d + 1 < x.rank; ++d) lines *= d == dim ? 1 : x.sizes[d];
  if (n == 0 || lines == 0) return TENON_KERNEL_OK;
  Transform along;
  Number* line = work<Number>(call, n);
  if (!line || !along.prepare(call, n)) return TENON_KERNEL_MEMORY;
  const T* from = static_cast<const T*>(x.data);
  T* to = static_cast<T*>(out.data);
  int64_t pair = x.strides[x.rank - 1], pair_out = out.strides[x.rank - 1];
  for (int64_t i = 0; i < lines; ++i) {
    int64_t rest = i, at = 0, at_out = 0;
    for (int32_t d = x.rank - 2; d >= 0; --d) {
      if (d == dim) continue;
      at += rest % x.sizes[d] * x.strides[d];
      at_out += rest % x.sizes[d] * out.strides[d];
      rest /= x.sizes[d];
    }
    // Backward is forward with real and imaginary parts exchanged.
    for (int64_t k = 0; k < n; ++k) {
      const T* here = from + at + k * x.strides[dim];
      auto re = static_cast<double>(here[0]), im = static_cast<double>(here[pair]);
      line[k] = forward ? Number{re, im} : Number{im, re};
    }
    along.run(line);
    for (int64_t k = 0; k < n; ++k) {
      T* here = to + at_out + k * out.strides[dim];
      Number value = forward ? line[k] : Number{line[k].im, line[k].re};
      here[0] = static_cast<T>(value.re * scale);
      here[pair_out] = static_cast<T>(value.im * scale);
    }
  }
  return TENON_KERNEL_OK;
}

}  // namespace

// tenon::fourier(Tensor self, int dim, bool forward, int normalization): pairs in the last dimension.
TENON_HOST_FUNCTION(fourier) {
  (void)lo, (void)hi;
  Params params(*call);
  const tenon_tensor &x = call->inputs[0], &out = call->results[0];
  int64_t dim = params.integer();
  bool forward = params.flag();
  int64_t normalization = params.integer();
  bool fits = x.rank >= 2 && dim >= 0 && dim + 1 < x.rank && x.sizes[x.rank - 1] == 2 && same_sizes(x, out);
  if (!fits || x.dtype != out.dtype || (x.dtype != TENON_F32 && x.dtype != TENON_F64)) return TENON_KERNEL_ARITHMETIC;
  auto numbers = static_cast<double>(fits ? x.sizes[dim] : 1);
  double scale = normalization == 0 ? 1 : normalization == 1 ? 1 / sqrt(numbers) : 1 / numbers;
  return x.dtype == TENON_F32 ? transform<float>(*call, dim, forward, scale)
                              : transform<double>(*call, dim, forward, scale);
}

}  // namespace tenon::kernels
