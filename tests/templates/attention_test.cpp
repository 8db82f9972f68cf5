#include "tenon/templates/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "numbers.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;

struct Case {
  Int batch, heads, key_heads, queries, keys, width, value_width;
  bool causal;
  int mask;  // 0: none, 1: added, 2: kept or not, 3: added, the same for all heads
};

const Case cases[] = {{1, 1, 1, 1, 1, 1, 1, false, 0},      {2, 3, 3, 5, 7, 8, 8, false, 0},
                      {1, 2, 2, 130, 130, 16, 16, true, 0}, {2, 4, 2, 100, 33, 20, 12, false, 1},
                      {1, 6, 2, 17, 200, 64, 64, true, 0},  {1, 2, 2, 200, 50, 8, 24, true, 0},
                      {2, 2, 1, 99, 40, 33, 7, false, 2},   {1, 4, 4, 12, 12, 32, 32, false, 3},
                      {1, 2, 2, 3, 0, 4, 5, false, 0},      {2, 2, 2, 0, 4, 4, 5, false, 0}};

/// All operands of one case; turned: positions before heads in memory, as after splitting a projection.
template <class T>
struct Problem {
  Case c;
  AttentionArgs<T> args;
  std::vector<T> q, k, v, out, lse, dout, dq, dk, dv, mask;
  std::vector<unsigned char> keep;
  Heads<T> out_at, dq_at, dk_at, dv_at;
  Heads<const T> dout_at;
  Int lse_stride[3];

  Problem(const Case& c, bool turned) : c(c) {
    Numbers numbers(11);
    auto make = [&](std::vector<T>& memory, Int heads, Int rows, Int width, auto& at) {
      memory = numbers.vector<T>(c.batch * heads * rows * width);
      at.data = memory.data();
      const Int stride[4] = {heads * rows * width, turned ? width : rows * width, turned ? heads * width : width, 1};
      for (int i = 0; i < 4; ++i) at.stride[i] = stride[i];
    };
    args.batch = c.batch, args.heads = c.heads, args.key_heads = c.key_heads, args.queries = c.queries;
    args.keys = c.keys, args.width = c.width, args.value_width = c.value_width, args.causal = c.causal;
    args.scale = static_cast<T>(1.3 / std::sqrt(static_cast<double>(c.width)));
    make(q, c.heads, c.queries, c.width, args.q);
    make(k, c.key_heads, c.keys, c.width, args.k);
    make(v, c.key_heads, c.keys, c.value_width, args.v);
    make(out, c.heads, c.queries, c.value_width, out_at);
    make(dout, c.heads, c.queries, c.value_width, dout_at);
    make(dq, c.heads, c.queries, c.width, dq_at);
    make(dk, c.key_heads, c.keys, c.width, dk_at);
    make(dv, c.key_heads, c.keys, c.value_width, dv_at);
    lse.resize(static_cast<std::size_t>(c.batch * c.heads * c.queries));
    lse_stride[0] = c.heads * c.queries, lse_stride[1] = c.queries, lse_stride[2] = 1;
    const Int strides[4] = {c.mask == 3 ? 0 : c.heads * c.queries * c.keys, c.mask == 3 ? 0 : c.queries * c.keys,
                            c.keys, 1};
    for (int i = 0; i < 4; ++i) args.mask_stride[i] = strides[i];
    const Int size = c.batch * c.heads * c.queries * c.keys;
    if (c.mask == 1 || c.mask == 3) {
      mask = numbers.vector<T>(size);
      for (T& x : mask)
        if (numbers.below(5) == 0) x = -std::numeric_limits<T>::infinity();
      for (Int j = 0; j < c.keys; ++j) mask[static_cast<std::size_t>(c.keys + j)] = -std::numeric_limits<T>::infinity();
      args.mask = mask.data();
    } else if (c.mask == 2) {
      keep.resize(static_cast<std::size_t>(size));
      for (auto& x : keep) x = numbers.below(3) != 0;
      for (Int j = 0; j < c.keys; ++j) keep[static_cast<std::size_t>(c.keys + j)] = 0;
      args.keep = keep.data();
    }
  }

