// Turns linked families into what libtenon carries: make_images OUT.cpp [FAMILY TARGET LINKED]...
// A family that is more than code and constants (data, relocations, undefined symbols), or whose functions cannot be
// entered by an indirect branch, ends the build with a sentence that says which and why.
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Function {
  std::string name;
  bool host = false;
  uint64_t offset = 0, size = 0;
  bool operator<(const Function& other) const { return name < other.name; }
};
struct Image {
  std::string family, target, file;
  std::vector<char> bytes;
  std::vector<Function> functions;
};

template <class... Parts>
[[noreturn]] void refuse(const Image& image, const Parts&... parts) {
  std::cerr << "kernels: family " << image.family << " for " << image.target << ' ';
  (std::cerr << ... << parts) << '\n';
  std::exit(1);
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::cerr << "make_images: cannot read " << path << '\n';
    std::exit(1);
  }
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

// The linker wrote the file a moment ago, so it is taken at its word.
class Linked {
 public:
  explicit Linked(const std::string& path) : content_(read(path)) {
    const auto* header = at<Elf64_Ehdr>(0);
    sections_ = at<Elf64_Shdr>(header->e_shoff);
    count_ = header->e_shnum;
    names_ = at<char>(sections_[header->e_shstrndx].sh_offset);
  }
  size_t count() const { return count_; }
  const Elf64_Shdr& section(size_t i) const { return sections_[i]; }
  std::string name(const Elf64_Shdr& section) const { return names_ + section.sh_name; }
  template <class T>
  const T* at(uint64_t offset) const {
    return reinterpret_cast<const T*>(content_.data() + offset);
  }
  template <class T, class F>
  void each(uint32_t type, F&& f) const {
    for (size_t i = 0; i < count_; ++i)
      if (sections_[i].sh_type == type)
        for (uint64_t k = 0; k < sections_[i].sh_size / sizeof(T); ++k)
          f(sections_[i], at<T>(sections_[i].sh_offset)[k]);
  }
  std::string symbol_name(const Elf64_Shdr& table, const Elf64_Sym& symbol) const {
    return at<char>(sections_[table.sh_link].sh_offset) + symbol.st_name;
  }

 private:
  std::string content_;
  const Elf64_Shdr* sections_ = nullptr;
  size_t count_ = 0;
  const char* names_ = nullptr;
};

void take_bytes(const Linked& linked, Image& image) {
  for (size_t i = 0; i < linked.count(); ++i) {
    const Elf64_Shdr& section = linked.section(i);
    if (!(section.sh_flags & SHF_ALLOC) || section.sh_size == 0) continue;
    std::string name = linked.name(section);
    if (name == ".image" && !(section.sh_flags & SHF_WRITE)) {
      const char* bytes = linked.at<char>(section.sh_offset);
      image.bytes.assign(bytes, bytes + section.sh_size);
    } else {
      refuse(image, "has ", section.sh_size, " bytes of ", name,
             "; expected code and constants alone: no variables, no statics, no tables of pointers");
    }
  }
}

void check_symbols(const Linked& linked, const Image& image) {
  linked.each<Elf64_Sym>(SHT_SYMTAB, [&](const Elf64_Shdr& table, const Elf64_Sym& symbol) {
    std::string name = linked.symbol_name(table, symbol);
    if (symbol.st_shndx == SHN_UNDEF && !name.empty())
      refuse(image, "refers to ", name, ", which it does not define; kernels call no library");
  });
}

void check_relocations(const Linked& linked, const Image& image) {
  linked.each<Elf64_Rela>(SHT_RELA, [&](const Elf64_Shdr& table, const Elf64_Rela& relocation) {
    if (linked.name(linked.section(table.sh_info)) != ".image") return;
    switch (ELF64_R_TYPE(relocation.r_info)) {
      case R_X86_64_NONE:
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
      case R_X86_64_PC64: return;
      default:
        refuse(image, "has a relocation of type ", ELF64_R_TYPE(relocation.r_info), " at ", relocation.r_offset,
               "; expected addresses relative to the code alone");
    }
  });
}

