#include "tests/package/sample.h"

#include <unistd.h>

#include <atomic>
#include <bit>
#include <filesystem>

namespace tenon::package {

namespace {
constexpr uint64_t w_at = 0, bias_at = 64, table_at = 128, weights_size = 192;
constexpr int64_t grain = 4;
}  // namespace

SampleWeights sample_weights() {
  SampleWeights out{};
  for (size_t i = 0; i < out.w.size(); ++i) out.w[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5) / 4;
  for (size_t i = 0; i < out.bias.size(); ++i) out.bias[i] = static_cast<float>(i) / 8;
  for (size_t i = 0; i < out.table.size(); ++i) out.table[i] = static_cast<float>(static_cast<int>(i) - 7) / 2;
  return out;
}

void fill_sample(std::span<std::byte> weights) {
  SampleWeights values = sample_weights();
  std::memcpy(weights.data() + w_at, values.w.data(), sizeof values.w);
  std::memcpy(weights.data() + bias_at, values.bias.data(), sizeof values.bias);
  std::memcpy(weights.data() + table_at, values.table.data(), sizeof values.table);
}

ArtifactParts sample_parts(const SampleOptions& options) {
  Tables t("tenon tests");
  t.weights_size(weights_size);
  t.metadata("in_spec", "a tuple");
  Expr k = sample_k, n = sample_n, rows = sample_rows;
  Id s0 = t.symbol("s0", 1, sample_batch), u0 = t.symbol("u0", 0, sample_batch * sample_n),
     u1 = t.symbol("u1", 0, sample_batch * sample_n), drawn = t.symbol("offset", 0, INT64_MAX),
     count = t.symbol("count", 0, INT64_MAX);
  Expr batch = Expr::symbol(s0);

  Id x = t.input({.name = "x", .sizes = {batch, k}});
  Id ids = t.input({.name = "ids", .dtype = TENON_I64, .sizes = {batch}});
  t.entry_size(s0, x, 0);
  Id w = t.state({.name = "w", .sizes = {k, n}, .weights = w_at}, TENON_STATE_PARAMETER);
  Id running = t.state({.name = "running", .sizes = {1}}, TENON_STATE_BUFFER);
  Id runs = t.state({.name = "runs", .dtype = TENON_I64, .sizes = {1}}, TENON_STATE_BUFFER);
  Id random = t.state({.name = "rng", .dtype = TENON_I64, .sizes = {2}}, TENON_STATE_RANDOM);
  t.frozen_state("frozen.w", TENON_STATE_PARAMETER);
  Id packed = t.derived({.name = "w packed", .sizes = {n, k}});
  Id bias = t.constant({.name = "bias", .sizes = {n}, .weights = bias_at});
  Id table = t.constant({.name = "table", .sizes = {rows, n}, .weights = table_at});
  Id y = t.output({.name = "y", .sizes = {batch, n}});
  Id total = t.output({.name = "total", .sizes = {}});
  Id seen = t.output({.name = "drawn", .dtype = TENON_I64, .sizes = {}});
  Id positive = t.output({.name = "positive", .sizes = {Expr::symbol(u0)}, .flags = TENON_BUFFER_DEFERRED});
  Id positions =
      t.output({.name = "positions", .dtype = TENON_I64, .sizes = {Expr::symbol(u1)}, .flags = TENON_BUFFER_DYNAMIC});

  Id segment = t.segment();
  Id partial = t.arena({.name = "partial", .sizes = {ceil_div(batch, grain)}, .first = 2, .last = 3}, segment);
  Id found = t.arena({.name = "found", .sizes = {batch * n}, .first = 5, .last = 8}, segment);
  Id found_exact = t.view(found, {.name = "found", .sizes = {Expr::symbol(u0)}}, 0);

  auto main = Tables::main;
  t.plan(main, segment);
  if (!options.check_after_write)
    t.check(main, less_equal(batch, options.limit), "the batch is {}, but at most {} are wanted",
            {batch, options.limit});
  t.bind_element(main, drawn, random, 1);
  t.kernel(main,
           {.function = t.function("linear"),
            .instances = {{.args = {x, packed, bias, table, ids, written(y)},
                           .params = {k, n, rows},
                           .extent = batch,
                           .grain = grain}},
            .guards = {{ids, 0, rows, "index of the table"}},
            .scratch = n * 4},
           {.name = "linear+relu", .flops = batch * k * n * 2, .bytes = batch * (k + n) * 4});
  t.kernel(main,
           {.function = t.function("partial_sums"),
            .instances = {{.args = {y, written(partial)}, .params = {n, grain}, .extent = batch, .grain = grain}}});
  t.kernel(main, {.function = t.function("merge"),
                  .instances = {{.args = {partial, written(total)}, .params = {ceil_div(batch, grain)}}}});
  t.store(main, seen, 0, Expr::symbol(drawn));
  t.kernel(main, {.function = t.function("update"),
                  .instances = {{.args = {total, written(running)}, .params = {Expr::real(0.5)}}}});
  if (options.check_after_write)
    t.check(main, less_equal(batch, options.limit), "the batch is {}, but at most {} are wanted",
            {batch, options.limit});
  t.bind_element(main, count, runs, 0);
  t.store(main, runs, 0, Expr::symbol(count) + 1);
  t.store(main, random, 1, Expr::symbol(drawn) + batch * n);
  t.call(main, {.function = t.function("positive"), .inputs = {y}, .results = {found}});
  t.bind_count(main, u0, 0);
  t.make(main, positive);
  t.copy(main, found_exact, positive);
  t.call(main, {.function = t.function("positions"), .inputs = {y}, .results = {positions}});
  t.bind_size(main, u1, positions, 0);
  t.check(main, equal(Expr::symbol(u0), Expr::symbol(u1)), "{} positive elements, but {} positions",
          {Expr::symbol(u0), Expr::symbol(u1)});

  t.kernel(Tables::on_state,
           {.function = t.function("transpose"),
            .instances = {{.args = {w, written(packed)}, .params = {k, n}, .extent = n, .grain = 1}}});

  ArtifactParts parts{.soname = "sample.so", .tables = std::move(t), .code = {}};
  if (options.v3) parts.code.push_back(read_code_image(SAMPLE_CODE_V3, TENON_TARGET_X86_64_V3));
  if (options.v4) parts.code.push_back(read_code_image(SAMPLE_CODE_V4, TENON_TARGET_X86_64_V4));
  return parts;
}

std::vector<std::byte> sample_bytes(const SampleOptions& options) {
  return artifact_bytes(sample_parts(options), fill_sample);
}

void write_sample(const std::string& path, const SampleOptions& options) {
  ArtifactWriter writer(path, sample_parts(options));
  fill_sample(writer.weights());
  writer.commit();
}

SampleResult expected_sample(const SampleWeights& weights, const std::vector<float>& x,
                             const std::vector<int64_t>& ids) {
  SampleResult out;
  float partial = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % grain == 0) out.total += std::exchange(partial, 0.0f);
    for (int64_t j = 0; j < sample_n; ++j) {
      float sum = weights.bias[j] + weights.table[ids[i] * sample_n + j];
      for (int64_t p = 0; p < sample_k; ++p) sum += x[i * sample_k + p] * weights.w[p * sample_n + j];
      float value = sum > 0 ? sum : 0;
      if (value > 0) out.positions.push_back(static_cast<int64_t>(out.y.size()));
      if (value > 0) out.positive.push_back(value);
      out.y.push_back(value);
      partial += value;
    }
  }
  out.total += partial;
  return out;
}

TemporaryFile::TemporaryFile(std::string_view suffix) {
  static std::atomic<int> count = 0;
  path_ = std::filesystem::temp_directory_path() /
          ("tenon-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + std::string(suffix));
}
TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace tenon::package
