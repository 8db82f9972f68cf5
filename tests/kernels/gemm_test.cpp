// Every result is compared bit for bit with three plain loops, on every target this machine has, in memory that ends at
// a guard page and with iterations cut in several ways.
#include "kernels/gemm.h"

#include <cmath>
#include <limits>
#include <tuple>

#include "call.h"
#include "numbers.h"

namespace tenon::kernels {
namespace {

using Int = int64_t;
constexpr Int chunk = 768;

template <class T>
std::string named(const char* name) {
  return std::string(name) + (std::is_same_v<T, float> ? "_f32" : std::is_same_v<T, double> ? "_f64" : "_i64");
}
template <class T>
T multiply_add(T a, T b, T c) {
  if constexpr (std::is_same_v<T, Int>)
    return static_cast<Int>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c));
  else return std::fma(a, b, c);
}
template <class T>
T add(T a, T b) {
  if constexpr (std::is_same_v<T, Int>) return static_cast<Int>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else return a + b;
}

struct Strides {
  Int batch, row, column;
  Int span(Int b, Int m, Int n) const {
    return b * m * n == 0 ? 0 : (b - 1) * batch + (m - 1) * row + (n - 1) * column + 1;
  }
  Int at(Int b, Int i, Int j) const { return b * batch + i * row + j * column; }
};
Strides rows(Int m, Int n) { return {m * n, n, 1}; }
Strides columns(Int m, Int n) { return {m * n, 1, m}; }

struct Case {
  Int batch, m, n, k;
  Strides a, b, out;
  double alpha = 1, beta = 0;
  bool bias = false, relu = false;
  enum { no_residual, other, own } residual = no_residual;
};
Case plain(Int m, Int n, Int k) { return {1, m, n, k, rows(m, k), rows(k, n), rows(m, n)}; }

template <class T>
std::vector<T> numbers(Int count, Numbers& from) {
  if constexpr (std::is_same_v<T, Int>) {
    std::vector<Int> out(static_cast<size_t>(count));
    for (Int& x : out) x = static_cast<Int>(from.bits() << 31 ^ from.bits());
    return out;
  } else return from.vector<T>(count);
}

