// Blocks in and out of memory: conversion between dtypes and what they are computed in.
#include <cmath>
#include <limits>

#include "tenon/base/error.h"
#include "tenon/interp/scalar_functions.h"
#include "tenon/interp/wrap.h"
#include "tenon/tensor/half.h"

namespace tenon::interp {
namespace {

using loop::Compute;

// How one dtype lies in memory and what it is computed in.
template <class S, class C>
struct Plain {
  using Stored = S;
  using Computed = C;
  static C load(S s) { return static_cast<C>(s); }
  static S store(C c) { return static_cast<S>(c); }
};
struct Boolean {
  using Stored = uint8_t;
  using Computed = uint8_t;
  static uint8_t load(uint8_t s) { return s != 0; }
  static uint8_t store(uint8_t c) { return c != 0; }
};
struct Half {
  using Stored = uint16_t;
  using Computed = float;
  static float load(uint16_t s) { return half_to_float(s); }
  static uint16_t store(float c) { return float_to_half(c); }
};
struct BFloat {
  using Stored = uint16_t;
  using Computed = float;
  static float load(uint16_t s) { return bfloat_to_float(s); }
  static uint16_t store(float c) { return float_to_bfloat(c); }
};

template <class F>
void with_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean: f(Boolean{}); return;
    case DType::u8: f(Plain<uint8_t, int64_t>{}); return;
    case DType::i8: f(Plain<int8_t, int64_t>{}); return;
    case DType::i16: f(Plain<int16_t, int64_t>{}); return;
    case DType::u16: f(Plain<uint16_t, int64_t>{}); return;
    case DType::i32: f(Plain<int32_t, int64_t>{}); return;
    case DType::u32: f(Plain<uint32_t, int64_t>{}); return;
    case DType::i64: f(Plain<int64_t, int64_t>{}); return;
    case DType::u64: f(Plain<uint64_t, int64_t>{}); return;
    case DType::f16: f(Half{}); return;
    case DType::bf16: f(BFloat{}); return;
    case DType::f32: f(Plain<float, float>{}); return;
    case DType::f64: f(Plain<double, double>{}); return;
    case DType::c32:
    case DType::c64:
    case DType::c128:
    case DType::f8_e4m3fn:
    case DType::f8_e5m2:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
    case DType::f8_e8m0fnu: break;
  }
  fail("computing with tensors of ", dtype, " is not supported yet");
}

template <class From, class To>
void convert(void* out, const void* a, const void*, const void*, size_t n) {
  auto* x = static_cast<const From*>(a);
  auto* r = static_cast<To*>(out);
  for (size_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<To, uint8_t>) r[i] = x[i] != 0;
    else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, int64_t>) {
      // What x86 gives for what does not fit, on every machine.
      bool fits = x[i] >= From(-9223372036854775808.0) && x[i] < From(9223372036854775808.0);
      r[i] = fits ? static_cast<int64_t>(x[i]) : std::numeric_limits<int64_t>::min();
    } else r[i] = static_cast<To>(x[i]);
  }
}

template <class From>
BlockFn cast_from(Compute to) {
  switch (to) {
    case Compute::boolean: return convert<From, uint8_t>;
    case Compute::i64: return convert<From, int64_t>;
    case Compute::f32: return convert<From, float>;
    case Compute::f64: return convert<From, double>;
  }
  unreachable();
}

}  // namespace

size_t block_item(Compute compute) {
  switch (compute) {
    case Compute::boolean: return 1;
    case Compute::f32: return 4;
    case Compute::i64:
    case Compute::f64: return 8;
  }
  unreachable();
}

BlockFn cast_function(Compute from, Compute to) {
  switch (from) {
    case Compute::boolean: return cast_from<uint8_t>(to);
    case Compute::i64: return cast_from<int64_t>(to);
    case Compute::f32: return cast_from<float>(to);
    case Compute::f64: return cast_from<double>(to);
  }
  unreachable();
}

void load_block(DType dtype, const std::byte* from, int64_t stride, void* block, size_t n) {
  with_dtype(dtype, [&]<class D>(D) {
    auto* x = reinterpret_cast<const typename D::Stored*>(from);
    auto* r = static_cast<typename D::Computed*>(block);
    if (stride == 1)
      for (size_t i = 0; i < n; ++i) r[i] = D::load(x[i]);
    else if (stride == 0) {
      typename D::Computed value = D::load(x[0]);
      for (size_t i = 0; i < n; ++i) r[i] = value;
    } else
      for (size_t i = 0; i < n; ++i) r[i] = D::load(x[static_cast<int64_t>(i) * stride]);
  });
}

void store_block(DType dtype, const void* block, std::byte* to, int64_t stride, size_t n) {
  with_dtype(dtype, [&]<class D>(D) {
    auto* x = static_cast<const typename D::Computed*>(block);
    auto* r = reinterpret_cast<typename D::Stored*>(to);
    if (stride == 1)
      for (size_t i = 0; i < n; ++i) r[i] = D::store(x[i]);
    else
      for (size_t i = 0; i < n; ++i) r[static_cast<int64_t>(i) * stride] = D::store(x[i]);
  });
}

void gather_block(DType dtype, const std::byte* from, const int64_t* offsets, void* block, size_t n) {
  with_dtype(dtype, [&]<class D>(D) {
    auto* x = reinterpret_cast<const typename D::Stored*>(from);
    auto* r = static_cast<typename D::Computed*>(block);
    for (size_t i = 0; i < n; ++i) r[i] = D::load(x[offsets[i]]);
  });
}

void scatter_block(DType dtype, const void* block, std::byte* to, const int64_t* offsets, loop::Mode mode,
                   const uint8_t* where, size_t n) {
  with_dtype(dtype, [&]<class D>(D) {
    using C = typename D::Computed;
    auto* x = static_cast<const C*>(block);
    auto* r = reinterpret_cast<typename D::Stored*>(to);
    for (size_t i = 0; i < n; ++i) {
      if (where && !where[i]) continue;
      auto& cell = r[offsets[i]];
      C old = mode == loop::Mode::set ? C() : D::load(cell), value = x[i];
      switch (mode) {
        case loop::Mode::set: break;
        case loop::Mode::add: value = wrap_add(old, value); break;
        case loop::Mode::mul: value = wrap_mul(old, value); break;
        case loop::Mode::min: value = old != old ? old : value != value || value < old ? value : old; break;
        case loop::Mode::max: value = old != old ? old : value != value || value > old ? value : old; break;
      }
      cell = D::store(value);
    }
  });
}

void round_block(DType dtype, const void* block, void* out, size_t n) {
  with_dtype(dtype, [&]<class D>(D) {
    auto* x = static_cast<const typename D::Computed*>(block);
    auto* r = static_cast<typename D::Computed*>(out);
    for (size_t i = 0; i < n; ++i) r[i] = D::load(D::store(x[i]));
  });
}

}  // namespace tenon::interp
