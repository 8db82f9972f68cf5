// Rounding to whole numbers where the target has no instruction for it; elsewhere compilers write the instruction.
namespace {

template <class T>
constexpr T whole = 0;  // from here on every number is whole
template <>
constexpr float whole<float> = 0x1p23f;
template <>
constexpr double whole<double> = 0x1p52;

float with_sign(float magnitude, float sign) { return __builtin_copysignf(magnitude, sign); }
double with_sign(double magnitude, double sign) { return __builtin_copysign(magnitude, sign); }

template <class T>
T nearest(T x) {
  T magnitude = x < 0 ? -x : x;
  if (!(magnitude < whole<T>)) return x;
  volatile T shifted = magnitude + whole<T>;  // no compiler may see through it
  return with_sign(shifted - whole<T>, x);
}
template <class T>
T down(T x) {
  T r = nearest(x);
  return with_sign(r > x ? r - 1 : r, x);
}
template <class T>
T up(T x) {
  T r = nearest(x);
  return with_sign(r < x ? r + 1 : r, x);
}
template <class T>
T towards_zero(T x) {
  return x < 0 ? up(x) : down(x);
}

}  // namespace

extern "C" {
float rintf(float x) { return nearest(x); }
double rint(double x) { return nearest(x); }
float nearbyintf(float x) { return nearest(x); }
double nearbyint(double x) { return nearest(x); }
float floorf(float x) { return down(x); }
double floor(double x) { return down(x); }
float ceilf(float x) { return up(x); }
double ceil(double x) { return up(x); }
float truncf(float x) { return towards_zero(x); }
double trunc(double x) { return towards_zero(x); }
}
