#include "kernels/attention.h"

#include <cmath>
#include <limits>

#include "call.h"
#include "numbers.h"

namespace tenon::kernels {
namespace {

using Int = int64_t;

struct Case {
  Int batch, heads, key_heads, queries, keys, width, value_width;
  bool causal;
  int mask;  // 0: none, 1: added, 2: kept or not, 3: added, the same for all heads
};

const Case cases[] = {
    {1, 1, 1, 1, 1, 1, 1, false, 0},      {2, 3, 3, 5, 7, 8, 8, false, 0},     {1, 2, 2, 130, 130, 16, 16, true, 0},
    {2, 4, 2, 100, 33, 20, 12, false, 1}, {1, 6, 2, 17, 200, 64, 64, true, 0}, {1, 2, 2, 200, 50, 8, 24, true, 0},
    {2, 2, 1, 99, 40, 33, 7, false, 2},   {1, 4, 4, 12, 12, 32, 32, false, 3}, {1, 2, 2, 3, 0, 4, 5, false, 0},
    {2, 2, 2, 0, 4, 4, 5, false, 0},      {2, 4, 2, 2, 37, 24, 40, false, 1},  {1, 2, 2, 1, 900, 16, 19, false, 0},
    {1, 1, 1, 6, 900, 8, 8, false, 0},    {1, 1, 1, 5, 9, 4, 200, false, 0}};

/// How memory lies: heads before positions, positions before heads as after splitting a projection, or features
/// slowest, so that nothing is contiguous.
enum class Lie { heads_first, positions_first, features_first };
const Lie lies[] = {Lie::heads_first, Lie::positions_first, Lie::features_first};

/// A tensor of four dimensions in guarded memory.
template <class T>
struct Heads {
  Guarded<T> memory;
  Int strides[4];
  Heads(const std::vector<T>& values, Int heads, Int rows, Int width, Lie lie) : memory(values) {
    Int batch = heads * rows * width;
    switch (lie) {
      case Lie::heads_first: set(batch, rows * width, width, 1); return;
      case Lie::positions_first: set(batch, width, heads * width, 1); return;
      case Lie::features_first: set(batch, rows, 1, heads * rows); return;
    }
  }
  void set(Int b, Int h, Int r, Int c) { strides[0] = b, strides[1] = h, strides[2] = r, strides[3] = c; }
  size_t index(Int b, Int h, Int r, Int c) const {
    return static_cast<size_t>(b * strides[0] + h * strides[1] + r * strides[2] + c * strides[3]);
  }
  double at(Int b, Int h, Int r, Int c) const { return static_cast<double>(memory.data()[index(b, h, r, c)]); }
  void give(Int& offset, Int (&to)[4]) const {
    offset = 0;
    std::copy(strides, strides + 4, to);
  }
};

template <class T>
struct Problem {
  Case c;
  Numbers numbers{11};
  Lie lie;
  Heads<T> q, k, v, out, dout, dq, dk, dv;
  Guarded<T> lse, mask;
  Guarded<unsigned char> keep;
  AttentionGradientParams p{};
  AttentionSizes<Int> sizes;

  Heads<T> make(Int heads, Int rows, Int width) {
    return Heads<T>(numbers.vector<T>(c.batch * heads * rows * width), heads, rows, width, lie);
  }
  static constexpr T infinity = std::numeric_limits<T>::infinity();
  size_t mask_size() const { return static_cast<size_t>(c.batch * c.heads * c.queries * c.keys); }
  std::vector<T> mask_values() {
    if (c.mask != 1 && c.mask != 3) return {};
    std::vector<T> values = numbers.vector<T>(static_cast<Int>(mask_size()));
    for (T& x : values)
      if (numbers.below(5) == 0) x = -infinity;
    for (Int j = 0; j < c.keys; ++j) values[static_cast<size_t>(c.keys + j)] = -infinity;
    return values;
  }
  std::vector<unsigned char> keep_values() {
    if (c.mask != 2) return {};
    std::vector<unsigned char> values(mask_size());
    for (auto& x : values) x = numbers.below(3) != 0;
    for (Int j = 0; j < c.keys; ++j) values[static_cast<size_t>(c.keys + j)] = 0;
    return values;
  }

