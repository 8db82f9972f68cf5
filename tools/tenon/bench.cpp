// tenon bench: how long a run takes, and where the time goes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include "tenon/artifact/compiled_program.h"
#include "tenon/interp/eager.h"
#include "tenon/io/json.h"
#include "tenon/io/safetensors.h"
#include "tools/tenon/arrays.h"
#include "tools/tenon/files.h"
#include "tools/tenon/progress.h"
#include "tools/tenon/roofline.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

struct KernelTime {
  std::string name;
  size_t calls = 0;  // in one run
  double ms = 0;     // in one run
  double flops = 0, bytes = 0;
  double roofline = 0;  // share of what the machine allows for as many operations and bytes
};

struct Measured {
  double load_ms = 0;  // from the file to the first result
  std::vector<double> runs_ms;
  std::vector<KernelTime> kernels;
  Roofline machine;
  int64_t peak_bytes =
      0;  // on top of what the process had before, the caller's inputs aside; pages of weights included
  double at(double share) const {
    size_t i = static_cast<size_t>(share * static_cast<double>(runs_ms.size() - 1) + 0.5);
    return runs_ms[i];
  }
};

/// A line of /proc/self/status, in bytes: VmRSS is what is resident, VmHWM the most that was. (getrusage would count
/// what the process had that started this one.)
int64_t resident(const std::string& which) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (starts_with(line, which)) return std::strtoll(line.c_str() + which.size() + 1, nullptr, 10) * 1024;
  return 0;
}

/// Runs until the time is over, at least five times.
std::vector<double> repeat(const std::function<void()>& run, double seconds) {
  std::vector<double> out;
  auto begin = Clock::now();
  do {
    auto before = Clock::now();
    run();
    out.push_back(milliseconds(before, Clock::now()));
  } while (out.size() < 5 || (milliseconds(begin, Clock::now()) < seconds * 1e3 && out.size() < 1'000'000));
  std::sort(out.begin(), out.end());
  return out;
}

/// What each kernel takes in one run: the median of many, since a run that is watched may be disturbed like any other.
void add_kernels(Measured& measured, artifact::CompiledSession& session, const std::function<void()>& run,
                 double seconds) {
  // Caches hold what they hold in the middle of many runs: measuring the machine has filled them with other things.
  for (int i = 0; i < 2; ++i) run();
  std::vector<artifact::StepTime> times;
  std::map<std::string, size_t> known;
  std::vector<std::vector<double>> runs_ms;  // of each kernel
  size_t runs = 0;
  auto observe = [&] {
    times.clear();
    run();
    std::vector<double> sums(measured.kernels.size(), 0);
    for (const artifact::StepTime& t : times) {
      if (!t.kernel) continue;
      auto [found, is_new] = known.try_emplace(t.name, measured.kernels.size());
      if (is_new) {
        measured.kernels.push_back({t.name});
        runs_ms.emplace_back();
        sums.push_back(0);
      }
      KernelTime& k = measured.kernels[found->second];
      ++k.calls;
      k.flops += t.flops;
      k.bytes += t.bytes;
      sums[found->second] += static_cast<double>(t.nanoseconds) / 1e6;
    }
    for (size_t i = 0; i < sums.size(); ++i) runs_ms[i].push_back(sums[i]);
    ++runs;
  };
  session.observe(&times);
  repeat(observe, std::min(seconds, 0.5));
  session.observe(nullptr);
  for (size_t i = 0; i < measured.kernels.size(); ++i) {
    std::sort(runs_ms[i].begin(), runs_ms[i].end());
    measured.kernels[i].ms = runs_ms[i][runs_ms[i].size() / 2];
    measured.kernels[i].flops /= static_cast<double>(runs);
    measured.kernels[i].bytes /= static_cast<double>(runs);
  }
  for (KernelTime& k : measured.kernels) {
    k.calls /= runs;
    double least_s = std::max(k.flops / measured.machine.flops, k.bytes / measured.machine.bytes);
    k.roofline = k.ms > 0 ? least_s * 1e3 / k.ms : 0;
  }
  std::sort(measured.kernels.begin(), measured.kernels.end(),
            [](const KernelTime& a, const KernelTime& b) { return a.ms > b.ms; });
}

Measured measure_compiled(const BenchRequest& request) {
  Measured out;
  const int64_t before = resident("VmRSS");
  auto begin = Clock::now();
  auto program =
      artifact::CompiledProgram::open(request.file, {.threads = request.threads, .huge_pages = request.huge_pages});
  const int64_t without_inputs = resident("VmRSS");
  std::vector<CallArg> inputs = compiled_arguments(*program, request.file, request.inputs);
  for (CallArg& input : inputs)
    if (auto* t = input.get<Tensor>(); t && *t) input = contiguous_copy(*t);
  const int64_t of_inputs = resident("VmRSS") - without_inputs;
  artifact::CompiledState state(program);
  artifact::CompiledSession session(program);
  std::function<void()> run = session.repeated(state, inputs);
  run();
  out.load_ms = milliseconds(begin, Clock::now());
  for (int i = 0; i < 2; ++i) run();
  out.peak_bytes = resident("VmHWM") - before - of_inputs;  // the list of times would count
  out.runs_ms = repeat(run, request.seconds);
  out.machine = measure_roofline(request.threads);
  add_kernels(out, session, run, request.seconds);
  return out;
}

