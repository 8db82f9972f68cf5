#pragma once
#include <cstdint>

namespace tenon::templates {

/// out[rows, vectors * lanes] (+)= a[k, height]^T * b[k, ...]; a is packed k-major with `height` values a step, b has
/// the row stride b_row. Rows at and beyond `rows` are computed and dropped.
template <class T>
using TileFunction = void (*)(std::int64_t k, const T* a, const T* b, std::int64_t b_row, T* out, std::int64_t out_row,
                              int rows, bool add);

/// The innermost loops, for the widest instruction set this processor has. Every sum runs in one fixed order.
template <class T>
struct Kernels {
  int rows = 0, columns = 0;        // the register tile; at most 16 x 64
  std::int64_t depth = 0;           // longest k of one tile call
  TileFunction<T> tile[17] = {};    // by height; null where the next greater one is to be used
  TileFunction<T> narrow[17] = {};  // the same with columns / 2
  TileFunction<T> row = nullptr;    // height 1, columns * 4
  /// sum of x[i] * y[i]
  T (*dot)(std::int64_t n, const T* x, const T* y) = nullptr;
  /// y[i] += factor * x[i]
  void (*add_scaled)(std::int64_t n, T factor, const T* x, T* y) = nullptr;
  /// x[i] *= factor, and the greatest of them, not looking at NaN; -infinity if there is none
  T (*scale_max)(std::int64_t n, T factor, T* x) = nullptr;
  /// x[i] = exp(x[i] - shift), and their sum
  T (*exp_row)(std::int64_t n, T* x, T shift) = nullptr;

  /// The least height with a tile that covers `rows`.
  int height(int rows_wanted) const {
    while (tile[rows_wanted] == nullptr) ++rows_wanted;
    return rows_wanted;
  }
};
template <class T>
const Kernels<T>& kernels();

enum class Isa { portable, avx2, avx512 };
/// Those of one instruction set; rows = 0 where this processor or this build lacks it.
template <class T>
Kernels<T> kernels_of(Isa isa);

/// Uninitialized memory, aligned to a cache line. Blocks of moderate size are kept for the thread's next use, since
/// fresh pages cost more than the packing they are for.
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  int slot_;
};

}  // namespace tenon::templates
