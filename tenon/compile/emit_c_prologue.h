// What generated C starts with: names of types, the arguments of kernels, and the operations C has no operator for.
#pragma once

namespace tenon::compile {

constexpr const char* c_types = R"(typedef unsigned char b1;
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
)";

constexpr const char* c_args = R"(struct tenon_args {
  void* const* buffers;
  const i64* params;
  void* scratch;
};
)";

constexpr const char* c_operations = R"(#define HELPER static inline __attribute__((always_inline, unused))
HELPER i32 bits_i32(f32 x) { i32 r; __builtin_memcpy(&r, &x, 4); return r; }
HELPER f32 bits_f32(i32 x) { f32 r; __builtin_memcpy(&r, &x, 4); return r; }
HELPER i64 bits_i64(f64 x) { i64 r; __builtin_memcpy(&r, &x, 8); return r; }
HELPER f64 bits_f64(i64 x) { f64 r; __builtin_memcpy(&r, &x, 8); return r; }
HELPER i32 div_i32(i32 a, i32 b) { return b == 0 ? 0 : b == -1 ? -a : a / b; }
HELPER i64 div_i64(i64 a, i64 b) { return b == 0 ? 0 : b == -1 ? -a : a / b; }
HELPER i32 rem_i32(i32 a, i32 b) { return b == 0 || b == -1 ? 0 : a % b; }
HELPER i64 rem_i64(i64 a, i64 b) { return b == 0 || b == -1 ? 0 : a % b; }
HELPER i32 shift_left_i32(i32 a, i32 b) { return (u32)b < 32 ? (i32)((u32)a << b) : 0; }
HELPER i64 shift_left_i64(i64 a, i64 b) { return (u64)b < 64 ? (i64)((u64)a << b) : 0; }
HELPER i32 shift_right_i32(i32 a, i32 b) { return (u32)b < 32 ? (i32)((u32)a >> b) : 0; }
HELPER i64 shift_right_i64(i64 a, i64 b) { return (u64)b < 64 ? (i64)((u64)a >> b) : 0; }
HELPER i32 shift_sign_i32(i32 a, i32 b) { return a >> ((u32)b < 32 ? b : 31); }
HELPER i64 shift_sign_i64(i64 a, i64 b) { return a >> ((u64)b < 64 ? b : 63); }
HELPER i32 i32_from_f32(f32 x) { return x >= -0x1p31f && x < 0x1p31f ? (i32)x : (i32)0x80000000u; }
HELPER i32 i32_from_f64(f64 x) { return x > -0x1p31 - 1 && x < 0x1p31 ? (i32)x : (i32)0x80000000u; }
HELPER i64 i64_from_f32(f32 x) { return x >= -0x1p63f && x < 0x1p63f ? (i64)x : (i64)0x8000000000000000ull; }
HELPER i64 i64_from_f64(f64 x) { return x >= -0x1p63 && x < 0x1p63 ? (i64)x : (i64)0x8000000000000000ull; }
HELPER f32 scale_f32(f32 x, f32 n) {
  const f32 m = n < -252.0f ? -252.0f : n > 252.0f ? 252.0f : n;
  const i32 k = m != m ? 0 : (i32)m, h = k >> 1;
  return x * bits_f32((h + 127) << 23) * bits_f32((k - h + 127) << 23);
}
HELPER f64 scale_f64(f64 x, f64 n) {
  const f64 m = n < -2044.0 ? -2044.0 : n > 2044.0 ? 2044.0 : n;
  const i32 k = m != m ? 0 : (i32)m, h = k >> 1;
  return x * bits_f64((i64)(h + 1023) << 52) * bits_f64((i64)(k - h + 1023) << 52);
}
HELPER f32 bfloat_to_float(u16 x) { return bits_f32((i32)((u32)x << 16)); }
HELPER u16 float_to_bfloat(f32 x) {
  const u32 b = (u32)bits_i32(x);
  return x != x ? (u16)(b >> 16 | 0x40) : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
HELPER f32 half_to_float(u16 x) {
  const u32 rest = x & 0x7fff, sign = (u32)(x & 0x8000) << 16;
  const f32 denormal = (f32)(i32)rest * 0x1p-24f;
  const u32 normal = rest >= 0x7c00 ? 0x7f800000u | (rest & 0x3ff) << 13 : (rest << 13) + 0x38000000u;
  return bits_f32((i32)(sign | (rest < 0x400 ? (u32)bits_i32(denormal) : normal)));
}
HELPER u16 float_to_half(f32 x) {
  const u32 b = (u32)bits_i32(x), sign = b >> 16 & 0x8000, rest = b & 0x7fffffff;
  const u32 denormal = (u32)bits_i32(bits_f32((i32)rest) + 0.5f) - 0x3f000000u;
  const u32 normal = (rest + 0xfff + (rest >> 13 & 1) - 0x38000000u) >> 13;
  const u32 finite = rest < 0x38800000u ? denormal : normal;
  return (u16)(sign | (x != x ? 0x7e00 : rest >= 0x477ff000u ? 0x7c00 : finite));
}

)";

}  // namespace tenon::compile
