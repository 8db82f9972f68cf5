// The sweep over the registry: every operator of which PyTorch's calls are recorded, asked what checks.h asks.
//   test_sweep [--op NAME]... [--fifth] [--list] [--all] [--quiet] [--complex] [--recorded|--perturbed]
// Like any test program it takes a share of the operators where GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX say so.
// A name is a whole operator (aten::add.Tensor) or a part of one (add). --all prints every failure, not the first of
// each sort. --fifth takes a fixed fifth of the operators, chosen by their names. Recorded calls are made first, then
// wrong ones (perturb.h); after them those that meet complex numbers, which are recorded apart: --complex makes them
// alone. --recorded and --perturbed make one sort only.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "tenon/dialect/operators.h"
#include "tenon/interp/eager.h"
#include "tenon/rules/registry.h"
#include "tests/sweep/checks.h"
#include "tests/sweep/deviations.h"
#include "tests/sweep/perturb.h"

namespace tenon::sweep {
namespace {

struct Options {
  std::vector<std::string> ops;
  bool list = false, all = false, quiet = false, fifth = false;
  bool recorded = true, perturbed = true;  // which calls are made
  bool of_complex = false;                 // those of complex numbers, which have a folder of their own
  uint32_t shares = 1, share = 0;
};

// What is being run, for the message of a crash.
char now_running[400];
void begin(const std::string& what) { std::snprintf(now_running, sizeof now_running, "%s\n", what.c_str()); }
void crashed(int signal) {
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, "died in ", 8);
  n = write(STDERR_FILENO, now_running, std::strlen(now_running));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Check {
  const char* name;
  std::function<bool(const Op&, const Case&)> applies;
  std::function<Outcome(const Op&, const Case&, size_t number)> run;
  size_t cases = 0, failures = 0;
  double seconds = 0;
};

std::vector<Check> perturbed_checks() {
  auto computes = [](const Op& op, const Case&) { return !op.traits.asserts; };
  return {{"perturbed", computes, [](const Op& op, const Case& c, size_t) { return check_perturbed(op, c, begin); }}};
}

std::vector<Check> recorded_checks() {
  auto always = [](const Op&, const Case&) { return true; };
  return {
      {"results", always, [](const Op& op, const Case& c, size_t) { return check_results(op, c); }},
      {"meta", always, [](const Op& op, const Case& c, size_t) { return check_meta(op, c); }},
      {"decomposition", [](const Op& op, const Case&) { return has_decomposition(op); },
       [](const Op& op, const Case& c, size_t) { return check_decomposition(op, c); }},
      {"gradient", [](const Op& op, const Case& c) { return c.has_gradients() && has_gradient_rule(op); },
       [](const Op& op, const Case& c, size_t) { return check_gradients(op, c); }},
      {"lowered", [](const Op& op, const Case& c) { return determined(op, c); },
       [](const Op& op, const Case& c, size_t) { return check_lowered(op, c); }},
      {"compiled", [](const Op& op, const Case& c) { return determined(op, c); },
       [](const Op& op, const Case& c, size_t) { return check_compiled(op, c); }},
      {"round trip", always,
       [](const Op& op, const Case& c, size_t number) { return check_round_trip(op, c, number == 0); }},
  };
}

Outcome guarded(const std::function<Outcome()>& run) {
  try {
    return run();
  } catch (const Error& e) { return text("error: ", e.what()); } catch (const InternalError& e) {
    return text("internal error: ", e.what());
  } catch (const std::exception& e) { return text("unexpected exception: ", e.what()); }
}

void print_names(const char* what, const std::vector<std::string>& names) {
  std::printf("%s: %zu\n", what, names.size());
  std::string line;
  for (const std::string& name : names) {
    if (line.size() + name.size() > 120) std::printf("  %s\n", line.c_str()), line.clear();
    line += (line.empty() ? "" : " ") + name;
  }
  if (!line.empty()) std::printf("  %s\n", line.c_str());
}

class Sweep {
 public:
  Sweep(const Options& options, const Library& library, std::vector<Check> checks)
      : options_(options), library_(library), checks_(std::move(checks)) {}

  void op(const Op& op) {
    failures_.clear();
    size_t cases = 0;
    if (const std::string* schema = library_.schema(op.name())) {
      note("schema", guarded([&] { return check_schema(op, *schema); }), {});
    } else if (starts_with(op.name(), "aten::")) {
      without_schema_.push_back(op.name());
    }
    if (library_.has(op.name())) {
      Recording recording = library_.open(op.name());
      cases = recording.size();
      bool differentiable = false;
      for (size_t i = 0; i < cases; ++i) {
        one_case(op, recording[i], i);
        differentiable |= recording[i].has_gradients();
      }
      if (differentiable && !has_gradient_rule(op)) without_gradient_.push_back(op.name());
    }
    ++ops_;
    cases_ += cases;
    failed_ += !failures_.empty();
    if (failures_.empty() && options_.quiet) return;
    std::printf("%-5s %-55s %3zu cases\n", failures_.empty() ? "ok" : "FAIL", op.name().c_str(), cases);
    for (const auto& [check, messages] : failures_) {
      for (size_t i = 0; i < messages.size() && (i < 2 || options_.all); ++i)
        std::printf("      %-13s %s\n", check.c_str(), messages[i].c_str());
      if (messages.size() > 2 && !options_.all)
        std::printf("      %-13s and %zu more\n", check.c_str(), messages.size() - 2);
    }
    std::fflush(stdout);
  }