template <class T>
void check(const Case& c) {
  SCOPED_TRACE(testing::Message() << named<T>("") << " " << c.batch << " x " << c.m << " x " << c.n << " x " << c.k);
  Numbers from(static_cast<uint64_t>(c.m * 31 + c.n * 7 + c.k));
  const auto a = numbers<T>(c.a.span(c.batch, c.m, c.k), from), b = numbers<T>(c.b.span(c.batch, c.k, c.n), from);
  const auto out = numbers<T>(c.out.span(c.batch, c.m, c.n), from), bias = numbers<T>(c.n, from);
  const auto other = numbers<T>(c.batch * c.m * c.n, from);
  const Strides residual = c.residual == Case::own ? c.out : rows(c.m, c.n);

  std::vector<T> expected = out;
  for (Int e = 0; e < c.batch; ++e)
    for (Int i = 0; i < c.m; ++i)
      for (Int j = 0; j < c.n; ++j) {
        const Int chunks = std::max<Int>(1, (c.k + chunk - 1) / chunk), length = (c.k + chunks - 1) / chunks;
        T sum = 0;
        for (Int first = 0, n = 0; n < chunks; ++n, first += length) {
          T part = 0;
          for (Int p = first; p < std::min(c.k, first + length); ++p)
            part = multiply_add(a[c.a.at(e, i, p)], b[c.b.at(e, p, j)], part);
          sum = n == 0 ? part : add(sum, part);
        }
        if constexpr (!std::is_same_v<T, Int>) {
          sum *= static_cast<T>(c.alpha);
          if (c.beta != 0) sum += out[c.out.at(e, i, j)] * static_cast<T>(c.beta);
        }
        if (c.bias) sum = add(sum, bias[j]);
        if (c.residual != Case::no_residual)
          sum = add(sum, (c.residual == Case::own ? out : other)[residual.at(e, i, j)]);
        if (c.relu && sum < 0) sum = 0;
        expected[c.out.at(e, i, j)] = sum;
      }

  const Int panels = (c.n + 15) / 16;
  const bool shared = c.b.batch == 0;
  Guarded<T> left(a), right(b), packed(static_cast<size_t>((shared ? 1 : c.batch) * panels * c.k * 16)), row(bias),
      more(other);
  for (tenon_target target : targets()) {
    KernelCall pack{named<T>("gemm_pack"), {right.data(), packed.data()}, {}, (shared ? 1 : c.batch) * panels, 2, 0};
    pack.params = words(GemmPackParams{.batch = shared ? 1 : c.batch,
                                       .k = c.k,
                                       .n = c.n,
                                       .from_batch = c.b.batch,
                                       .from_row = c.b.row,
                                       .from_column = c.b.column,
                                       .to_batch = panels * c.k * 16});
    EXPECT_EQ(pack.run(target), 0);
    for (bool is_packed : {true, false})
      for (Int grain : {1, 3, 1000}) {
        Guarded<T> result(out);
        GemmParams p{.batch = c.batch, .m = c.m, .n = c.n, .k = c.k, .alpha = c.alpha, .beta = c.beta};
        p.flags = (c.bias ? epilogue_bias : 0) | (c.residual ? epilogue_residual : 0) | (c.relu ? epilogue_relu : 0);
        p.a_batch = c.a.batch, p.a_row = c.a.row, p.a_column = c.a.column;
        p.b_batch = is_packed ? (shared ? 0 : panels * c.k * 16) : c.b.batch;
        p.b_row = c.b.row, p.b_column = c.b.column;
        p.out_batch = c.out.batch, p.out_row = c.out.row, p.out_column = c.out.column;
        p.bias_step = 1;
        p.residual_batch = residual.batch, p.residual_row = residual.row, p.residual_column = residual.column;
        const Int width = gemm_columns(c.m, c.n, c.k);
        KernelCall call{named<T>(is_packed ? "gemm" : "gemm_unpacked"),
                        {left.data(), is_packed ? packed.data() : right.data(), result.data()},
                        words(p),
                        c.batch * gemm_row_blocks(c.m) * ((c.n + width - 1) / width),
                        grain,
                        (is_packed ? gemm_scratch : gemm_unpacked_scratch) * Int{sizeof(T)}};
        if (c.bias) call.buffers.push_back(row.data());
        if (c.residual) call.buffers.push_back(c.residual == Case::own ? result.data() : more.data());
        EXPECT_EQ(call.run(target), 0);
        ASSERT_EQ(std::memcmp(result.data(), expected.data(), expected.size() * sizeof(T)), 0)
            << "target " << target << (is_packed ? ", packed" : ", not packed") << ", grain " << grain;
      }
  }
}
void check_all(const Case& c) {
  check<float>(c);
  check<double>(c);
  check<Int>(c);
}

TEST(Gemm, SumsOfAnySizeAreTheThreeLoops) {
  for (Int m : {1, 2, 5, 7, 13})
    for (Int n : {1, 15, 17, 40, 80})
      for (Int k : {1, 3, 17}) check_all(plain(m, n, k));
}

TEST(Gemm, BlocksOfRowsAndColumnsMeetWithoutSeam) {
  check_all(plain(49, 200, 9));
  check_all(plain(97, 48, 5));
  check_all(plain(50, 391, 3));
  check<float>(plain(96, 192, 130));
  check<float>(plain(57, 170, 1600));  // blocks of 48 columns
}

TEST(Gemm, TilesOfEveryWidthEndWithTheLastPanel) {
  for (Int m : {1, 2, 6, 8})
    for (Int panels = 1; panels <= 13; ++panels)
      for (Int missing : {0, 3}) check_all(plain(m, 16 * panels - missing, 2));
}

TEST(Gemm, LongSumsAreMadeOfChunksThatFollowFromTheirLength) {
  for (Int k : {767, 768, 769, 1600}) check_all(plain(3, 18, k));
  Case c = plain(9, 33, 1000);
  c.bias = c.relu = true;
  check_all(c);
}

TEST(Gemm, EveryStrideMayBeFree) {
  for (Strides a : {rows(10, 21), columns(10, 21), Strides{0, 50, 2}})
    for (Strides b : {rows(21, 35), columns(21, 35), Strides{0, 71, 2}})
      for (Strides out : {rows(10, 35), columns(10, 35), Strides{900, 80, 2}}) check_all({2, 10, 35, 21, a, b, out});
}

TEST(Gemm, ABatchMayShareASide) {
  check_all({3, 4, 20, 6, rows(4, 6), {0, 20, 1}, rows(4, 20)});
  check_all({3, 4, 20, 6, {0, 6, 1}, rows(6, 20), rows(4, 20)});
}