void take_functions(const Linked& linked, Image& image) {
  std::string prefix = "tenon_" + image.target + "_", host = "host_";
  linked.each<Elf64_Sym>(SHT_SYMTAB, [&](const Elf64_Shdr& table, const Elf64_Sym& symbol) {
    std::string name = linked.symbol_name(table, symbol);
    if (name.compare(0, prefix.size(), prefix) != 0 || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return;
    Function f{name.substr(prefix.size()), false, symbol.st_value, symbol.st_size};
    if (f.name.find('.') != f.name.npos) return;  // a part that the compiler split off
    if (f.name.compare(0, host.size(), host) == 0) {
      f.host = true;
      f.name = f.name.substr(host.size());
    }
    if (std::memcmp(image.bytes.data() + f.offset, "\xf3\x0f\x1e\xfa", 4) != 0)
      refuse(image, "has ", f.name, ", which does not start with endbr64; compile it with -fcf-protection=full");
    image.functions.push_back(f);
  });
  if (image.functions.empty()) refuse(image, "has no function; define one with TENON_KERNEL or TENON_HOST_FUNCTION");
  std::sort(image.functions.begin(), image.functions.end());
}

void check_names(const std::vector<Image>& images) {
  std::map<std::string, const Image*> owners;
  for (const Image& image : images) {
    for (const Function& f : image.functions) {
      auto [owner, added] = owners.emplace(f.name, &image);
      if (!added && owner->second->family != image.family)
        refuse(image, "defines ", f.name, ", as family ", owner->second->family, " does; rename one");
    }
  }
  for (const Image& image : images)
    for (const auto& [name, owner] : owners)
      if (owner->family == image.family && !std::any_of(image.functions.begin(), image.functions.end(),
                                                        [&name = name](const Function& f) { return f.name == name; }))
        refuse(image, "lacks ", name, ", which it has for ", owner->target, "; define it for every target");
}

std::string target_name(const std::string& target) {
  if (target == "portable") return "TENON_TARGET_PORTABLE";
  return "TENON_TARGET_X86_64_" + std::string(target == "v3" ? "V3" : "V4");
}

uint64_t checksum(const std::vector<char>& bytes) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string source(const std::vector<Image>& images) {
  std::ostringstream out;
  out << "// Made by make_images.\n#include \"kernels/library.h\"\n\n";
  for (size_t i = 0; i < images.size(); ++i) {
    const Image& image = images[i];
    std::string label = "tenon_kernel_image_" + std::to_string(i);
    out << "asm(R\"(\n.pushsection .text\n.balign 64\n.globl " << label << "\n.hidden " << label << "\n"
        << label << ":\n# checksum " << checksum(image.bytes) << ", so that other bytes are another source\n.incbin \""
        << image.file << "\"\n";
    for (const Function& f : image.functions) {  // for profilers and debuggers
      std::string name = "tenon_" + image.target + "_" + f.name;
      out << ".set " << name << ", " << label << " + " << f.offset << "\n.type " << name << ", @function\n.size "
          << name << ", " << f.size << "\n";
    }
    out << ".popsection\n)\");\nextern \"C\" const std::byte " << label << "[];\n\n";
  }
  out << "namespace tenon::kernels {\nnamespace {\n\n";
  for (size_t i = 0; i < images.size(); ++i) {
    out << "const Symbol symbols_" << i << "[] = {\n";
    for (const Function& f : images[i].functions)
      out << "    {\"" << f.name << "\", Kind::" << (f.host ? "host_function" : "kernel") << ", " << f.offset << ", "
          << f.size << "},\n";
    out << "};\n";
  }
  out << "\n}  // namespace\n\nstd::span<const Image> images() {\n  static const Image all[] = {\n";
  for (size_t i = 0; i < images.size(); ++i)
    out << "      {\"" << images[i].family << "\", " << target_name(images[i].target) << ", {tenon_kernel_image_" << i
        << ", " << images[i].bytes.size() << "}, symbols_" << i << "},\n";
  out << "  };\n  return all;\n}\n\n}  // namespace tenon::kernels\n";
  return out.str();
}

void write(const std::string& path, const std::string& content) {
  if (std::ifstream(path) && read(path) == content) return;  // and what was built from it stays, too
  std::ofstream out(path, std::ios::binary);
  out << content;
  if (!out.flush()) {
    std::cerr << "make_images: cannot write " << path << '\n';
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc % 3 != 2) {
    std::cerr << "usage: make_images OUT.cpp [FAMILY TARGET LINKED]...\n";
    return 2;
  }
  std::string out = argv[1];
  std::vector<Image> images;
  for (int i = 2; i < argc; i += 3) {
    Image image{argv[i], argv[i + 1], std::string(argv[i + 2]) + ".image", {}, {}};
    Linked linked(argv[i + 2]);
    check_symbols(linked, image);
    take_bytes(linked, image);
    check_relocations(linked, image);
    take_functions(linked, image);
    images.push_back(image);
  }
  std::stable_sort(images.begin(), images.end(), [](const Image& a, const Image& b) { return a.family < b.family; });
  check_names(images);
  for (const Image& image : images) write(image.file, std::string(image.bytes.begin(), image.bytes.end()));
  write(out, source(images));
}
