/* The evaluator of expressions, and arithmetic on sizes. */
#include "internal.h"

static double whole_toward_zero(double value) {
  if (!(value > -4503599627370496.0 && value < 4503599627370496.0)) return value; /* whole already, or not a number */
  return (double)(int64_t)value;
}
static double whole_down(double value) {
  double whole = whole_toward_zero(value);
  return whole > value ? whole - 1 : whole;
}
static double whole_up(double value) {
  double whole = whole_toward_zero(value);
  return whole < value ? whole + 1 : whole;
}
static double whole_nearest(double value) {
  double below = whole_down(value), rest = value - below;
  if (rest < 0.5) return below;
  if (rest > 0.5) return below + 1;
  return below / 2 == whole_down(below / 2) ? below : below + 1;
}

/* The instruction: sqrt may be a function of libm, which we do not link. */
static double square_root(double value) {
#if defined(__x86_64__)
  __asm__("sqrtsd %1, %0" : "=x"(value) : "x"(value));
  return value;
#elif defined(__aarch64__)
  __asm__("fsqrt %d0, %d1" : "=w"(value) : "w"(value));
  return value;
#else
  return __builtin_sqrt(value);
#endif
}

static bool floor_divide(int64_t a, int64_t b, int64_t* quotient, int64_t* remainder) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  *quotient = a / b;
  *remainder = a % b;
  if (*remainder != 0 && (*remainder < 0) != (b < 0)) {
    *quotient -= 1;
    *remainder += b;
  }
  return true;
}

static bool power(int64_t base, int64_t exponent, int64_t* result) {
  if (exponent < 0) return false;
  *result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(*result, base, result)) return false;
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return false;
  }
  return true;
}

const char* tn_evaluate(const struct tn_tables* tables, uint32_t expr, const tn_value* symbols, tn_value* value) {
  static const char overflow[] = "an integer beyond 64 bits", by_zero[] = "a division by zero",
                    shift[] = "a shift by more bits than there are", whole[] = "a number beyond 64-bit integers";
  tn_value stack[TENON_MAX_DEPTH];
  uint32_t top = 0; /* verified: never above TENON_MAX_DEPTH, never below what an operation takes */
  const int64_t* word = tables->words + tables->exprs[expr].words.first;
  const int64_t* end = word + tables->exprs[expr].words.count;
#define A stack[top - 2]
#define B stack[top - 1]
  for (; word < end; ++word) {
    int64_t operand = *word >> 8, quotient, remainder;
    switch ((enum tenon_opcode)(*word & 0xff)) {
      case TENON_OP_CONST: stack[top++].i = operand; break;
      case TENON_OP_CONST_WIDE: stack[top++].i = *++word; break;
      case TENON_OP_CONST_REAL: stack[top++].i = *++word; break;
      case TENON_OP_SYMBOL: stack[top++] = symbols[operand]; break;
      case TENON_OP_ADD:
        if (__builtin_add_overflow(A.i, B.i, &A.i)) return overflow;
        --top;
        break;
      case TENON_OP_SUB:
        if (__builtin_sub_overflow(A.i, B.i, &A.i)) return overflow;
        --top;
        break;
      case TENON_OP_MUL:
        if (__builtin_mul_overflow(A.i, B.i, &A.i)) return overflow;
        --top;
        break;
      case TENON_OP_FLOOR_DIV:
        if (!floor_divide(A.i, B.i, &quotient, &remainder)) return B.i ? overflow : by_zero;
        A.i = quotient;
        --top;
        break;
      case TENON_OP_CEIL_DIV:
        if (!floor_divide(A.i, B.i, &quotient, &remainder)) return B.i ? overflow : by_zero;
        A.i = quotient + (remainder != 0); /* a quotient that was rounded is far from the limits */
        --top;
        break;
      case TENON_OP_MOD:
        if (B.i == -1) remainder = 0;
        else if (!floor_divide(A.i, B.i, &quotient, &remainder)) return by_zero;
        A.i = remainder;
        --top;
        break;
      case TENON_OP_NEG:
        if (__builtin_sub_overflow((int64_t)0, B.i, &B.i)) return overflow;
        break;
      case TENON_OP_MIN:
        if (B.i < A.i) A.i = B.i;
        --top;
        break;
      case TENON_OP_MAX:
        if (B.i > A.i) A.i = B.i;
        --top;
        break;
      case TENON_OP_POW:
        if (!power(A.i, B.i, &quotient)) return B.i < 0 ? "a negative exponent" : overflow;
        A.i = quotient;
        --top;
        break;
      case TENON_OP_AND:
        A.i &= B.i;
        --top;
        break;
      case TENON_OP_OR:
        A.i |= B.i;
        --top;
        break;
      case TENON_OP_SHL:
        if (B.i < 0 || B.i > 62) return shift;
        if (__builtin_mul_overflow(A.i, (int64_t)1 << B.i, &A.i)) return overflow;
        --top;
        break;
      case TENON_OP_SHR:
        if (B.i < 0 || B.i > 63) return shift;
        A.i >>= B.i;
        --top;
        break;
      case TENON_OP_EQ:
        A.i = A.i == B.i;
        --top;
        break;
      case TENON_OP_NE:
        A.i = A.i != B.i;
        --top;
        break;
      case TENON_OP_LT:
        A.i = A.i < B.i;
        --top;
        break;
      case TENON_OP_LE:
        A.i = A.i <= B.i;
        --top;
        break;
      case TENON_OP_NOT: B.i = !B.i; break;
      case TENON_OP_SELECT:
        stack[top - 3] = stack[top - 3].i ? A : B;
        top -= 2;
        break;
      case TENON_OP_TO_REAL: B.d = (double)B.i; break;
      case TENON_OP_REAL_ADD:
        A.d += B.d;
        --top;
        break;
      case TENON_OP_REAL_SUB:
        A.d -= B.d;
        --top;
        break;
      case TENON_OP_REAL_MUL:
        A.d *= B.d;
        --top;
        break;
      case TENON_OP_REAL_DIV:
        A.d /= B.d;
        --top;
        break;
      case TENON_OP_REAL_NEG: B.d = -B.d; break;
      case TENON_OP_REAL_MIN:
        A.d = A.d < B.d ? A.d : B.d;
        --top;
        break;
      case TENON_OP_REAL_MAX:
        A.d = A.d > B.d ? A.d : B.d;
        --top;
        break;
      case TENON_OP_REAL_SQRT: B.d = square_root(B.d); break;
      case TENON_OP_REAL_EQ:
        A.i = A.d == B.d;
        --top;
        break;
      case TENON_OP_REAL_LT:
        A.i = A.d < B.d;
        --top;
        break;
      case TENON_OP_REAL_LE:
        A.i = A.d <= B.d;
        --top;
        break;
      case TENON_OP_TRUNC:
      case TENON_OP_FLOOR:
      case TENON_OP_CEIL:
      case TENON_OP_ROUND: {
        double number = B.d;
        switch (*word & 0xff) {
          case TENON_OP_FLOOR: number = whole_down(number); break;
          case TENON_OP_CEIL: number = whole_up(number); break;
          case TENON_OP_ROUND: number = whole_nearest(number); break;
          default: number = whole_toward_zero(number); break;
        }
        if (!(number >= -9223372036854775808.0 && number < 9223372036854775808.0)) return whole;
        B.i = (int64_t)number;
        break;
      }
    }
  }
#undef A
#undef B
  *value = stack[0];
  return NULL;
}