  size_t failed() const { return failed_; }
  size_t passed() const { return ops_ - failed_; }
  void totals() const {
    std::printf("%zu operators, %zu cases, %zu operators failed\n", ops_, cases_, failed_);
    for (const Check& c : checks_)
      std::printf("  %-13s %6zu cases, %5zu failed, %.1f s\n", c.name, c.cases, c.failures, c.seconds);
    for (const auto& [d, counts] : deviating_)
      for (const auto& [op, count] : counts)
        std::printf("  %zu cases differ and may: %s %s %s: %s\n", count, op.c_str(), d->check, d->message, d->why);
    if (!without_gradient_.empty()) print_names("  without a gradient, which PyTorch has", without_gradient_);
    if (!without_schema_.empty()) print_names("  without a recorded schema", without_schema_);
  }
  /// Rows of the table of deviations of these operators that excuse nothing.
  std::vector<std::string> stale(const std::set<std::string>& names) const {
    std::vector<std::string> out;
    for (const Deviation& d : all_deviations())
      if (names.count(d.op) && d.of_complex == options_.of_complex && !deviating_.count(&d) &&
          std::string_view(d.check) != "perturbed")  // those are seen in processes of their own
        out.push_back(text(d.op, " ", d.check, " ", d.call, " ", d.message));
    return out;
  }

 private:
  void one_case(const Op& op, const Case& recorded, size_t number) {
    if (options_.of_complex && refused_of_complex(op.name())) {
      Outcome outcome = guarded([&] { return check_results(op, recorded); });
      if (!outcome || !starts_with(*outcome, "error: "))
        note("refused", text("expected an Error, got ", outcome.value_or("a result: take it off the list")),
             text("case ", number, ": "));
      return;
    }
    std::string call = guarded([&]() -> Outcome { return describe_call(op, recorded.arguments(op)); }).value();
    for (Check& check : checks_) {
      bool applies = true;
      Outcome undecided = guarded([&]() -> Outcome {
        applies = check.applies(op, recorded);
        return std::nullopt;
      });
      if (!applies) continue;
      begin(text(check.name, " of ", op.name(), " case ", number, " (", call, ")"));
      auto start = std::chrono::steady_clock::now();
      Outcome outcome = undecided ? undecided : guarded([&] { return check.run(op, recorded, number); });
      check.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      ++check.cases;
      if (const Deviation* d = outcome ? deviation(op.name(), check.name, call, *outcome) : nullptr) {
        ++deviating_[d][op.name()];
        continue;
      }
      check.failures += outcome.has_value();
      note(check.name, std::move(outcome), text("case ", number, " (", call, "): "));
    }
  }

  void note(const std::string& check, Outcome outcome, const std::string& where) {
    if (!outcome) return;
    for (auto& [name, messages] : failures_)
      if (name == check) return messages.push_back(where + *outcome);
    failures_.push_back({check, {where + *outcome}});
  }

