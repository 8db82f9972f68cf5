#include "tools/tenon/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace tenon::tool {

namespace {
int output_error = 0;  // of the first write to stdout that failed
}

// Whatever is printed may hold text of a file: this is where it is made harmless to a terminal.
void print(std::string_view text) {
  std::string safe = printable(text, Lines::many);
  if (std::fwrite(safe.data(), 1, safe.size(), stdout) != safe.size() && output_error == 0) output_error = errno;
}

void complain(std::string_view message) {
  std::fflush(stdout);
  std::string line = shortened(printable(text("tenon: ", message), Lines::one)) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void warn_about(const std::string& file, std::string warning) {
  std::string named = file + ": ";
  if (size_t at = warning.find(named); at != warning.npos) warning.erase(at, named.size());
  complain(text(named, "warning: ", warning));
}

std::string shown(std::string_view name) {
  std::string out = quoted(name, 200);
  return out.substr(1, out.size() - 2);
}

void flush_output() {
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno;
  require(output_error == 0, "cannot write to the standard output: ", std::strerror(output_error));
}

void require_writable(const std::string& out) {
  struct stat info {};
  if (::stat(out.c_str(), &info) == 0)
    require(!S_ISDIR(info.st_mode), "cannot write ", quoted(out, 400), ": it is a folder");
  size_t slash = out.rfind('/');
  std::string folder = slash == out.npos ? "." : slash == 0 ? "/" : out.substr(0, slash);
  int error = ::stat(folder.c_str(), &info) == 0 ? 0 : errno;
  require(error == 0 || error == ENOENT || error == ENOTDIR, "cannot write ", quoted(out, 400), ": ",
          std::strerror(error));
  require(error == 0 && S_ISDIR(info.st_mode), "cannot write ", quoted(out, 400), ": there is no folder ",
          quoted(folder, 400));
  error = ::access(folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  require(error == 0, "cannot write ", quoted(out, 400), ": the folder ", quoted(folder, 400),
          " cannot be written to: ", std::strerror(error));
}

void require_other_file(const std::string& in, const std::string& out) {
  struct stat a {
  }, b{};
  bool same =
      ::stat(in.c_str(), &a) == 0 && ::stat(out.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  require(!same, out, ": the output would overwrite the input file ", quoted(in, 400), "; give another name");
}

bool is_compiled(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  std::ifstream in(file, std::ios::binary);
  std::array<char, 4> start{};
  return in.read(start.data(), start.size()) && std::string_view(start.data(), start.size()) ==
                                                    "\x7f"
                                                    "ELF";
}

}  // namespace tenon::tool
