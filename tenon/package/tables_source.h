// The tables of a program as a C file, for artifacts that a compiler and a linker make from emitted source.
#pragma once
#include <functional>
#include <string>

#include "tenon/package/tables.h"

namespace tenon::package {

/// One assembler statement: the tables with the distances of their functions, which other files define with hidden
/// visibility, and the section of weights, read from `weights_file` (empty: none). Any assembler
/// of GNU syntax takes it, for any processor. The flags with which the object files become an artifact are
/// `artifact_link_flags`.
/// `symbol_of` gives a function's name in those files.
std::string tables_source(const Tables& tables, const std::string& weights_file,
                          const std::function<std::string(const std::string&)>& symbol_of = {});

constexpr const char* artifact_link_flags =
    "-shared -nostdlib -Wl,-z,noexecstack -Wl,-z,relro -Wl,-z,now -Wl,--build-id";

}  // namespace tenon::package