TEST(Gemm, TheResultIsScaledAndAddedToWhatIsThere) {
  for (Int k : {5, 1000}) {
    Case c = plain(11, 50, k);
    c.alpha = -1.75, c.beta = 0.3;
    check<float>(c);
    check<double>(c);
    c.beta = 0;
    check<float>(c);
  }
}

TEST(Gemm, TheEpilogueAddsBiasAndResidualAndCutsBelowZero) {
  for (Int k : {6, 900})
    for (auto residual : {Case::no_residual, Case::other, Case::own})
      for (bool relu : {false, true})
        for (Int n : {32, 45}) {
          Case c = plain(10, n, k);
          c.bias = true, c.relu = relu, c.residual = residual;
          check_all(c);
          c.bias = false;
          check<float>(c);
        }
}

TEST(Gemm, NoTermsGiveZerosAndTheEpilogue) {
  Case c = plain(3, 20, 0);
  check_all(c);
  c.bias = true;
  check_all(c);
}

TEST(Gemm, WhatIsNotReadMayBeAnything) {
  Guarded<float> a(std::vector<float>{1, 2}), packed(std::vector<float>(32, 1.0f));
  Guarded<float> out(std::vector<float>{std::numeric_limits<float>::quiet_NaN()});
  GemmParams p{
      .batch = 1, .m = 1, .n = 1, .k = 2, .alpha = 1, .a_row = 2, .a_column = 1, .out_row = 1, .out_column = 1};
  for (tenon_target target : targets()) {
    KernelCall call{"gemm_f32", {a.data(), packed.data(), out.data()}, words(p), 1, 1, gemm_scratch * 4};
    call.run(target);
    EXPECT_EQ(out.data()[0], 3.0f);
  }
}

TEST(Gemm, ReluKeepsNaN) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  Guarded<float> a(std::vector<float>{nan}), packed(std::vector<float>(16, 1.0f)), out(16);
  for (Int n : {1, 16})
    for (tenon_target target : targets()) {
      GemmParams p{.batch = 1, .m = 1, .n = n, .k = 1, .flags = epilogue_relu, .alpha = 1, .a_row = 1, .a_column = 1};
      p.out_row = n, p.out_column = 1;
      KernelCall call{"gemm_f32", {a.data(), packed.data(), out.data()}, words(p), 1, 1, gemm_scratch * 4};
      call.run(target);
      EXPECT_TRUE(std::isnan(out.data()[0]));
    }
}

/// Round to nearest of all halves, by the definition of the formats.
double value_of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}
double value_of_bfloat(uint16_t bits) {
  const int exponent = bits >> 7 & 255, fraction = bits & 127;
  const double magnitude = exponent == 255 ? (fraction != 0 ? NAN : INFINITY)
                           : exponent == 0 ? std::ldexp(fraction, -133)
                                           : std::ldexp(128 + fraction, exponent - 134);
  return bits >> 15 ? -magnitude : magnitude;
}