  void run() {
    attention(args, out_at, lse.data(), lse_stride);
    AttentionGradient<T> g;
    g.out_gradient = dout_at;
    g.out.data = out_at.data;
    for (int i = 0; i < 4; ++i) g.out.stride[i] = out_at.stride[i];
    g.logsumexp = lse.data();
    for (int i = 0; i < 3; ++i) g.logsumexp_stride[i] = lse_stride[i];
    g.q = dq_at, g.k = dk_at, g.v = dv_at;
    attention_gradient(args, g);
  }
};

template <class H>
double at(const H& h, Int b, Int head, Int row, Int col) {
  return static_cast<double>(h.data[b * h.stride[0] + head * h.stride[1] + row * h.stride[2] + col * h.stride[3]]);
}

template <class T>
void check(const Case& c, bool turned) {
  Problem<T> p(c, turned);
  p.run();
  const AttentionArgs<T>& a = p.args;
  // Scores are sums of `width` terms of size one; their error enters as a factor 1 + error, then sums over keys.
  const double eps = std::numeric_limits<T>::epsilon();
  const double bound = 8 * eps * static_cast<double>(c.width + c.value_width + c.keys + 8);
  const Int group = c.heads / c.key_heads;
  std::vector<double> dk(p.dk.size()), dv(p.dv.size());
  for (Int b = 0; b < c.batch; ++b)
    for (Int h = 0; h < c.heads; ++h)
      for (Int i = 0; i < c.queries; ++i) {
        std::vector<double> prob(static_cast<std::size_t>(c.keys));
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (Int j = 0; j < c.keys; ++j) {
          double score = 0;
          for (Int e = 0; e < c.width; ++e) score += at(a.q, b, h, i, e) * at(a.k, b, h / group, j, e);
          score *= static_cast<double>(a.scale);
          const Int m = b * a.mask_stride[0] + h * a.mask_stride[1] + i * a.mask_stride[2] + j * a.mask_stride[3];
          if (a.mask) score += static_cast<double>(a.mask[m]);
          if ((a.keep && !a.keep[m]) || (c.causal && j > i)) score = -std::numeric_limits<double>::infinity();
          prob[static_cast<std::size_t>(j)] = score;
          most = std::fmax(most, score);
        }
        for (double& x : prob) sum += x = std::isinf(most) ? 0 : std::exp(x - most);
        for (double& x : prob) x = sum == 0 ? 0 : x / sum;
        const double lse = sum == 0 ? 0 : most + std::log(sum);
        ASSERT_NEAR(p.lse[static_cast<std::size_t>((b * c.heads + h) * c.queries + i)], lse,
                    bound * (1 + std::fabs(lse)));
        double mean = 0;
        for (Int f = 0; f < c.value_width; ++f) {
          double value = 0;
          for (Int j = 0; j < c.keys; ++j) value += prob[static_cast<std::size_t>(j)] * at(a.v, b, h / group, j, f);
          ASSERT_NEAR(at(p.out_at, b, h, i, f), value, bound) << "output " << b << " " << h << " " << i << " " << f;
          mean += value * at(p.dout_at, b, h, i, f);
        }
        std::vector<double> dq(static_cast<std::size_t>(c.width));
        for (Int j = 0; j < c.keys; ++j) {
          const double weight = prob[static_cast<std::size_t>(j)];
          double slope = -mean;
          for (Int f = 0; f < c.value_width; ++f) {
            slope += at(p.dout_at, b, h, i, f) * at(a.v, b, h / group, j, f);
            dv[static_cast<std::size_t>(b * p.dv_at.stride[0] + h / group * p.dv_at.stride[1] + j * p.dv_at.stride[2] +
                                        f)] += weight * at(p.dout_at, b, h, i, f);
          }
          slope *= weight * static_cast<double>(a.scale);
          for (Int e = 0; e < c.width; ++e) {
            dq[static_cast<std::size_t>(e)] += slope * at(a.k, b, h / group, j, e);
            dk[static_cast<std::size_t>(b * p.dk_at.stride[0] + h / group * p.dk_at.stride[1] + j * p.dk_at.stride[2] +
                                        e)] += slope * at(a.q, b, h, i, e);
          }
        }
        for (Int e = 0; e < c.width; ++e)
          ASSERT_NEAR(at(p.dq_at, b, h, i, e), dq[static_cast<std::size_t>(e)],
                      bound * static_cast<double>(c.value_width))
              << "query gradient";
      }
  const double grown = bound * static_cast<double>(group * (c.queries + 1) * c.value_width);
  for (std::size_t i = 0; i < dk.size(); ++i) ASSERT_NEAR(p.dk[i], dk[i], grown) << "key gradient at " << i;
  for (std::size_t i = 0; i < dv.size(); ++i) ASSERT_NEAR(p.dv[i], dv[i], grown) << "value gradient at " << i;
}

