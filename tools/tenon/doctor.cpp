#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "kernels/library.h"
#include "tenon/io/json.h"
#include "tenon/rules/registry.h"
#include "tools/tenon/files.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {
namespace {

std::string find_program(const std::string& name) {
  if (name.find('/') != name.npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "", ':')) {
    std::string full = folder + "/" + name;
    if (!folder.empty() && ::access(full.c_str(), X_OK) == 0) return full;
  }
  return "";
}

std::string shell_quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string first_line_of(const std::string& program) {
  FILE* pipe = ::popen((shell_quoted(program) + " --version 2>/dev/null").c_str(), "r");
  if (!pipe) return "";
  std::array<char, 400> line{};
  bool got = std::fgets(line.data(), line.size(), pipe) != nullptr;
  while (std::fgetc(pipe) != EOF) {}
  return ::pclose(pipe) == 0 && got ? std::string(trim(line.data())) : "";
}

std::string compiler() {
  const char* chosen = std::getenv("CXX");
  for (const std::string& name :
       {std::string(chosen ? chosen : ""), std::string("c++"), std::string("g++"), std::string("clang++")}) {
    std::string path = name.empty() ? "" : find_program(name);
    if (path.empty()) continue;
    if (std::string version = first_line_of(path); !version.empty()) return text(path, ", ", quoted(version, 200));
  }
  return "none found (c++, g++, clang++ or $CXX); the interpreter needs none";
}

std::string cpu_features() {
  std::vector<std::string> found;
#if defined(__x86_64__)
#define TENON_FEATURE(feature) \
  if (__builtin_cpu_supports(feature)) found.push_back(feature)
  TENON_FEATURE("sse4.2");
  TENON_FEATURE("avx");
  TENON_FEATURE("avx2");
  TENON_FEATURE("fma");
  TENON_FEATURE("avx512f");
  TENON_FEATURE("avx512dq");
  TENON_FEATURE("avx512bw");
  TENON_FEATURE("avx512vl");
  TENON_FEATURE("avx512vnni");
#undef TENON_FEATURE
  return "x86-64: " + (found.empty() ? "no extensions" : join(found, " "));
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

std::string_view kernels_used() {
  switch (kernels::machine_target()) {
    case TENON_TARGET_X86_64_V4: return "AVX-512";
    case TENON_TARGET_X86_64_V3: return "AVX2";
    default: return "portable";
  }
}

}  // namespace

int doctor() {
  JsonLimits json;
  BudgetLimits limits;
  print(text("tenon      ", TENON_VERSION, ", built with ", __VERSION__, "\n"));
  print(text("reads      .pt2 files of PyTorch 2.4 and later (schemas 5 to 8)\n"));
  print(text("writes     .pt2 files as PyTorch 2.15 does (schema 8.20)\n"));
  print(text("operators  ", registry().all().size(), "; tenon ops lists them\n"));
  print(text("processor  ", cpu_features(), "\n"));
  print(text("kernels    ", kernels_used(), "\n"));
  print(text("threads    ", std::thread::hardware_concurrency(), "\n"));
  print(text("compiler   ", compiler(), "\n"));
  print(text("limits     made from a file: ", limits.bytes >> 20, " MiB and ", limits.bytes_per_byte,
             " bytes for each of its own, ", limits.values >> 20, " Mi values, ", limits.weight >> 20,
             " Mi nodes of expressions, depth ", json.depth, "; SECURITY.md has all\n"));
  return ok;
}

}  // namespace tenon::tool
