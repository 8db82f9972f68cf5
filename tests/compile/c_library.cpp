#include "tests/compile/c_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "tenon/base/file.h"
#include "tenon/base/text.h"
#include "tenon/compile/emit_c.h"
#include "tenon/compile/emit_native.h"

namespace tenon::compile {

Folder::Folder() : path(std::filesystem::temp_directory_path() / text("tenon_c_", getpid())) {
  std::filesystem::create_directories(path);
}
Folder::~Folder() { std::filesystem::remove_all(path); }

bool has_c_compiler() { return std::system("cc --version > /dev/null 2>&1") == 0; }

void* build_c(const Folder& folder, const std::string& name, const std::string& source, const std::string& more) {
  std::string c = folder.path / (name + ".c"), so = folder.path / (name + ".so");
  write_file_atomically(c, source);
  // v3 is asked for where it can run: without an fma instruction __builtin_fma would call the C library's.
  std::string target = machine_has(Isa::v3) ? "-march=x86-64-v3 " : "";
  std::string command = text("cc ", c_flags, " -w ", target, more, " -shared -fPIC -o ", so, " ", c, " -lm");
  if (std::system(command.c_str()) != 0) return nullptr;
  return dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace tenon::compile
