// What host functions are written with: parameters in the order of the schema, elements of any dtype, memory, refusals.
#pragma once
#include "kernels/host/numbers.h"
#include "kernels/kernel.h"

namespace tenon::kernels {

using Call = const struct tenon_host_call;

/// Parameters one after another, as tenon/plan/host.h writes them.
class Params {
 public:
  explicit Params(Call& call) : at_(call.params) {}
  int64_t integer() { return *at_++; }
  bool flag() { return *at_++ != 0; }
  bool present() { return *at_++ != 0; }  // before what may be absent
  double real() { return from_bits(static_cast<uint64_t>(*at_++)); }
  struct List {
    const int64_t* items;
    int64_t count;
    int64_t operator[](int64_t i) const { return items[i]; }
    double real(int64_t i) const { return from_bits(static_cast<uint64_t>(items[i])); }
  };
  List list() {
    int64_t n = *at_++;
    at_ += n;
    return {at_ - n, n};
  }
  struct Text {
    const char* bytes;
    int64_t size;
    /// Whether it is a text, or begins with one.
    template <size_t N>
    bool is(const char (&text)[N]) const {
      return size == static_cast<int64_t>(N) - 1 && begins(text);
    }
    template <size_t N>
    bool begins(const char (&text)[N]) const {
      if (size < static_cast<int64_t>(N) - 1) return false;
      for (size_t i = 0; i + 1 < N; ++i)
        if (bytes[i] != text[i]) return false;
      return true;
    }
  };
  Text text() {
    int64_t n = *at_++;
    const char* bytes = reinterpret_cast<const char*>(at_);
    at_ += (n + 7) / 8;
    return {bytes, n};
  }

 private:
  const int64_t* at_;
};

inline bool is_present(const tenon_tensor& t) { return t.dtype >= 0; }
[[gnu::noinline]] inline int64_t count(const tenon_tensor& t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t.rank; ++d) n *= t.sizes[d];
  return n;
}
[[gnu::noinline]] inline bool same_sizes(const tenon_tensor& a, const tenon_tensor& b) {
  if (a.rank != b.rank) return false;
  for (int32_t d = 0; d < a.rank; ++d)
    if (a.sizes[d] != b.sizes[d]) return false;
  return true;
}

/// Refuses the call with sentence number `code` of its operator and the numbers for it.
template <class... Numbers>
int refuse(Call& call, int64_t code, Numbers... numbers) {
  call.counts[0] = code;
  int i = 1;
  ((call.counts[i++] = bits_of(numbers)), ...);
  return TENON_KERNEL_REFUSED;
}

/// Memory until the call returns; null where there is none, or where n is beyond all sense.
template <class T>
[[gnu::noinline]] T* work(Call& call, int64_t n) {
  if (n < 0 || n > (int64_t{1} << 56) / static_cast<int64_t>(sizeof(T))) return nullptr;
  return static_cast<T*>(call.work(&call, static_cast<uint64_t>(n) * sizeof(T)));
}
template <class T>
[[gnu::noinline]] T* zeroed_work(Call& call, int64_t n) {
  T* memory = work<T>(call, n);
  for (int64_t i = 0; memory && i < n; ++i) memory[i] = T(0);
  return memory;
}

/// Where the elements of a tensor lie, in row-major order of sizes that it is broadcast to, from element `first` on.
class Walk {
 public:
  explicit Walk(const tenon_tensor& t) : Walk(t, t, 0) {}
  Walk(const tenon_tensor& t, const tenon_tensor& over, int64_t first) : Walk(t, over.rank, over.sizes, first) {}
  [[gnu::noinline]] Walk(const tenon_tensor& t, int32_t rank, const int64_t* sizes, int64_t first)
      : rank_(rank), sizes_(sizes) {
    for (int32_t d = rank - 1, own = t.rank - 1; d >= 0; --d, --own) {
      strides_[d] = own >= 0 && t.sizes[own] != 1 ? t.strides[own] : 0;
      at_[d] = sizes[d] > 0 ? first % sizes[d] : 0;
      first = sizes[d] > 0 ? first / sizes[d] : 0;
      offset_ += at_[d] * strides_[d];
    }
  }
  int64_t offset() const { return offset_; }
  [[gnu::noinline]] void next() {
    for (int32_t d = rank_ - 1; d >= 0; --d) {
      offset_ += strides_[d];
      if (++at_[d] < sizes_[d]) return;
      offset_ -= strides_[d] * sizes_[d];
      at_[d] = 0;
    }
  }

 private:
  int32_t rank_;
  const int64_t* sizes_;
  int64_t offset_ = 0;
  int64_t at_[TENON_MAX_RANK], strides_[TENON_MAX_RANK];
};

/// Elements widened, in row-major order. T is double or int64_t.
template <class T>
[[gnu::noinline]] void read(const tenon_tensor& t, T* to) {
  Walk at(t);
  for (int64_t i = 0, n = count(t); i < n; ++i, at.next()) to[i] = load<T>(t.data, t.dtype, at.offset());
}
template <class T>
[[gnu::noinline]] T* elements(Call& call, const tenon_tensor& t) {
  T* to = work<T>(call, count(t));
  if (to) read(t, to);
  return to;
}
/// The other way: rounded to the tensor's dtype.
template <class T>
[[gnu::noinline]] void write(tenon_tensor& t, const T* from) {
  Walk at(t);
  for (int64_t i = 0, n = count(t); i < n; ++i, at.next()) store(t.data, t.dtype, at.offset(), from[i]);
}

/// Copies one element of `size` bytes.
[[gnu::noinline]] inline void copy_element(void* to, int64_t to_offset, const void* from, int64_t from_offset,
                                           int64_t size) {
  auto* target = static_cast<unsigned char*>(to) + to_offset * size;
  const auto* source = static_cast<const unsigned char*>(from) + from_offset * size;
  for (int64_t i = 0; i < size; ++i) target[i] = source[i];
}

}  // namespace tenon::kernels