  const Options& options_;
  const Library& library_;
  std::vector<Check> checks_;
  std::vector<std::pair<std::string, std::vector<std::string>>> failures_;  // of the op at hand, by check
  std::vector<std::string> without_schema_, without_gradient_;
  std::map<const Deviation*, std::map<std::string, size_t>> deviating_;  // how many cases
  size_t ops_ = 0, cases_ = 0, failed_ = 0;
};

// By the name alone, so that an operator stays in or out whatever else is added.
bool wanted(const Options& options, const std::string& name) {
  uint32_t hash = 2166136261u;
  for (unsigned char c : name) hash = (hash ^ c) * 16777619u;
  if (options.fifth && (hash >> 8) % 5 != 0) return false;
  if ((hash >> 16) % options.shares != options.share) return false;
  if (options.ops.empty()) return true;
  for (const std::string& part : options.ops)
    if (part.find("::") != std::string::npos ? name == part : name.find(part) != std::string::npos) return true;
  return false;
}

struct Counts {
  size_t passed = 0, failed = 0;
};

Counts run_recorded(const Options& options, const Library& library, const std::set<std::string>& names) {
  Sweep sweep(options, library, recorded_checks());
  for (const std::string& name : names) sweep.op(*registry().find(name));
  sweep.totals();
  Counts counts{sweep.passed(), sweep.failed()};
  for (const std::string& row : sweep.stale(names)) {
    std::printf("a deviation that no call shows any more: %s\n", row.c_str());
    ++counts.failed;
  }
  return counts;
}

// Wrong calls, each op in a process of its own: one that dies must not hide what comes after it.
Counts run_perturbed(const Options& options, const Library& library, const std::set<std::string>& names) {
  std::vector<std::string> failed, died;
  size_t tried = 0;
  for (const std::string& name : names) {
    if (!library.has(name)) continue;
    ++tried;
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(60);  // none takes as long; the handler says which call it was
      Sweep sweep(options, library, perturbed_checks());
      sweep.op(*registry().find(name));
      std::fflush(stdout);
      _exit(sweep.failed() ? 1 : 0);
    }
    int status = 0;
    require(child > 0 && waitpid(child, &status, 0) == child, "a process could not be started");
    if (!WIFEXITED(status)) died.push_back(name);
    else if (WEXITSTATUS(status)) failed.push_back(name);
  }
  std::printf("wrong calls to %zu operators\n", tried);
  print_names("  operators that answer with something else than an Error", failed);
  print_names("  operators that die of it", died);
  return {tried - failed.size() - died.size(), failed.size() + died.size()};
}

int run(const Options& options) {
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGALRM}) std::signal(signal, crashed);
  interp::install();
  Library real(TENON_TEST_DATA "/sweep", TENON_TEST_DATA "/sweep/schemas.txt"),
      of_complex(TENON_TEST_DATA "/sweep/complex", TENON_TEST_DATA "/sweep/schemas.txt");
  const Library& library = options.of_complex ? of_complex : real;
  std::set<std::string> names;
  std::vector<std::string> missing, without_samples;
  for (const std::string& name : library.names()) {
    if (!wanted(options, name)) continue;
    if (registry().find(name)) names.insert(name);
    else missing.push_back(name);
  }
  for (const Op* op : registry().all())
    if (!options.of_complex && op->kind != OpKind::symbolic && op->traits.control == Control::none &&
        wanted(options, op->name()))
      names.insert(op->name());
  size_t core = 0, core_recorded = 0;
  for (std::string_view each : dialect::core_operators()) {  // those on sizes too
    std::string name(each);
    if (options.of_complex || !wanted(options, name) || !registry().find(name))
      continue;  // tests/dialect says which are not there
    bool recorded = library.has(name) || of_complex.has(name);
    ++core, core_recorded += recorded;
    if (!recorded) names.insert(name);
  }
  for (const std::string& name : names)
    if (!library.has(name) && !of_complex.has(name) && !why_unrecorded(name)) without_samples.push_back(name);
  for (const std::string& name : library.schema_names())  // forms derived from a functional twin
    if (!options.of_complex && wanted(options, name) && registry().find(name)) names.insert(name);

  Counts total;
  if (options.list) {
    for (const std::string& name : names)
      std::printf("%-55s %3zu cases\n", name.c_str(), library.has(name) ? library.open(name).size() : 0);
  } else {
    auto count = [&](Counts counts) { total.passed += counts.passed, total.failed += counts.failed; };
    if (options.recorded) count(run_recorded(options, library, names));
    if (options.perturbed) count(run_perturbed(options, library, names));
    total.failed += without_samples.size();
    std::printf("[  PASSED  ] %zu tests.\n", total.passed);  // an operator counts as one test
    if (total.failed) std::printf("[  FAILED  ] %zu tests, listed below or above:\n", total.failed);
  }
  print_names("operators without recordings, for which deviations.cpp has no reason", without_samples);
  std::printf("core ATen operators: %zu, recorded %zu, the others with a reason\n", core, core_recorded);
  if (options.list) print_names("recorded operators that are not registered", missing);
  else std::printf("recorded operators that are not registered: %zu; --list names them\n", missing.size());
  return total.failed ? 1 : 0;
}

}  // namespace
}  // namespace tenon::sweep

int main(int argc, char** argv) {
  tenon::sweep::Options options;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--op" && i + 1 < argc) options.ops.emplace_back(argv[++i]);
    else if (word == "--list") options.list = true;
    else if (word == "--all") options.all = true;
    else if (word == "--quiet" || word.starts_with("--gtest_"))
      options.quiet = true;  // run like the other test programs
    else if (word == "--fifth") options.fifth = true;
    else if (word == "--complex") options.of_complex = true;
    else if (word == "--recorded") options.perturbed = false;
    else if (word == "--perturbed") options.recorded = false;
    else {
      std::fprintf(stderr,
                   "usage: test_sweep [--op NAME]... [--fifth] [--list] [--all] [--quiet] [--complex] "
                   "[--recorded|--perturbed]\n");
      return 2;
    }
  }
  const char *shares = std::getenv("GTEST_TOTAL_SHARDS"), *share = std::getenv("GTEST_SHARD_INDEX");
  if (shares && share) options.shares = std::max(1, std::atoi(shares)), options.share = std::atoi(share);
  try {
    int status = tenon::sweep::run(options);
    if (options.of_complex || options.list) return status;
    options.of_complex = true;
    return tenon::sweep::run(options) | status;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