  Problem(const Case& c, Lie lie)
      : c(c),
        lie(lie),
        q(make(c.heads, c.queries, c.width)),
        k(make(c.key_heads, c.keys, c.width)),
        v(make(c.key_heads, c.keys, c.value_width)),
        out(make(c.heads, c.queries, c.value_width)),
        dout(make(c.heads, c.queries, c.value_width)),
        dq(make(c.heads, c.queries, c.width)),
        dk(make(c.key_heads, c.keys, c.width)),
        dv(make(c.key_heads, c.keys, c.value_width)),
        lse(static_cast<size_t>(c.batch * c.heads * c.queries)),
        mask(mask_values()),
        keep(keep_values()),
        sizes{c.batch, c.heads, c.key_heads, c.queries, c.keys, c.width, c.value_width} {
    p.batch = c.batch, p.heads = c.heads, p.key_heads = c.key_heads, p.queries = c.queries;
    p.keys = c.keys, p.width = c.width, p.value_width = c.value_width, p.causal = c.causal;
    p.mask_kind = c.mask == 0 ? mask_none : c.mask == 2 ? mask_keep : mask_added;
    p.scale = static_cast<double>(static_cast<T>(1.3 / std::sqrt(static_cast<double>(c.width))));
    q.give(p.q, p.q_strides), k.give(p.k, p.k_strides), v.give(p.v, p.v_strides), out.give(p.out, p.out_strides);
    dout.give(p.grad, p.grad_strides), dq.give(p.grad_q, p.grad_q_strides);
    dk.give(p.grad_k, p.grad_k_strides), dv.give(p.grad_v, p.grad_v_strides);
    p.logsumexp_strides[0] = c.heads * c.queries, p.logsumexp_strides[1] = c.queries, p.logsumexp_strides[2] = 1;
    p.mask_strides[0] = c.mask == 3 ? 0 : c.heads * c.queries * c.keys;
    p.mask_strides[1] = c.mask == 3 ? 0 : c.queries * c.keys;
    p.mask_strides[2] = c.keys, p.mask_strides[3] = 1;
  }