Measured measure_interpreted(const BenchRequest& request) {
  Measured out;
  const int64_t before = resident("VmRSS");
  auto begin = Clock::now();
  ExportedProgram program = open_program(request.file, request.open);
  if (request.threads > 0) interp::set_threads(request.threads);
  const int64_t without_inputs = resident("VmRSS");
  std::vector<CallArg> inputs;
  if (!request.inputs.empty()) {
    inputs = arguments_from(expected_inputs(program), load_any_arrays(request.inputs), request.inputs);
  } else {
    auto samples = program.samples ? program.samples() : std::nullopt;
    require(samples.has_value(), request.file, ": the file stores no sample inputs; give them with --inputs FILE.npz");
    inputs = std::move(samples->leaves);
  }
  program.check_payloads();
  for (CallArg& input : inputs)
    if (auto* t = input.get<Tensor>(); t && *t) input = contiguous_copy(*t);
  const int64_t of_inputs = resident("VmRSS") - without_inputs;
  Walk walk(program, {.inputs = inputs});
  std::unique_ptr<State> state = state_of(program);
  Session session(walk.executable());
  auto run = [&] { session.run(*state, inputs, {.absent_are_ones = true}); };
  run();
  out.load_ms = milliseconds(begin, Clock::now());
  for (int i = 0; i < 2; ++i) run();
  out.peak_bytes = resident("VmHWM") - before - of_inputs;  // the list of times would count
  out.runs_ms = repeat(run, request.seconds);
  return out;
}

std::string json_of(const Measured& m) {
  JsonWriter out;
  out.begin_object();
  out.field("min_ms", m.runs_ms.front());
  out.field("median_ms", m.at(0.5));
  out.field("p99_ms", m.at(0.99));
  out.field("runs", static_cast<int64_t>(m.runs_ms.size()));
  out.field("runs_per_second", 1e3 / m.at(0.5));
  out.field("load_ms", m.load_ms);
  out.field("peak_bytes", m.peak_bytes);
  out.key("kernels");
  out.begin_array();
  for (const KernelTime& k : m.kernels) {
    out.begin_object();
    out.field("name", k.name);
    out.field("calls", static_cast<int64_t>(k.calls));
    out.field("ms", k.ms);
    out.field("gflops", k.ms > 0 ? k.flops / k.ms / 1e6 : 0.0);
    out.field("gbytes_per_second", k.ms > 0 ? k.bytes / k.ms / 1e6 : 0.0);
    out.field("roofline", k.roofline);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take() + "\n";
}

std::string line(const char* format, auto... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

std::string text_of(const Measured& m) {
  std::string out = line("%zu runs: min %.3f ms, median %.3f ms, p99 %.3f ms, %.1f runs per second\n", m.runs_ms.size(),
                         m.runs_ms.front(), m.at(0.5), m.at(0.99), 1e3 / m.at(0.5));
  out += line("from the file to the first result %.3f ms, peak memory %.1f MB\n", m.load_ms,
              static_cast<double>(m.peak_bytes) / 1e6);
  if (m.kernels.empty()) return out;
  out += line("this machine: %.1f GFLOP/s, %.1f GB/s\n", m.machine.flops / 1e9, m.machine.bytes / 1e9);
  out += "      ms  calls  GFLOP/s     GB/s  of roofline\n";
  constexpr size_t most = 30;
  for (size_t i = 0; i < m.kernels.size() && i < most; ++i) {
    const KernelTime& k = m.kernels[i];
    out += line("%8.3f %6zu %8.1f %8.1f %10.0f %%  ", k.ms, k.calls, k.ms > 0 ? k.flops / k.ms / 1e6 : 0.0,
                k.ms > 0 ? k.bytes / k.ms / 1e6 : 0.0, 100 * k.roofline);
    out += k.name + "\n";
  }
  if (m.kernels.size() > most) out += text("and ", m.kernels.size() - most, " more\n");
  return out;
}

}  // namespace

int bench_file(const BenchRequest& request) {
  Measured measured;
  {
    Progress progress(text("measuring ", shown(request.file)));
    measured = about(request.file, [&] {
      return is_compiled(request.file) ? measure_compiled(request) : measure_interpreted(request);
    });
  }
  print(request.json ? json_of(measured) : text_of(measured));
  return ok;
}

}  // namespace tenon::tool
