// A training on disk: everything that has to be known to go on as if nothing had happened.
#pragma once
#include <map>
#include <string>

#include "tenon/session/state.h"

namespace tenon::train {

/// Where a training stands.
struct Position {
  int64_t epoch = 0;  // that are done
  int64_t batch = 0;  // micro-batches of the next epoch that are done
  // Of that epoch so far.
  int64_t samples = 0, right = 0, counted = 0;
  double loss = 0;  // the sum over samples
  bool operator==(const Position&) const = default;
};

/// Writes the whole state, its random draws, the position and the settings (by which resuming is checked) to a
/// safetensors file, which appears whole or not at all.
void save_training(const std::string& path, const State& state, const Position& position,
                   const std::map<std::string, std::string>& settings);

struct Saved {
  Position position;
  std::map<std::string, std::string> settings;
};
/// Puts the contents of a file into a state of the same names, dtypes and sizes; an Error says which differs.
Saved load_training(const std::string& path, State& state);

/// The name of a floating point tensor in which not all numbers are finite; empty where there is none.
std::string not_finite_in(const State& state);

}  // namespace tenon::train
