#include "tenon/artifact/emit_source.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "kernels/library.h"
#include "tenon/artifact/compilation.h"
#include "tenon/artifact/library_text.h"
#include "tenon/base/file.h"
#include "tenon/compile/emit_c.h"
#include "tenon/package/tables_source.h"

extern char** environ;

namespace tenon::artifact {
namespace {

namespace fs = std::filesystem;

/// Functions of the library keep their names apart from those of the program.
std::string library_symbol(const std::string& function, kernels::Kind kind) {
  return (kind == kernels::Kind::kernel ? "tenon_portable_" : "tenon_portable_host_") + function;
}

struct Families {
  std::set<std::string_view> used;
  std::string symbol_of(const std::string& function) {
    for (const kernels::Image& image : kernels::images())
      for (const kernels::Symbol& s : image.symbols)
        if (s.name == function) {
          used.insert(image.family);
          return library_symbol(function, s.kind);
        }
    return function;
  }
};

void write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
}

std::vector<std::string> arguments(const std::vector<std::string>& sources, const std::string& library) {
  std::vector<std::string> out;
  std::string_view flags =
      "-O3 -fPIC -fvisibility=hidden -ffp-contract=off -fwrapv -fno-math-errno -fno-trapping-math -fno-strict-aliasing "
      "-fno-exceptions -fno-stack-protector -fno-asynchronous-unwind-tables -ffreestanding -DTENON_TARGET=portable -I.";
  auto add = [&](std::string_view words) {
    for (const std::string& word : split(words, ' ')) out.push_back(word);
  };
  add(flags);
  out.insert(out.end(), sources.begin(), sources.end());
  add(package::artifact_link_flags);
  out.push_back("-o");
  out.push_back(library);
  return out;
}

/// Writes everything and gives the arguments of the compiler.
std::vector<std::string> write_all(const Executable& executable, const State& state, const fs::path& folder,
                                   const CompileOptions& options, const std::string& library) {
  Compilation compilation(executable, state, options);
  Families families;
  fs::create_directories(folder);
  bool weights = compilation.weights_size() > 0;
  write(folder / "tables.c",
        package::tables_source(compilation.planned().tables, weights ? "weights.bin" : "",
                               [&](const std::string& function) { return families.symbol_of(function); }));
  if (weights) {
    AtomicFile file(folder / "weights.bin");
    std::span<std::byte> bytes = file.write_mapped(compilation.weights_size());
    compilation.fill(bytes);
    file.commit();
  }
  std::vector<std::string> sources = {"kernels.c", "tables.c"};
  for (const SourceText& source : library_text()) {
    bool header = source.path.ends_with(".h");
    if (families.used.empty() || (!source.family.empty() && !families.used.contains(source.family))) continue;
    write(folder / source.path, source.text);
    if (!header) sources.emplace_back(source.path);
  }
  std::vector<std::string> command = arguments(sources, library);
  std::vector<compile::Kernel> kernels;
  for (const auto& kernel : compilation.planned().kernels) kernels.push_back(*kernel);
  write(
      folder / "kernels.c",
      text(
          "/* Build, in this folder (on x86-64 with -march=x86-64-v3 or better, for the sake of speed and of fma):\n\n",
          "   cc -march=native ", join(command, " "),
          "\n\n   Elsewhere leave -march out, and name the compiler of that processor. The result is an artifact as\n",
          "   tenon compile writes them. */\n", compile::emit_c(kernels)));
  return command;
}

}  // namespace

void emit_source(const Executable& executable, const State& state, const std::string& folder,
                 const SourceOptions& options) {
  fs::path to = folder;
  std::error_code error;
  require(!fs::exists(to, error) || (fs::is_directory(to, error) && fs::is_empty(to, error)), folder,
          ": expected a folder that is empty or not there yet");
  fs::path partial = to;
  partial += ".partial";
  fs::remove_all(partial, error);
  try {
    write_all(executable, state, partial, options.compile, options.output);
    fs::remove(to, error);
    fs::rename(partial, to);
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(partial, error);
    fail(folder, ": cannot be written: ", e.code().message());
  } catch (...) {
    fs::remove_all(partial, error);
    throw;
  }
}

void compile_with_c(const Executable& executable, const State& state, const std::string& path,
                    const CompileOptions& options) {
  std::string pattern = (fs::temp_directory_path() / "tenon-XXXXXX").string();
  require(mkdtemp(pattern.data()) != nullptr, "no temporary folder can be made in ",
          fs::temp_directory_path().string());
  struct Removed {
    fs::path folder;
    ~Removed() {
      std::error_code error;
      fs::remove_all(folder, error);
    }
  } temporary{pattern};
  std::vector<std::string> command = write_all(executable, state, temporary.folder, options, "model.so");
  const char* chosen = std::getenv("CC");
  std::string compiler = chosen && *chosen ? chosen : "cc";
#ifdef __x86_64__
  command.insert(command.begin(), "-march=native");
#endif
  command.insert(command.begin(), compiler);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, temporary.folder.c_str());
  pid_t child = 0;
  int failed = posix_spawnp(&child, compiler.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  require(failed == 0, "--backend c needs a C compiler: ", compiler, " cannot be started; install one, name it in CC, ",
          "or leave --backend out");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, compiler, " could not build the emitted source");
  auto built = MappedFile::open((temporary.folder / "model.so").string());
  AtomicFile file(path);
  file.write(built->bytes());
  file.commit();
}

}  // namespace tenon::artifact
