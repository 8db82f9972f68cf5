// What tenon train shows: a line that moves while an epoch runs, a line for each epoch, and the curve of the loss.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tenon/train/trainer.h"

namespace tenon::tool {

class TrainReport {
 public:
  /// To stdout a line for each epoch, as words or as JSON; to a terminal on stderr the progress within it.
  TrainReport(const train::Trainer& trainer, int64_t epochs, bool json);
  ~TrainReport();

  void step(const train::Score& score);
  void epoch(const std::optional<train::Score>& held_out);
  /// The curve of the loss; words only.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void clear();
  double seconds(Clock::time_point since) const;

  const train::Trainer& trainer_;
  int64_t epochs_;
  bool json_, terminal_, shown_ = false;
  Clock::time_point start_ = Clock::now(), epoch_start_ = start_, last_shown_;
  int64_t samples_ = 0, epoch_samples_ = 0, total_;
  std::vector<double> losses_;  // of every step
};

/// Numbers as a curve in characters, `rows` high and at most `columns` wide.
std::string curve(const std::vector<double>& numbers, size_t rows, size_t columns);

}  // namespace tenon::tool
