#include <signal.h>

#include <atomic>
#include <charconv>
#include <chrono>

#include "tenon/export/serde/save.h"
#include "tenon/interp/eager.h"
#include "tools/tenon/files.h"
#include "tools/tenon/progress.h"
#include "tools/tenon/train_report.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> interrupted = 0;

void on_interrupt(int signal) { interrupted = signal; }

/// While it lives, SIGINT and SIGTERM end the training after the batch at hand. The second one ends it at once.
class Interruptible {
 public:
  Interruptible() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (size_t i = 0; i < std::size(signals); ++i) {
      ::sigaction(signals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(signals[i], &action, nullptr);
    }
  }
  ~Interruptible() {
    for (size_t i = 0; i < std::size(signals); ++i) ::sigaction(signals[i], &before_[i], nullptr);
  }
  Interruptible(const Interruptible&) = delete;

 private:
  static constexpr int signals[] = {SIGINT, SIGTERM};
  struct sigaction before_[std::size(signals)];
};

std::string state_beside(std::string out) {
  if (out.ends_with(".pt2")) out.resize(out.size() - 4);
  return out + ".state.safetensors";
}

void save_trained(train::Trainer& trainer, const TrainRequest& request) {
  save_exported(trainer.trained(), request.out, [&](const std::string& warning) { warn_about(request.file, warning); });
}

void announce(const train::Trainer& trainer, const TrainRequest& request, double prepared) {
  const train::TrainingStep& step = trainer.training_step();
  for (const std::string& name : step.unreached)
    complain(text("warning: the loss does not depend on ", shown(name), ", which stays as it is"));
  if (const std::string& reason = trainer.runners().why_interpreted(); !reason.empty())
    complain(text("warning: interpreted, not compiled: ", reason));
  if (request.json) return;
  print(text(step.trained.size(), " parameters, ", trainer.samples_per_epoch(), " samples in ",
             trainer.batches_per_epoch(), " batches of ", trainer.batch_size(),
             trainer.drops_last() ? " (the last, short one is left out: the program takes no smaller batch)" : "", "; ",
             trainer.runners().compiled() ? "compiled" : "prepared", " in ", static_cast<int64_t>(prepared * 1000),
             " ms\n"));
  flush_output();
}

/// The whole training; the number of the signal that ended it early, or 0.
int run_epochs(train::Trainer& trainer, const TrainRequest& request, const std::string& state) {
  TrainReport report(trainer, request.options.epochs, request.json);
  Clock::time_point saved = Clock::now();
  Interruptible scope;
  while (!trainer.done()) {
    train::Score score;
    try {
      score = trainer.step();
    } catch (const Error& error) {
      bool kept = train::not_finite_in(trainer.state()).empty();
      if (kept) trainer.save(state);
      std::string what = error.what();
      if (what.find(request.file) == what.npos) what.insert(0, request.file + ": ");
      fail(what, kept ? "; the state before it is in " + state : "; the state saved before is left as it was");
    }
    report.step(score);
    if (trainer.ended_epoch()) {
      std::optional<train::Score> held_out;
      if (!request.held_out.empty()) held_out = trainer.evaluate();
      report.epoch(held_out);
    }
    bool due =
        request.save_every > 0 && std::chrono::duration<double>(Clock::now() - saved).count() >= request.save_every;
    if (trainer.ended_epoch() || due || interrupted) {
      trainer.save(state);
      saved = Clock::now();
    }
    if (interrupted && !trainer.done()) return interrupted;
  }
  report.finish();
  return 0;
}

}  // namespace

double parse_duration(const std::string& given) {
  double value = 0;
  auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  std::string_view unit(end, static_cast<size_t>(given.data() + given.size() - end));
  double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  require(error == std::errc() && factor > 0 && value > 0, "expected a time like 90s, 5m or 1h, got ", quoted(given));
  return value * factor;
}

int train_file(const TrainRequest& request) {
  std::string state = state_beside(request.out);
  require_other_file(request.file, request.out);
  for (const std::string* in : {&request.data, &request.held_out})
    if (!in->empty()) require_other_file(*in, request.out), require_other_file(*in, state);
  require_writable(request.out);
  require_writable(state);
  if (!request.step.empty()) require_writable(request.step);
  ExportedProgram program = open_program(request.file, request.open);
  if (request.threads > 0) interp::set_threads(request.threads);
  train::TrainerOptions options = request.options;
  options.run = {.compile = !request.interpret, .threads = request.threads};
  std::optional<train::Trainer> trainer;
  Clock::time_point start = Clock::now();
  {
    Progress progress(text("preparing ", shown(request.file)));
    about(request.file, [&] { program.check_payloads(); });
    try {
      trainer.emplace(program, request.data, request.held_out, options);
    } catch (const Error& error) {
      for (const std::string& file : {request.data, request.held_out})
        if (!file.empty() && starts_with(error.what(), file)) throw;
      about(request.file, [&] { throw; });
    }
    if (!request.resume.empty()) trainer->resume(request.resume);
  }
  announce(*trainer, request, std::chrono::duration<double>(Clock::now() - start).count());
  if (trainer->done())
    complain(text("warning: ", request.resume, " has all of the ", request.options.epochs,
                  " epochs already; give a larger --epochs to go on"));
  int signal = run_epochs(*trainer, request, state);
  save_trained(*trainer, request);
  if (!request.step.empty()) trainer->compile_step(request.step);
  if (signal == 0) return ok;
  complain(text("stopped in epoch ", trainer->position().epoch + 1, " after batch ", trainer->position().batch, "; ",
                request.out, " has what was learned so far; go on with --resume ", state));
  flush_output();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  return bad_input;
}

}  // namespace tenon::tool