struct HalfFormat {
  const char* name;
  double (*value)(uint16_t);
  size_t columns[16];  // of a panel, as they lie
  size_t slot(size_t i) const {
    return i / 16 * 16 + static_cast<size_t>(std::find(columns, columns + 16, i % 16) - columns);
  }
};
const HalfFormat half_formats[] = {{"f16", value_of_half, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
                                   {"bf16", value_of_bfloat, {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15}}};

TEST(Gemm, WeightsArePackedRoundedToHalfPrecision) {
  for (const HalfFormat& format : half_formats) {
    std::vector<float> from;
    std::vector<uint16_t> wanted;
    auto add = [&](double x, uint16_t rounded) {
      for (bool negative : {false, true}) {
        from.push_back(static_cast<float>(negative ? -x : x));
        wanted.push_back(static_cast<uint16_t>(rounded | (negative ? 0x8000 : 0)));
      }
    };
    uint16_t bits = 0;
    for (; std::isfinite(format.value(static_cast<uint16_t>(bits + 1))); ++bits) {
      const double low = format.value(bits), high = format.value(static_cast<uint16_t>(bits + 1));
      const double middle = (low + high) / 2, nearly = (high - low) / 64;
      add(low, bits);
      add(middle, static_cast<uint16_t>(bits + bits % 2));
      add(middle - nearly, bits);
      add(middle + nearly, static_cast<uint16_t>(bits + 1));
    }
    add(INFINITY, static_cast<uint16_t>(bits + 1));
    from.resize((from.size() + 15) / 16 * 16, 0.0f);
    wanted.resize(from.size(), 0);
    Guarded<float> source(from);
    Guarded<uint16_t> to(from.size());
    GemmPackParams p{.batch = 1, .k = static_cast<Int>(from.size() / 16), .n = 16, .from_row = 16, .from_column = 1};
    for (tenon_target target : targets()) {
      KernelCall call{std::string("gemm_pack_f32_") + format.name, {source.data(), to.data()}, words(p), 1, 1, 0};
      EXPECT_EQ(call.run(target), 0);
      for (size_t i = 0; i < from.size(); ++i)
        ASSERT_EQ(to.data()[format.slot(i)], wanted[i])
            << format.name << " " << double(from[i]) << ", target " << target;
    }
  }
}

TEST(Gemm, EveryNumberOfHalfPrecisionIsMultipliedAsItself) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  Guarded<uint16_t> right(all), packed(all.size());
  Guarded<float> left(std::vector<float>{1}), out(all.size());
  GemmParams p{.batch = 1, .m = 1, .n = 65536, .k = 1, .alpha = 1, .a_row = 1, .a_column = 1};
  p.out_row = 65536, p.out_column = 1;
  for (const HalfFormat& format : half_formats)
    for (tenon_target target : targets()) {
      GemmPackParams pack{.batch = 1, .k = 1, .n = 65536, .from_row = 65536, .from_column = 1};
      KernelCall{std::string("gemm_pack_") + format.name, {right.data(), packed.data()}, words(pack), 4096, 7, 0}.run(
          target);
      KernelCall call{std::string("gemm_f32_") + format.name,
                      {left.data(), packed.data(), out.data()},
                      words(p),
                      65536 / gemm_few_columns,
                      3,
                      gemm_scratch * 4};
      EXPECT_EQ(call.run(target), 0);
      for (size_t i = 0; i < all.size(); ++i) {
        const double wanted = format.value(all[i]), got = double(out.data()[i]);
        ASSERT_TRUE(wanted == got || (std::isnan(wanted) && std::isnan(got))) << format.name << " " << i;
      }
    }
}

TEST(Gemm, WeightsOfHalfPrecisionGiveTheBitsOfTheSameWeightsInF32) {
  for (const HalfFormat& format : half_formats)
    for (auto [m, n, k] : {std::tuple<Int, Int, Int>{1, 10, 1700},
                           {1, 300, 900},
                           {2, 48, 31},
                           {5, 70, 769},
                           {13, 33, 64},
                           {57, 100, 200},
                           {60, 400, 700},
                           {3, 20, 0}}) {
      Numbers from(static_cast<uint64_t>(m + n + k));
      const Int panels = (n + 15) / 16, count = panels * k * 16;
      std::vector<float> wide(static_cast<size_t>(count));
      std::vector<uint16_t> half(static_cast<size_t>(count));
      for (size_t i = 0; i < half.size(); ++i) {
        uint16_t& bits = half[format.slot(i)];
        do bits = static_cast<uint16_t>(from.bits());
        while (!(std::abs(format.value(bits)) < 4));
        wide[i] = static_cast<float>(format.value(bits));
      }
      Guarded<float> left(from.vector<float>(m * k)), bias(from.vector<float>(n)), residual(from.vector<float>(m * n));
      Guarded<float> packed_wide(wide), out(static_cast<size_t>(m * n)), expected(static_cast<size_t>(m * n));
      Guarded<uint16_t> packed_half(half);
      GemmParams p{.batch = 1, .m = m, .n = n, .k = k, .flags = epilogue_bias | epilogue_residual, .alpha = 1.25};
      p.a_row = k, p.a_column = 1, p.out_row = p.residual_row = n, p.out_column = p.residual_column = p.bias_step = 1;
      const Int width = gemm_columns(m, n, k), extent = gemm_row_blocks(m) * ((n + width - 1) / width);
      for (tenon_target target : targets()) {
        auto run = [&](const std::string& name, void* right, Guarded<float>& to) {
          KernelCall call{name,     {left.data(), right, to.data(), bias.data(), residual.data()},
                          words(p), extent,
                          2,        gemm_scratch * 4};
          EXPECT_EQ(call.run(target), 0);
        };
        run("gemm_f32", packed_wide.data(), expected);
        run(std::string("gemm_f32_") + format.name, packed_half.data(), out);
        ASSERT_EQ(out.values(), expected.values()) << format.name << " " << m << " x " << n << " x " << k;
      }
    }
}

}  // namespace
}  // namespace tenon::kernels