TEST(Attention, ForwardAndGradientAgreeWithPlainLoops) {
  for (const Case& c : cases)
    for (bool turned : {false, true}) {
      SCOPED_TRACE(testing::Message() << c.queries << " queries, " << c.keys << " keys, mask " << c.mask);
      check<float>(c, turned);
      check<double>(c, turned);
      if (HasFatalFailure()) return;
    }
}

TEST(Attention, QueryThatSeesNoKeyGetsZerosEvenBesideInfiniteValues) {
  Problem<float> p({1, 1, 1, 4, 6, 8, 5, false, 2}, false);
  p.v[0] = std::numeric_limits<float>::infinity();
  attention(p.args, p.out_at, p.lse.data(), p.lse_stride);
  for (Int f = 0; f < 5; ++f) EXPECT_EQ(at(p.out_at, 0, 0, 1, f), 0);  // the mask's second row keeps nothing
  EXPECT_EQ(p.lse[1], 0);
}

TEST(Attention, NanInOneQueryStaysInItsRow) {
  Problem<float> p({1, 1, 1, 4, 40, 8, 5, false, 0}, false);
  p.q[8] = std::numeric_limits<float>::quiet_NaN();
  attention(p.args, p.out_at, p.lse.data(), p.lse_stride);
  EXPECT_FALSE(std::isnan(at(p.out_at, 0, 0, 0, 0)));
  EXPECT_TRUE(std::isnan(at(p.out_at, 0, 0, 1, 0)));
  EXPECT_FALSE(std::isnan(at(p.out_at, 0, 0, 2, 0)));
}

TEST(Attention, UnwantedGradientsAreSkipped) {
  Problem<float> all(cases[1], false), some(cases[1], false);
  all.run();
  const std::vector<float> before = some.dv;
  attention(some.args, some.out_at, some.lse.data(), some.lse_stride);
  AttentionGradient<float> g;
  g.out_gradient = some.dout_at;
  g.out.data = some.out_at.data;
  for (int i = 0; i < 4; ++i) g.out.stride[i] = some.out_at.stride[i];
  g.logsumexp = some.lse.data();
  for (int i = 0; i < 3; ++i) g.logsumexp_stride[i] = some.lse_stride[i];
  g.k = some.dk_at;
  attention_gradient(some.args, g);
  EXPECT_EQ(some.dk, all.dk);
  EXPECT_EQ(some.dv, before);
}

TEST(Attention, BitsDoNotDependOnTheNumberOfThreads) {
  for (const Case& c : cases) {
    Problem<float> one(c, false), two(c, false);
    {
      WithThreads with(1);
      one.run();
    }
    WithThreads with(2);
    two.run();
    ASSERT_EQ(one.out, two.out);
    ASSERT_EQ(one.lse, two.lse);
    ASSERT_EQ(one.dq, two.dq);
    ASSERT_EQ(one.dk, two.dk);
    ASSERT_EQ(one.dv, two.dv);
  }
}

}  // namespace
}  // namespace tenon::templates
