// C text as a library of this process, by the system's compiler.
#pragma once
#include <filesystem>
#include <string>

namespace tenon::compile {

/// A folder of its own, gone with the object.
struct Folder {
  std::filesystem::path path;
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
};

bool has_c_compiler();
/// A handle of dlopen; null where the text does not compile. `more` are further flags.
void* build_c(const Folder& folder, const std::string& name, const std::string& source, const std::string& more);

}  // namespace tenon::compile
