// One call of the sample artifact and its results.
#pragma once
#include <gtest/gtest.h>

#include <optional>

#include "runtime/include/tenon/runtime.hpp"
#include "tests/package/sample.h"

namespace tenon::package {
namespace rt = tenon::runtime;

struct SampleCall {
  std::vector<float> x;
  std::vector<int64_t> ids;
  std::vector<float> y, positive;
  std::vector<int64_t> positions;
  float total = 0;
  int64_t drawn = 0;

  explicit SampleCall(int64_t batch = 1) : x(batch * sample_k), ids(batch) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 16;
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 3 % 5);
  }
  int64_t batch() const { return static_cast<int64_t>(ids.size()); }
  std::vector<tenon_tensor> inputs() const {
    return {rt::tensor(x.data(), {batch(), sample_k}), rt::tensor(ids.data(), {batch()})};
  }
};

template <class T>
std::vector<T> values(const rt::Result& result) {
  return {result.data<T>(), result.data<T>() + result.elements()};
}

inline SampleCall run_sample(rt::Session& session, rt::State& state, int64_t batch) {
  SampleCall call(batch);
  std::vector<rt::Result> results = session.run(state, call.inputs());
  call.y = values<float>(results[0]);
  call.total = *results[1].data<float>();
  call.drawn = *results[2].data<int64_t>();
  call.positive = values<float>(results[3]);
  call.positions = values<int64_t>(results[4]);
  return call;
}

inline void expect_sample(rt::Session& session, rt::State& state, int64_t batch,
                          const SampleWeights& weights = sample_weights()) {
  SampleCall call = run_sample(session, state, batch);
  SampleResult expected = expected_sample(weights, call.x, call.ids);
  EXPECT_EQ(call.y, expected.y);
  EXPECT_EQ(call.total, expected.total);
  EXPECT_EQ(call.positive, expected.positive);
  EXPECT_EQ(call.positions, expected.positions);
}

}  // namespace tenon::package
