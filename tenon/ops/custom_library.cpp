// Shared libraries with operators of the user.
#include <dlfcn.h>

#include "runtime/include/tenon/operator_table.h"
#include "tenon/base/error.h"
#include "tenon/base/text.h"
#include "tenon/ops/custom_ops.h"

namespace tenon {

void load_custom_operators(const std::string& path) {
  // A name without a slash would be looked for in the system's folders: the user names a file.
  std::string file = path.find('/') == path.npos ? "./" + path : path;
  void* opened = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    const char* why = ::dlerror();
    fail(quoted(path, 400), ": the library cannot be loaded: ", why ? why : "no reason is given");
  }
  // Never closed again: operators stay for the life of the process.
  auto find = reinterpret_cast<const tenon_operator_table* (*)()>(::dlsym(opened, "tenon_operators"));
  require(find != nullptr, quoted(path, 400),
          ": the library does not export tenon_operators; see docs/custom_ops.md for what it must hold");
  const tenon_operator_table* table = find();
  require(table != nullptr, quoted(path, 400), ": tenon_operators() gives no table");
  register_custom_operators(*table, quoted(path, 400));
}

}  // namespace tenon
