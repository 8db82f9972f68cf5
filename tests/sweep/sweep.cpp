// The sweep over the registry: every operator of which PyTorch's calls are recorded, asked what checks.h asks.
//   test_sweep [--op NAME]... [--list] [--all] [--quiet] [--perturb]
// A name is a whole operator (aten::add.Tensor) or a part of one (add). --all prints every failure, not the first of
// each sort.
// --perturb runs wrong calls instead (perturb.h).
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "tenon/interp/eager.h"
#include "tenon/ops/registry.h"
#include "tests/sweep/checks.h"
#include "tests/sweep/perturb.h"

namespace tenon::sweep {
namespace {

struct Options {
  std::vector<std::string> ops;
  bool list = false, all = false, quiet = false, perturb = false;
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

std::vector<Check> all_checks(const Options& options) {
  if (options.perturb) {
    auto computes = [](const Op& op, const Case&) { return !op.traits.asserts; };
    return {{"perturbed", computes, [](const Op& op, const Case& c, size_t) { return check_perturbed(op, c, begin); }}};
  }
  auto always = [](const Op&, const Case&) { return true; };
  return {
      {"results", always, [](const Op& op, const Case& c, size_t) { return check_results(op, c); }},
      {"meta", always, [](const Op& op, const Case& c, size_t) { return check_meta(op, c); }},
      {"decomposition", [](const Op& op, const Case&) { return has_decomposition(op); },
       [](const Op& op, const Case& c, size_t) { return check_decomposition(op, c); }},
      {"gradient", [](const Op& op, const Case& c) { return c.has_gradients() && has_gradient_rule(op); },
       [](const Op& op, const Case& c, size_t) { return check_gradients(op, c); }},
      {"round trip", always,
       [](const Op& op, const Case& c, size_t number) { return check_round_trip(op, c, number == 0); }},
  };
}

// Where we differ and know why: PyTorch is wrong or leaves it open, or we refuse a call and say so. `call` is a part of
// the call's description, `message` of what went wrong.
struct Deviation {
  const char *op, *check, *call, *message, *why;
};
const Deviation deviations[] = {
    {"aten::as_strided_scatter", "gradient", "", "of self",
     "PyTorch passes self the gradient of what src replaces, and none of the rest"},
    {"aten::kthvalue", "results", "", "result 1", "which of equal elements is named is left open"},
    {"aten::nanmedian.dim", "results", "", "result 1", "which of equal elements is named is left open"},
    {"aten::nanmedian.dim", "gradient", "f64[5, 5]", "", "which of equal elements is named is left open"},
    {"aten::layer_norm", "gradient", "input=f64[1]", "", "zero: PyTorch's is the rounding error of a difference"},
    {"aten::native_layer_norm", "results", "16[1], normalized_shape=[1]", "",
     "zero: PyTorch's is the rounding error of a difference"},
    {"aten::native_layer_norm", "gradient", "input=f64[1, 2]", "", "nearly zero: rounding errors of a difference"},
    {"aten::smooth_l1_loss_backward", "gradient", "", "of grad_output", "zero but for the rounding error of a sum"},
    {"aten::soft_margin_loss", "results", "f16", "expected inf", "PyTorch overflows in f16, we compute in f32"},
    {"aten::soft_margin_loss", "gradient", "f16", "", "PyTorch overflows in f16, we compute in f32"},
    {"aten::upsample_bilinear2d.vec", "results", "input=u8", "", "PyTorch interpolates bytes with weights of few bits"},
    {"aten::_native_batch_norm_legit", "", "running_mean=bf16", "",
     "PyTorch rounds statistics to bf16 before it uses them"},
    {"aten::native_batch_norm", "", "running_mean=bf16", "", "PyTorch rounds statistics to bf16 before it uses them"},
    {"aten::special_bessel_j0", "", "f64", "", "PyTorch's series is good to 8 digits only (compared with mpmath)"},
    {"aten::special_bessel_j1", "", "f64", "", "PyTorch's series is good to 8 digits only (compared with mpmath)"},
    {"aten::special_bessel_y1", "", "f64", "", "PyTorch's series is good to 8 digits only (compared with mpmath)"},
    {"aten::special_i0e", "gradient", "16[", "", "a difference of nearly equal numbers, in 16 bits"},
    {"aten::special_i1e", "gradient", "16[", "", "a difference of nearly equal numbers, in 16 bits"},
    {"", "", "", "is not known in a program",
     "refused: a program does not compute with the values of floating point tensors"},
    {"", "", "", "known only when the program runs",
     "refused: sizes that depend on data, outside of what programs may have"},
    {"", "", "", "a mask beside other indices",
     "refused: sizes that depend on data, outside of what programs may have"},
    {"", "", "", "need singular values", "refused: singular values"},
    {"aten::linalg_norm", "", "[0, 0], ord=1", "there is none to choose",
     "refused: a norm of a matrix without elements"},
    {"aten::equal", "", "", "is not supported", "refused: a program does not decide by the values of tensors"},
    {"aten::embedding_dense_backward", "gradient", "scale_grad_by_freq=True", "is not supported",
     "refused: a second gradient"},
};
const Deviation* deviation(const std::string& op, const std::string& check, const std::string& call,
                           const std::string& message) {
  auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  for (const Deviation& d : deviations)
    if ((!*d.op || op == d.op) && (!*d.check || check == d.check) && has(call, d.call) && has(message, d.message))
      return &d;
  return nullptr;
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
  Sweep(const Options& options, const Library& library)
      : options_(options), library_(library), checks_(all_checks(options)) {}

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
      for (size_t i = 0; i < (options_.perturb && !options_.all ? std::min<size_t>(cases, 4) : cases); ++i) {
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

  bool failed() const { return failed_ > 0; }
  bool totals() const {
    std::printf("%zu operators, %zu cases, %zu operators failed\n", ops_, cases_, failed_);
    std::printf("[  PASSED  ] %zu tests.\n", ops_ - failed_);  // an operator counts as one test
    if (failed_) std::printf("[  FAILED  ] %zu tests, listed below or above:\n", failed_);
    for (const Check& c : checks_)
      std::printf("  %-13s %6zu cases, %5zu failed, %.1f s\n", c.name, c.cases, c.failures, c.seconds);
    for (const auto& [d, count] : deviating_)
      std::printf("  %zu cases differ and may: %s %s: %s\n", count, d->op, d->check, d->why);
    if (!without_gradient_.empty()) print_names("  without a gradient, which PyTorch has", without_gradient_);
    if (!without_schema_.empty()) print_names("  without a recorded schema", without_schema_);
    return failed_ == 0;
  }

 private:
  void one_case(const Op& op, const Case& recorded, size_t number) {
    std::string call = guarded([&]() -> Outcome { return describe_call(op, recorded.arguments(op)); }).value();
    for (Check& check : checks_) {
      if (!check.applies(op, recorded)) continue;
      begin(text(check.name, " of ", op.name(), " case ", number, " (", call, ")"));
      auto start = std::chrono::steady_clock::now();
      Outcome outcome = guarded([&] { return check.run(op, recorded, number); });
      check.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      ++check.cases;
      if (const Deviation* d = outcome ? deviation(op.name(), check.name, call, *outcome) : nullptr) {
        ++deviating_[d];
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
  std::map<const Deviation*, size_t> deviating_;  // how many cases
  size_t ops_ = 0, cases_ = 0, failed_ = 0;
};

bool wanted(const Options& options, const std::string& name) {
  if (options.ops.empty()) return true;
  for (const std::string& part : options.ops)
    if (part.find("::") != std::string::npos ? name == part : name.find(part) != std::string::npos) return true;
  return false;
}

// Wrong calls, each op in a process of its own: one that dies must not hide what comes after it.
bool run_perturbed(const Options& options, const Library& library, const std::set<std::string>& names) {
  std::vector<std::string> failed, died;
  for (const std::string& name : names) {
    if (!library.has(name)) continue;
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(20);  // none takes as long; the handler says which call it was
      Sweep sweep(options, library);
      sweep.op(*registry().find(name));
      std::fflush(stdout);
      _exit(sweep.failed() ? 1 : 0);
    }
    int status = 0;
    require(child > 0 && waitpid(child, &status, 0) == child, "a process could not be started");
    if (!WIFEXITED(status)) died.push_back(name);
    else if (WEXITSTATUS(status)) failed.push_back(name);
  }
  print_names("operators that answer wrong calls with something else than an Error", failed);
  print_names("operators that wrong calls bring down", died);
  return failed.empty() && died.empty();
}

int run(const Options& options) {
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGALRM}) std::signal(signal, crashed);
  interp::install();
  Library library(TENON_TEST_DATA "/sweep");
  std::set<std::string> names;
  std::vector<std::string> missing, without_samples;
  for (const std::string& name : library.names()) {
    if (!wanted(options, name)) continue;
    if (registry().find(name)) names.insert(name);
    else missing.push_back(name);
  }
  for (const Op* op : registry().all())
    if (op->kind != Kind::symbolic && op->traits.control == Control::none && wanted(options, op->name()))
      names.insert(op->name());
  for (const std::string& name : names)
    if (!library.has(name)) without_samples.push_back(name);
  for (const std::string& name : library.schema_names())  // forms derived from a functional twin
    if (wanted(options, name) && registry().find(name)) names.insert(name);

  bool passed = true;
  if (options.list) {
    for (const std::string& name : names)
      std::printf("%-55s %3zu cases\n", name.c_str(), library.has(name) ? library.open(name).size() : 0);
  } else if (options.perturb) {
    return run_perturbed(options, library, names) ? 0 : 1;
  } else {
    Sweep sweep(options, library);
    for (const std::string& name : names) sweep.op(*registry().find(name));
    passed = sweep.totals();
  }
  print_names("operators without samples", without_samples);
  if (options.list) print_names("recorded operators that are not registered", missing);
  else std::printf("recorded operators that are not registered: %zu; --list names them\n", missing.size());
  return passed ? 0 : 1;
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
    else if (word == "--perturb") options.perturb = true;
    else {
      std::fprintf(stderr, "usage: test_sweep [--op NAME]... [--list] [--all] [--quiet] [--perturb]\n");
      return 2;
    }
  }
  try {
    return tenon::sweep::run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
