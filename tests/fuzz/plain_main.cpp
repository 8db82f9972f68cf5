// The driver of a fuzz target where there is no libFuzzer: inputs drawn from a seed, at the full speed of a build
// without sanitizers. fuzz_NAME [--seed N] [--runs N] [--seconds N] [--length N] [FILE...]; files are tried as they
// are. --print FILE: the program that an input stands for. Ends with a status of 1, and the input in
// ./found-SEED-NUMBER, where one fails or works for more than ten seconds.
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Of the targets whose inputs are choices: what was chosen, as JSON on the standard output.
extern "C" __attribute__((weak)) void tenon_fuzz_print(const uint8_t* data, size_t size);

namespace {

std::vector<uint8_t> input;
char name[64];  // of the file that keeps the input if it fails

extern "C" void keep(int signal) {
  // Only what a handler of signals may call; the input is complete when it is tried.
  int file = ::creat(name, 0644);
  if (file >= 0) {
    static_cast<void>(!::write(file, input.data(), input.size()));
    ::close(file);
  }
  constexpr char text[] = "failed; the input is kept in ";
  static_cast<void>(!::write(2, text, sizeof text - 1));
  static_cast<void>(!::write(2, name, std::strlen(name)));
  static_cast<void>(!::write(2, "\n", 1));
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void attempt() {
  itimerval limit{{}, {10, 0}};  // of work, not of waiting
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = 1, runs = UINT64_MAX, seconds = UINT64_MAX, length = 600, done = 0;
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGPROF}) ::signal(signal, keep);
  bool prints = false;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    if (option == "--print" && tenon_fuzz_print) {
      prints = true;
      continue;
    }
    uint64_t* number = option == "--seed"      ? &seed
                       : option == "--runs"    ? &runs
                       : option == "--seconds" ? &seconds
                       : option == "--length"  ? &length
                                               : nullptr;
    if (number) {
      if (++i == argc) return std::fprintf(stderr, "%s: expected a number after %s\n", argv[0], argv[i - 1]), 2;
      *number = std::strtoull(argv[i], nullptr, 10);
      continue;
    }
    std::ifstream file(option, std::ios::binary);
    if (!file) return std::fprintf(stderr, "%s: cannot read %s\n", argv[0], argv[i]), 2;
    input.assign(std::istreambuf_iterator<char>(file), {});
    std::snprintf(name, sizeof name, "found-file-%d", i);
    if (prints) tenon_fuzz_print(input.data(), input.size());
    else attempt();
    ++done, runs = done;
  }
  if (prints) return 0;
  auto start = std::chrono::steady_clock::now();
  auto spent = [&] {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count();
  };
  for (; done < runs && static_cast<uint64_t>(spent()) < seconds; ++done) {
    std::mt19937_64 random(seed * 0x9e3779b97f4a7c15 + done);
    input.resize(1 + random() % length);
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
    std::snprintf(name, sizeof name, "found-%llu-%llu", static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(done));
    attempt();
  }
  std::printf("Done %llu runs in %lld second(s)\n", static_cast<unsigned long long>(done),
              static_cast<long long>(spent()));
}
