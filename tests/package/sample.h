// An artifact with one of everything: weights, a symbolic batch size, state that is updated in place, derived and
// random state, indices that are checked, results whose sizes depend on data.
//   inputs   x f32[s0, 4], ids i64[s0]; 1 <= s0 <= 64
//   state    w f32[4, 3] (parameter), running f32[1] (buffer, updated), runs i64[1] (updated), rng i64[2] (updated),
//            frozen.w (frozen)
//   outputs  y f32[s0, 3] = relu(x w + bias + table[ids]), total f32[] = sum of y, drawn i64[] = offset of rng before,
//            positive f32[u0] and positions i64[u1] of the positive elements of y
#pragma once
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/package/code_image.h"

namespace tenon::package {

constexpr int64_t sample_k = 4, sample_n = 3, sample_rows = 5, sample_batch = 64;

struct SampleWeights {
  std::array<float, 12> w;
  std::array<float, 3> bias;
  std::array<float, 15> table;
};
SampleWeights sample_weights();

struct SampleOptions {
  bool v3 = true, v4 = true;
  int64_t limit = 1000;  // a check that fails when total of the ids' count exceeds it
  bool check_after_write = false;
};
ArtifactParts sample_parts(const SampleOptions& options = {});
void fill_sample(std::span<std::byte> weights);
std::vector<std::byte> sample_bytes(const SampleOptions& options = {});
void write_sample(const std::string& path, const SampleOptions& options = {});

struct SampleResult {
  std::vector<float> y, positive;
  std::vector<int64_t> positions;
  float total = 0;
};
/// What the sample must give, computed here.
SampleResult expected_sample(const SampleWeights& weights, const std::vector<float>& x,
                             const std::vector<int64_t>& ids);

/// A file name in the temporary folder, removed in the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view suffix);
  ~TemporaryFile();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tenon::package