bool tn_extent(int32_t rank, const int64_t* sizes, const int64_t* strides, uint64_t item, uint64_t* bytes) {
  uint64_t last = 0;
  bool empty = false;
  for (int32_t d = 0; d < rank; ++d) {
    if (sizes[d] < 0 || (sizes[d] > 1 && strides[d] < 0)) return false;
    empty |= sizes[d] == 0;
  }
  if (empty) {
    *bytes = 0;
    return true;
  }
  for (int32_t d = 0; d < rank; ++d) {
    uint64_t reach;
    if (sizes[d] == 1) continue;
    if (__builtin_mul_overflow((uint64_t)(sizes[d] - 1), (uint64_t)strides[d], &reach)) return false;
    if (__builtin_add_overflow(last, reach, &last)) return false;
  }
  if (last == UINT64_MAX || __builtin_mul_overflow(last + 1, item, &last) || last > INT64_MAX) return false;
  *bytes = last;
  return true;
}

bool tn_contiguous_strides(int32_t rank, const int64_t* sizes, int64_t* strides) {
  int64_t stride = 1;
  for (int32_t d = rank - 1; d >= 0; --d) {
    strides[d] = stride;
    if (sizes[d] < 0 || (sizes[d] > 1 && __builtin_mul_overflow(stride, sizes[d], &stride))) return false;
  }
  return true;
}

bool tn_is_contiguous(const tenon_tensor* tensor) {
  int64_t stride = 1;
  for (int32_t d = 0; d < tensor->rank; ++d)
    if (tensor->sizes[d] == 0) return true;
  for (int32_t d = tensor->rank - 1; d >= 0; --d) {
    if (tensor->sizes[d] == 1) continue;
    if (tensor->strides[d] != stride) return false;
    if (__builtin_mul_overflow(stride, tensor->sizes[d], &stride)) return false;
  }
  return true;
}