  void* mask_memory() const { return c.mask == 2 ? static_cast<void*>(keep.data()) : mask.data(); }
  void forward(tenon_target target, Int grain = 1) {
    constexpr Int bytes = sizeof(T);
    Guarded<T> packed(static_cast<size_t>(sizes.packed()));
    std::vector<Int> params = words(static_cast<const AttentionParams&>(p));
    KernelCall pack{"attention_pack" + suffix<T>(),
                    {k.memory.data(), v.memory.data(), packed.data()},
                    params,
                    sizes.pack_iterations(),
                    grain,
                    0};
    EXPECT_EQ(pack.run(target), TENON_KERNEL_OK);
    KernelCall run{"attention" + suffix<T>(),
                   {q.memory.data(), k.memory.data(), v.memory.data(), packed.data(), out.memory.data(), lse.data()},
                   params,
                   sizes.iterations(),
                   grain,
                   sizes.scratch() * bytes};
    if (c.mask) run.buffers.push_back(mask_memory());
    EXPECT_EQ(run.run(target), TENON_KERNEL_OK);
  }
  void gradient(tenon_target target, Int grain = 1) {
    KernelCall run{"attention_gradient" + suffix<T>(),
                   {dout.memory.data(), q.memory.data(), k.memory.data(), v.memory.data(), out.memory.data(),
                    lse.data(), dq.memory.data(), dk.memory.data(), dv.memory.data()},
                   words(p),
                   sizes.gradient_iterations(),
                   grain,
                   sizes.gradient_scratch() * Int{sizeof(T)}};
    if (c.mask) run.buffers.push_back(mask_memory());
    EXPECT_EQ(run.run(target), TENON_KERNEL_OK);
  }
  std::vector<std::vector<T>> results() const {
    return {out.memory.values(), lse.values(), dq.memory.values(), dk.memory.values(), dv.memory.values()};
  }
};

template <class T>
void check(const Problem<T>& p) {
  const Case& c = p.c;
  // Scores are sums of `width` terms of size one; their error enters as a factor 1 + error, then sums over keys.
  const double eps = std::numeric_limits<T>::epsilon();
  const double bound = 8 * eps * static_cast<double>(c.width + c.value_width + c.keys + 8);
  const Int group = c.heads / c.key_heads;
  std::vector<double> dk(p.dk.memory.values().size()), dv(p.dv.memory.values().size());
  for (Int b = 0; b < c.batch; ++b)
    for (Int h = 0; h < c.heads; ++h)
      for (Int i = 0; i < c.queries; ++i) {
        std::vector<double> prob(static_cast<size_t>(c.keys));
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (Int j = 0; j < c.keys; ++j) {
          double score = 0;
          for (Int e = 0; e < c.width; ++e) score += p.q.at(b, h, i, e) * p.k.at(b, h / group, j, e);
          score *= p.p.scale;
          const Int* s = p.p.mask_strides;
          const Int m = b * s[0] + h * s[1] + i * s[2] + j * s[3];
          if (p.p.mask_kind == mask_added) score += static_cast<double>(p.mask.data()[m]);
          if ((p.p.mask_kind == mask_keep && !p.keep.data()[m]) || (c.causal && j > i))
            score = -std::numeric_limits<double>::infinity();
          prob[static_cast<size_t>(j)] = score;
          most = std::fmax(most, score);
        }
        for (double& x : prob) sum += x = std::isinf(most) ? 0 : std::exp(x - most);
        for (double& x : prob) x = sum == 0 ? 0 : x / sum;
        const double lse = sum == 0 ? 0 : most + std::log(sum);
        ASSERT_NEAR(static_cast<double>(p.lse.data()[(b * c.heads + h) * c.queries + i]), lse,
                    bound * (1 + std::fabs(lse)));
        double mean = 0;
        for (Int f = 0; f < c.value_width; ++f) {
          double value = 0;
          for (Int j = 0; j < c.keys; ++j) value += prob[static_cast<size_t>(j)] * p.v.at(b, h / group, j, f);
          ASSERT_NEAR(p.out.at(b, h, i, f), value, bound) << "output " << b << " " << h << " " << i << " " << f;
          mean += value * p.dout.at(b, h, i, f);
        }
        std::vector<double> dq(static_cast<size_t>(c.width));
        for (Int j = 0; j < c.keys; ++j) {
          const double weight = prob[static_cast<size_t>(j)];
          double slope = -mean;
          for (Int f = 0; f < c.value_width; ++f) {
            slope += p.dout.at(b, h, i, f) * p.v.at(b, h / group, j, f);
            dv[p.dv.index(b, h / group, j, f)] += weight * p.dout.at(b, h, i, f);
          }
          slope *= weight * p.p.scale;
          for (Int e = 0; e < c.width; ++e) {
            dq[static_cast<size_t>(e)] += slope * p.k.at(b, h / group, j, e);
            dk[p.dk.index(b, h / group, j, e)] += slope * p.q.at(b, h, i, e);
          }
        }
        for (Int e = 0; e < c.width; ++e)
          ASSERT_NEAR(p.dq.at(b, h, i, e), dq[static_cast<size_t>(e)], bound * static_cast<double>(c.value_width))
              << "query gradient";
      }
  const double grown = bound * static_cast<double>(group * (c.queries + 1) * c.value_width);
  for (size_t i = 0; i < dk.size(); ++i)
    ASSERT_NEAR(static_cast<double>(p.dk.memory.data()[i]), dk[i], grown) << "key gradient at " << i;
  for (size_t i = 0; i < dv.size(); ++i)
    ASSERT_NEAR(static_cast<double>(p.dv.memory.data()[i]), dv[i], grown) << "value gradient at " << i;
}

/// Right on the best target; the same bits on the others, however the range is cut.
template <class T>
void check(const Case& c, Lie lie) {
  Problem<T> best(c, lie);
  best.forward(machine_target());
  best.gradient(machine_target());
  check(best);
  for (tenon_target target : targets()) {
    if (target == TENON_TARGET_PORTABLE && lie != Lie::heads_first) continue;  // it is slow
    Problem<T> other(c, lie);
    other.forward(target, 5);
    other.gradient(target, 5);
    ASSERT_EQ(other.results(), best.results()) << "target " << target;
  }
}

TEST(Attention, forward_and_gradient_agree_with_plain_loops_on_every_target) {
  for (const Case& c : cases)
    for (Lie lie : lies) {
      SCOPED_TRACE(testing::Message() << c.queries << " queries, " << c.keys << " keys, mask " << c.mask << ", layout "
                                      << static_cast<int>(lie));
      check<float>(c, lie);
      check<double>(c, lie);
      if (HasFatalFailure()) return;
    }
}

TEST(Attention, a_query_that_sees_no_key_gets_zeros_even_beside_infinite_values) {
  for (Int queries : {4, 6})
    for (tenon_target target : targets()) {
      Problem<float> p({1, 1, 1, queries, 6, 8, 5, false, 2}, Lie::heads_first);
      p.v.memory.data()[0] = std::numeric_limits<float>::infinity();
      p.forward(target);
      for (Int f = 0; f < 5; ++f) EXPECT_EQ(p.out.at(0, 0, 1, f), 0);  // the mask's second row keeps nothing
      EXPECT_EQ(p.lse.data()[1], 0);
    }
}

TEST(Attention, nan_in_one_query_stays_in_its_row) {
  for (Int queries : {4, 6})
    for (tenon_target target : targets()) {
      Problem<float> p({1, 1, 1, queries, 40, 8, 5, false, 0}, Lie::heads_first);
      p.q.memory.data()[8] = std::numeric_limits<float>::quiet_NaN();
      p.forward(target);
      EXPECT_FALSE(std::isnan(p.out.at(0, 0, 0, 0)));
      EXPECT_TRUE(std::isnan(p.out.at(0, 0, 1, 0)));
      EXPECT_FALSE(std::isnan(p.out.at(0, 0, 2, 0)));
    }
}

}  // namespace
}  // namespace tenon::kernels
