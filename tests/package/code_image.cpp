#include "tests/package/code_image.h"

#include <elf.h>

#include <cstring>

#include "tenon/base/error.h"
#include "tenon/base/file.h"

namespace tenon::package {

CodeImage read_code_image(const std::string& path, tenon_target target) {
  std::string file = read_file(path);
  auto header = reinterpret_cast<const Elf64_Ehdr*>(file.data());
  auto sections = reinterpret_cast<const Elf64_Shdr*>(file.data() + header->e_shoff);
  const char* names = file.data() + sections[header->e_shstrndx].sh_offset;
  CodeImage image{target, {}, {}};
  for (int i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr& section = sections[i];
    std::string name = names + section.sh_name;
    expect(section.sh_type != SHT_RELA && name != ".data" && name != ".bss", path, " has section ", name);
    if (name == ".text") {
      auto bytes = std::as_bytes(std::span(file)).subspan(section.sh_offset, section.sh_size);
      image.bytes.assign(bytes.begin(), bytes.end());
    }
    if (section.sh_type != SHT_SYMTAB) continue;
    auto symbols = reinterpret_cast<const Elf64_Sym*>(file.data() + section.sh_offset);
    const char* strings = file.data() + sections[section.sh_link].sh_offset;
    for (size_t k = 0; k < section.sh_size / sizeof(Elf64_Sym); ++k)
      if (ELF64_ST_TYPE(symbols[k].st_info) == STT_FUNC)
        image.symbols.push_back({strings + symbols[k].st_name, symbols[k].st_value, symbols[k].st_size});
  }
  return image;
}

}  // namespace tenon::package
