// Anchors as calls of the kernel library, in terms of symbols: one list of calls serves every size.
#include <cmath>

#include "run_library.h"

namespace tenon::plan {
namespace {

const SymInt rows = SymInt::symbol("s0"), columns = SymInt::symbol("s1");

/// [rows, columns] sorted along `dim`: values alone are looked at, so that all buffers are of one type.
loop::Sort sort_of(Buffers<int64_t>& b, int64_t m, int64_t n, size_t dim) {
  int64_t next = 0;
  auto value = [&] { return (next++ * 7919) % 101; };
  auto zero = [] { return 0; };
  Sizes sizes = {rows, columns}, strides = {columns, 1}, numbers = {m, n};
  return {.in = b.add(sizes, strides, numbers, value),
          .values = b.add(sizes, strides, numbers, zero),
          .indices = b.add(sizes, strides, numbers, zero),
          .dim = dim};
}

TEST(LibraryCalls, sorting_serves_every_size) {
  for (auto [m, n] : {std::pair{1, 1}, {3, 5}, {200, 2}, {2, 333}, {0, 4}, {4, 0}})
    for (size_t dim : {0, 1}) {
      Buffers<int64_t> b;
      loop::Sort s = sort_of(b, m, n, dim);
      std::vector<int64_t> expected = b.values(s.in), got;
      int64_t across = dim ? 1 : n, between = dim ? n : 1, lines = dim ? m : n, length = dim ? n : m;
      for (int64_t line = 0; line < lines; ++line) {
        auto at = [&](int64_t i) -> int64_t& { return expected[static_cast<size_t>(line * between + i * across)]; };
        for (int64_t i = 1; i < length; ++i)
          for (int64_t j = i; j > 0 && at(j) < at(j - 1); --j) std::swap(at(j), at(j - 1));
      }
      for (tenon_target target : kernels::targets())
        EXPECT_EQ(b.run({s}, s.values.buffer, target, 1, {{rows, m}, {columns, n}}), expected) << m << " x " << n;
    }
}

TEST(LibraryCalls, an_operand_beyond_its_buffer_is_refused_when_sizes_are_known) {
  Buffers<int64_t> b;
  loop::Sort s = sort_of(b, 3, 5, 1);
  s.in.offset = 1;
  EXPECT_THROW(b.run({s}, s.values.buffer, kernels::machine_target(), 1, {{rows, 3}, {columns, 5}}), Error);
  s.in.offset = 0;
  s.indices.sizes = {rows, columns + 1};
  try {
    b.run({s}, s.values.buffer, kernels::machine_target(), 1, {{rows, 3}, {columns, 5}});
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("sizes that do not belong together"), std::string::npos) << e.what();
  }
}

TEST(LibraryCalls, dtypes_that_do_not_belong_together_are_refused_at_once) {
  Buffers<int64_t> b;
  loop::Sort s = sort_of(b, 3, 5, 1);
  b.program.buffers[s.values.buffer].dtype = DType::f32;
  EXPECT_THROW(library_calls(b.program, s), Error);
}

TEST(LibraryCalls, more_than_a_line_has_cannot_be_picked) {
  Buffers<int64_t> b;
  auto zero = [] { return 0; };
  loop::TopK s{.in = b.add({rows}, {1}, {4}, zero), .values = b.add({9}, zero), .indices = b.add({9}, zero), .k = 9};
  EXPECT_THROW(b.run({s}, s.values.buffer, kernels::machine_target(), 1, {{rows, 4}}), Error);
}

TEST(LibraryCalls, a_scan_of_one_dimension_and_of_a_scalar) {
  Buffers<int64_t> b;
  int64_t next = 0;
  loop::Scan line{.in = b.add({rows}, {1}, {5}, [&] { return ++next; }),
                  .out = b.add({rows}, {1}, {5}, [] { return 0; })};
  loop::Scan scalar{.in = b.add({}, [] { return 7; }), .out = b.add({}, [] { return 0; })};
  for (tenon_target target : kernels::targets()) {
    EXPECT_EQ(b.run({line}, line.out.buffer, target, 1, {{rows, 5}}), (std::vector<int64_t>{1, 3, 6, 10, 15}));
    EXPECT_EQ(b.run({scalar}, scalar.out.buffer, target, 1), (std::vector<int64_t>{7}));
  }
}

/// One query head for each of `queries` symbolic positions; keys are [1, heads, keys, 4].
loop::Attention attention_of(Buffers<float>& b, int64_t query_heads, int64_t key_heads, int64_t queries) {
  int64_t next = 0;
  auto value = [&] { return static_cast<float>(next++ % 13) * 0.25f - 1.5f; };
  auto zero = [] { return 0; };
  Sizes q = {1, query_heads, rows, 4}, q_strides = {rows * SymInt(4 * query_heads), rows * SymInt(4), 4, 1},
        q_numbers = {1, query_heads, queries, 4};
  return {.q = b.add(q, q_strides, q_numbers, value),
          .k = b.add({1, key_heads, 6, 4}, value),
          .v = b.add({1, key_heads, 6, 4}, value),
          .out = b.add(q, q_strides, q_numbers, zero),
          .logsumexp =
              b.add({1, query_heads, rows}, {rows * SymInt(query_heads), rows, 1}, {1, query_heads, queries}, zero),
          .scale = 0.5};
}

TEST(LibraryCalls, attention_serves_few_queries_and_many) {
  for (int64_t queries : {1, 4, 5, 60}) {
    Buffers<float> b;
    loop::Attention a = attention_of(b, 2, 1, queries);
    std::vector<float> q = b.values(a.q), k = b.values(a.k), v = b.values(a.v), expected;
    for (size_t i = 0; i < static_cast<size_t>(2 * queries); ++i) {
      double weight[6], sum = 0, out[4] = {};
      for (size_t j = 0; j < 6; ++j) {
        double score = 0;
        for (size_t e = 0; e < 4; ++e) score += static_cast<double>(q[i * 4 + e]) * static_cast<double>(k[j * 4 + e]);
        sum += weight[j] = std::exp(score * 0.5);
        for (size_t e = 0; e < 4; ++e) out[e] += weight[j] * static_cast<double>(v[j * 4 + e]);
      }
      for (double x : out) expected.push_back(static_cast<float>(x / sum));
    }
    for (tenon_target target : kernels::targets()) {
      std::vector<float> got = b.run({a}, a.out.buffer, target, 1, {{rows, queries}});
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << queries << " queries, at " << i;
    }
  }
}

TEST(LibraryCalls, query_heads_that_are_no_multiple_of_the_keys_are_refused) {
  Buffers<float> b;
  EXPECT_THROW(library_calls(b.program, attention_of(b, 3, 2, 5)), Error);
}

}  // namespace
}  // namespace tenon::plan
