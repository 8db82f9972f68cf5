#include "tools/tenon/train_report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tenon/io/json.h"
#include "tools/tenon/files.h"

namespace tenon::tool {
namespace {

std::string number(const char* format, double value) {
  char out[60];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

std::string percent(double share) { return number("%.1f %%", 100 * share); }

std::string clock_time(double seconds) {
  auto s = static_cast<long long>(std::llround(std::min(seconds, 1e9)));
  char out[60];
  if (s >= 3600) std::snprintf(out, sizeof out, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else std::snprintf(out, sizeof out, "%lld:%02lld", s / 60, s % 60);
  return out;
}

}  // namespace

TrainReport::TrainReport(const train::Trainer& trainer, int64_t epochs, bool json)
    : trainer_(trainer), epochs_(epochs), json_(json), terminal_(::isatty(STDERR_FILENO)) {
  const train::Position& p = trainer.position();
  total_ = (epochs - p.epoch) * trainer.samples_per_epoch() - p.samples;
}

TrainReport::~TrainReport() { clear(); }

double TrainReport::seconds(Clock::time_point since) const {
  return std::max(1e-9, std::chrono::duration<double>(Clock::now() - since).count());
}

void TrainReport::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

void TrainReport::step(const train::Score& score) {
  samples_ += score.samples;
  epoch_samples_ += score.samples;
  losses_.push_back(score.mean_loss());
  if (!terminal_ || trainer_.ended_epoch()) return;
  if (Clock::now() - last_shown_ < std::chrono::milliseconds(100)) return;
  last_shown_ = Clock::now();
  const train::Score& epoch = trainer_.epoch();
  double rate = static_cast<double>(samples_) / seconds(start_);
  std::string line = text("epoch ", trainer_.position().epoch + 1, "/", epochs_, "  batch ", trainer_.position().batch,
                          "/", trainer_.batches_per_epoch(), "  loss ", number("%.4f", epoch.mean_loss()));
  if (auto accuracy = epoch.accuracy()) line += "  accuracy " + percent(*accuracy);
  line += text("  ", number("%.0f", rate), " samples/s  ",
               clock_time(static_cast<double>(std::max<int64_t>(total_ - samples_, 0)) / rate), " left");
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void TrainReport::epoch(const std::optional<train::Score>& held_out) {
  clear();
  const train::Score& score = trainer_.epoch();
  int64_t epoch = trainer_.position().epoch;
  double took = seconds(epoch_start_), rate = static_cast<double>(epoch_samples_) / took;
  if (json_) {
    JsonWriter out;
    out.begin_object();
    out.field("epoch", epoch);
    out.field("step", trainer_.updates());
    out.field("loss", score.mean_loss());
    if (auto accuracy = score.accuracy()) out.field("accuracy", *accuracy);
    if (held_out) {
      out.field("eval_loss", held_out->mean_loss());
      if (auto accuracy = held_out->accuracy()) out.field("eval_accuracy", *accuracy);
    }
    out.field("samples_per_second", rate);
    out.field("seconds", took);
    out.end_object();
    print(out.take() + "\n");
  } else {
    std::string line = text("epoch ", epoch, "/", epochs_, "  loss ", number("%.4f", score.mean_loss()));
    if (auto accuracy = score.accuracy()) line += "  accuracy " + percent(*accuracy);
    if (held_out) {
      line += text("  held-out loss ", number("%.4f", held_out->mean_loss()));
      if (auto accuracy = held_out->accuracy()) line += "  accuracy " + percent(*accuracy);
    }
    print(text(line, "  ", number("%.0f", rate), " samples/s\n"));
  }
  flush_output();
  epoch_start_ = Clock::now();
  epoch_samples_ = 0;
}

void TrainReport::finish() {
  clear();
  if (json_ || losses_.size() < 8) return;
  print(curve(losses_, 8, 64));
}

std::string curve(const std::vector<double>& numbers, size_t rows, size_t columns) {
  columns = std::min(columns, numbers.size());
  std::vector<double> means(columns);
  for (size_t c = 0; c < columns; ++c) {
    size_t begin = c * numbers.size() / columns, end = (c + 1) * numbers.size() / columns;
    for (size_t i = begin; i < end; ++i) means[c] += numbers[i] / static_cast<double>(end - begin);
  }
  auto [low, high] = std::minmax_element(means.begin(), means.end());
  double bottom = *low, span = std::max(*high - *low, 1e-12);
  std::string out;
  for (size_t r = rows; r-- > 0;) {
    double at = bottom + span * static_cast<double>(r) / static_cast<double>(rows - 1);
    std::string line = number("%10.4f |", at);
    for (double mean : means) {
      auto row = static_cast<size_t>(std::lround((mean - bottom) / span * static_cast<double>(rows - 1)));
      line += row == r ? '*' : ' ';
    }
    while (line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  out += std::string(11, ' ') + "+" + std::string(columns, '-') + "\n";
  out += text(std::string(12, ' '), "loss over ", numbers.size(), " batches\n");
  return out;
}

}  // namespace tenon::tool
