#include "tenon/package/tables_source.h"

#include <cstring>
#include <map>

#include "tenon/base/error.h"

namespace tenon::package {

namespace {
bool is_c_name(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  for (char c : name)
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  return true;
}
}  // namespace

std::string tables_source(const Tables& given, const std::string& weights_file,
                          const std::function<std::string(const std::string&)>& symbol_of) {
  Tables tables = given;
  tables.targets(1u << TENON_TARGET_PORTABLE);
  std::vector<std::byte> bytes = tables.bytes();
  tenon_header header;
  std::memcpy(&header, bytes.data(), sizeof header);

  std::map<size_t, std::string> entries;  // where the distance of a function stands
  for (Id f = 0; f < tables.function_names().size(); ++f) {
    if (tables.is_external(f)) continue;
    const std::string& known = tables.function_names()[f];
    std::string name = symbol_of ? symbol_of(known) : known;
    expect(is_c_name(name), "function ", quoted(name), " has no name that C can have");
    entries[header.functions.offset + f * sizeof(tenon_function) + offsetof(tenon_function, entry) +
            TENON_TARGET_PORTABLE * sizeof(int64_t)] = name;
  }

  std::string out = "__asm__(\n";
  auto line = [&](std::string_view text) { out.append("    \"").append(text).append("\\n\"\n"); };
  line(".section " TENON_SECTION_TABLES ",\\\"a\\\",%progbits");
  line(".balign 64");
  line(".globl " TENON_SYMBOL_TABLES);
  line(".type " TENON_SYMBOL_TABLES ",%object");
  line(TENON_SYMBOL_TABLES ":");
  std::string words;
  for (size_t at = 0; at < bytes.size(); at += 8) {
    auto entry = entries.find(at);
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    words += words.empty() ? ".quad " : ",";
    if (entry != entries.end()) words += entry->second + "-" TENON_SYMBOL_TABLES;
    else append_text(words, word);
    if (words.size() > 100 || at + 8 >= bytes.size()) {
      line(words);
      words.clear();
    }
  }
  line(".size " TENON_SYMBOL_TABLES ", .-" TENON_SYMBOL_TABLES);
  if (!weights_file.empty()) {
    line(".section " TENON_SECTION_WEIGHTS ",\\\"\\\",%progbits");
    line(".balign 4096");
    line(text(".incbin \\\"", weights_file, "\\\""));
  }
  line(".text");
  return out + ");\n";
}

}  // namespace tenon::package
