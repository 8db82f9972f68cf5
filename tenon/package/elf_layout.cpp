#include "tenon/package/elf_layout.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "tenon/base/error.h"
#include "tenon/package/checksum.h"
#include "tenon/package/eh_frame.h"

namespace tenon::package {

namespace {

constexpr uint64_t page = 4096;
constexpr std::array<uint8_t, 4> endbr64 = {0xf3, 0x0f, 0x1e, 0xfa};

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

std::string_view suffix(tenon_target target) {
  switch (target) {
    case TENON_TARGET_PORTABLE: return "";
    case TENON_TARGET_X86_64_V3: return ".v3";
    case TENON_TARGET_X86_64_V4: return ".v4";
    case TENON_TARGET_COUNT: break;
  }
  unreachable();
}

class Strings {
 public:
  uint32_t add(std::string_view s) {
    auto at = static_cast<uint32_t>(bytes_.size());
    bytes_ += s;
    bytes_ += '\0';
    return at;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
};

/// The file under construction: sections are appended, and can be written again once addresses are known.
class File {
 public:
  struct Section {
    std::string name;
    Elf64_Shdr header;
  };

  explicit File(size_t headers) : bytes_(headers) { sections_.push_back({"", {}}); }

  uint64_t size() const { return bytes_.size(); }
  void align(uint64_t to) { bytes_.resize(round_up(bytes_.size(), to)); }

  /// Returns the section's number.
  size_t add(std::string name, uint32_t type, uint64_t flags, uint64_t alignment, std::span<const std::byte> content,
             uint64_t entry_size = 0) {
    align(alignment);
    Elf64_Shdr header{};
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_offset = bytes_.size();
    header.sh_addr = flags & SHF_ALLOC ? bytes_.size() : 0;
    header.sh_size = content.size();
    header.sh_addralign = alignment;
    header.sh_entsize = entry_size;
    bytes_.insert(bytes_.end(), content.begin(), content.end());
    sections_.push_back({std::move(name), header});
    return sections_.size() - 1;
  }
  template <class T>
  size_t add(std::string name, uint32_t type, uint64_t flags, uint64_t alignment, const std::vector<T>& content,
             uint64_t entry_size = 0) {
    return add(std::move(name), type, flags, alignment, std::as_bytes(std::span(content)), entry_size);
  }
  size_t add(std::string name, uint32_t type, uint64_t flags, const std::string& content) {
    return add(std::move(name), type, flags, 1, std::as_bytes(std::span(content)));
  }
  Elf64_Shdr& operator[](size_t section) { return sections_[section].header; }
  uint64_t at(size_t section) const { return sections_[section].header.sh_offset; }
  uint64_t end(size_t section) const { return at(section) + sections_[section].header.sh_size; }
  const std::vector<Section>& sections() const { return sections_; }

  void put(uint64_t offset, std::span<const std::byte> content) {
    expect(offset + content.size() <= bytes_.size(), "a write beyond the artifact's end");
    std::copy(content.begin(), content.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void put_section(size_t section, const std::vector<std::byte>& content) {
    expect(content.size() == sections_[section].header.sh_size, "section ", sections_[section].name,
           " changed its size");
    put(at(section), content);
  }
  template <class T>
  void append(const T& object) {
    auto content = std::as_bytes(std::span(&object, 1));
    bytes_.insert(bytes_.end(), content.begin(), content.end());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  std::vector<Section> sections_;
};

template <class T>
void append_bytes(std::vector<std::byte>& out, const T& value) {
  auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// IBT and SHSTK: every entry begins with endbr64, returns are balanced.
std::vector<std::byte> property_note() {
  std::vector<std::byte> out;
  for (uint32_t word : {4u, 16u, 5u, 0x00554e47u, 0xc0000002u, 4u, 3u, 0u}) append_bytes(out, word);
  return out;
}

std::vector<std::byte> build_id_note() {
  std::vector<std::byte> out;
  for (uint32_t word : {4u, uint32_t(build_id_size), uint32_t(NT_GNU_BUILD_ID), 0x00554e47u}) append_bytes(out, word);
  out.resize(out.size() + build_id_size);
  return out;
}

std::vector<uint32_t> sysv_hash_table() { return {1, 2, 1, 0, 0}; }  // one bucket, one symbol

std::vector<std::byte> gnu_hash_table(std::string_view name) {
  uint32_t hash = 5381;
  for (char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  constexpr uint32_t shift = 6;
  std::vector<std::byte> out;
  for (uint32_t word : {1u, 1u, 1u, shift})
    append_bytes(out, word);  // buckets, first symbol, words of the filter, shift
  append_bytes(out, uint64_t(1) << hash % 64 | uint64_t(1) << (hash >> shift) % 64);
  append_bytes(out, uint32_t(1));
  append_bytes(out, hash | 1u);
  return out;
}

struct Placed {
  const CodeImage* image;
  uint64_t offset;  // in .text
};

/// Entries of the tables' functions, once it is known where .text and the tables lie.
void place_functions(Tables& tables, const std::vector<Placed>& images, uint64_t text, uint64_t tables_address) {
  std::map<std::pair<int, std::string>, uint64_t> found;
  uint32_t targets = 0;
  for (const Placed& placed : images) {
    targets |= 1u << placed.image->target;
    for (const CodeSymbol& symbol : placed.image->symbols)
      expect(
          found.emplace(std::pair(int(placed.image->target), symbol.name), text + placed.offset + symbol.offset).second,
          "two functions ", symbol.name, " for one target");
  }
  tables.targets(targets == 0 ? 1u << TENON_TARGET_PORTABLE : targets);
  for (Id f = 0; f < tables.function_names().size(); ++f)
    for (int target = 0; target < TENON_TARGET_COUNT; ++target) {
      if (tables.is_external(f) || !(targets >> target & 1)) continue;
      auto entry = found.find({target, tables.function_names()[f]});
      expect(entry != found.end(), "no code for ", tables.function_names()[f], suffix(tenon_target(target)));
      tables.place(f, tenon_target(target), static_cast<int64_t>(entry->second - tables_address));
    }
}

std::vector<std::byte> join_code(const ArtifactParts& parts, std::vector<Placed>& images) {
  std::vector<std::byte> text;
  for (const CodeImage& image : parts.code) {
    text.resize(round_up(text.size(), 64), std::byte{0xcc});
    images.push_back({&image, text.size()});
    text.insert(text.end(), image.bytes.begin(), image.bytes.end());
    for (const CodeSymbol& symbol : image.symbols) {
      expect(symbol.offset <= image.bytes.size() && symbol.size <= image.bytes.size() - symbol.offset, "function ",
             symbol.name, " goes beyond its image");
      expect(symbol.size >= 4 && std::memcmp(image.bytes.data() + symbol.offset, endbr64.data(), 4) == 0, "function ",
             symbol.name, " does not begin with endbr64");
    }
  }
  return text;
}

}  // namespace

std::vector<std::byte> build_id(std::span<const std::byte> segments, uint64_t build_id_offset,
                                std::span<const std::byte> checksums) {
  std::vector<std::byte> out;
  for (uint64_t seed : {1, 2}) {
    uint64_t parts[3] = {checksum(segments.first(build_id_offset), seed),
                         checksum(segments.subspan(build_id_offset + build_id_size), seed), checksum(checksums, seed)};
    append_bytes(out, checksum(std::as_bytes(std::span(parts)), seed));
  }
  return out;
}

PartChecksums part_checksums(std::span<const std::byte> tables, std::span<const std::byte> code) {
  return {checksum(tables, 1), checksum(code, 2)};
}

ElfLayout lay_out(const ArtifactParts& parts) {
  Tables tables = parts.tables;
  std::vector<Placed> images;
  std::vector<std::byte> text = join_code(parts, images);
  std::vector<UnwoundFunction> functions;  // addresses come below
  for (const Placed& placed : images)
    for (const CodeSymbol& symbol : placed.image->symbols)
      functions.push_back(
          {placed.offset + symbol.offset, std::span(placed.image->bytes).subspan(symbol.offset, symbol.size)});

  constexpr size_t segment_count = 10;
  File file(sizeof(Elf64_Ehdr) + segment_count * sizeof(Elf64_Phdr));
  size_t property = file.add(".note.gnu.property", SHT_NOTE, SHF_ALLOC, 8, property_note());
  size_t id = file.add(".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 4, build_id_note());
  Strings names;
  uint32_t tables_name = names.add(TENON_SYMBOL_TABLES), soname = names.add(parts.soname);
  size_t hash = file.add(".hash", SHT_HASH, SHF_ALLOC, 8, sysv_hash_table(), 4);
  size_t gnu_hash = file.add(".gnu.hash", SHT_GNU_HASH, SHF_ALLOC, 8, gnu_hash_table(TENON_SYMBOL_TABLES));
  size_t dynsym = file.add(".dynsym", SHT_DYNSYM, SHF_ALLOC, 8, std::vector<Elf64_Sym>(2), sizeof(Elf64_Sym));
  size_t dynstr = file.add(".dynstr", SHT_STRTAB, SHF_ALLOC, names.bytes());
  size_t eh_header = file.add(".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 4, make_eh_frame_header(functions, 0, 0));
  size_t eh_frame = file.add(".eh_frame", SHT_PROGBITS, SHF_ALLOC, 8, make_eh_frame(functions, 0));
  size_t table = file.add(TENON_SECTION_TABLES, SHT_PROGBITS, SHF_ALLOC, 64, tables.bytes());
  uint64_t read_only_end = file.size();
  file.align(page);
  size_t code = file.add(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, page, text);
  std::vector<Elf64_Dyn> dynamic_entries(8);
  file.align(page);
  size_t dynamic = file.add(".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, page, dynamic_entries, sizeof(Elf64_Dyn));
  file.align(page);  // what is protected after loading are whole pages
  uint64_t loaded_end = file.size();

  uint64_t weights_size = tables.weights_size();
  ElfLayout layout;
  layout.weights_size = weights_size;
  std::vector<Elf64_Sym> symbols(1);
  Strings symbol_names;
  for (const Placed& placed : images)
    for (const CodeSymbol& symbol : placed.image->symbols) {
      Elf64_Sym s{};
      s.st_name = symbol_names.add(symbol.name + std::string(suffix(placed.image->target)));
      s.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
      s.st_shndx = static_cast<uint16_t>(code);
      s.st_value = file.at(code) + placed.offset + symbol.offset;
      s.st_size = symbol.size;
      symbols.push_back(s);
    }
  auto first_global = static_cast<uint32_t>(symbols.size());
  Elf64_Sym tables_symbol{};
  tables_symbol.st_name = symbol_names.add(TENON_SYMBOL_TABLES);
  tables_symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  tables_symbol.st_shndx = static_cast<uint16_t>(table);
  tables_symbol.st_value = file.at(table);
  tables_symbol.st_size = file[table].sh_size;
  symbols.push_back(tables_symbol);
  size_t symtab = file.add(".symtab", SHT_SYMTAB, 0, 8, symbols, sizeof(Elf64_Sym));
  size_t strtab = file.add(".strtab", SHT_STRTAB, 0, symbol_names.bytes());
  uint64_t blocks = (weights_size + checksum_block - 1) / checksum_block;
  size_t checksums = file.add(TENON_SECTION_CHECKSUMS, SHT_PROGBITS, 0, 8,
                              std::vector<std::byte>(sizeof(ChecksumHeader) + 8 * blocks + sizeof(PartChecksums)));
  layout.checksums_offset = file.at(checksums);
  layout.checksums_size = file[checksums].sh_size;
  layout.tables_offset = file.at(table);
  layout.tables_size = file[table].sh_size;
  layout.code_offset = file.at(code);
  layout.code_size = file[code].sh_size;
  layout.build_id_offset = file.at(id) + 16;

  file[hash].sh_link = file[gnu_hash].sh_link = static_cast<uint32_t>(dynsym);
  file[dynsym].sh_link = file[dynamic].sh_link = static_cast<uint32_t>(dynstr);
  file[dynsym].sh_info = 1;
  file[symtab].sh_link = static_cast<uint32_t>(strtab);
  file[symtab].sh_info = first_global;

  Strings section_names;
  std::vector<uint32_t> name_of;
  for (const File::Section& section : file.sections()) name_of.push_back(section_names.add(section.name));
  uint32_t weights_name = section_names.add(TENON_SECTION_WEIGHTS);
  name_of.push_back(section_names.add(".shstrtab"));
  size_t shstrtab = file.add(".shstrtab", SHT_STRTAB, 0, section_names.bytes());
  file.align(8);
  uint64_t section_headers = file.size();
  size_t section_count = file.sections().size() + (weights_size > 0);
  uint64_t weights_offset = round_up(section_headers + section_count * sizeof(Elf64_Shdr), page);
  for (size_t i = 0; i < file.sections().size(); ++i) {
    Elf64_Shdr header = file.sections()[i].header;
    header.sh_name = name_of[i];
    file.append(header);
  }
  if (weights_size > 0) {
    Elf64_Shdr header{};
    header.sh_name = weights_name;
    header.sh_type = SHT_PROGBITS;
    header.sh_offset = weights_offset;
    header.sh_size = weights_size;
    header.sh_addralign = page;
    file.append(header);
  }
  file.align(page);

  // Addresses are known: what depends on them.
  for (UnwoundFunction& function : functions) function.address += file.at(code);
  file.put_section(eh_frame, make_eh_frame(functions, file.at(eh_frame)));
  file.put_section(eh_header, make_eh_frame_header(functions, file.at(eh_header), file.at(eh_frame)));
  place_functions(tables, images, file.at(code), file.at(table));
  file.put_section(table, tables.bytes());
  tables_symbol.st_name = tables_name;
  file.put(file.at(dynsym) + sizeof(Elf64_Sym), std::as_bytes(std::span(&tables_symbol, 1)));
  dynamic_entries = {{DT_SONAME, {soname}},
                     {DT_HASH, {file.at(hash)}},
                     {DT_GNU_HASH, {file.at(gnu_hash)}},
                     {DT_STRTAB, {file.at(dynstr)}},
                     {DT_SYMTAB, {file.at(dynsym)}},
                     {DT_STRSZ, {names.bytes().size()}},
                     {DT_SYMENT, {sizeof(Elf64_Sym)}},
                     {DT_NULL, {0}}};
  file.put(file.at(dynamic), std::as_bytes(std::span(dynamic_entries)));

  auto segment = [&](uint32_t type, uint32_t flags, uint64_t offset, uint64_t end, uint64_t alignment) {
    return Elf64_Phdr{type, flags, offset, offset, offset, end - offset, end - offset, alignment};
  };
  std::array<Elf64_Phdr, segment_count> segments = {
      segment(PT_LOAD, PF_R, 0, read_only_end, page),
      segment(PT_LOAD, PF_R | PF_X, file.at(code), file.end(code), page),
      segment(PT_LOAD, PF_R | PF_W, file.at(dynamic), loaded_end, page),
      segment(PT_DYNAMIC, PF_R | PF_W, file.at(dynamic), file.end(dynamic), 8),
      segment(PT_NOTE, PF_R, file.at(property), file.end(property), 8),
      segment(PT_NOTE, PF_R, file.at(id), file.end(id), 4),
      segment(0x6474e553 /* PT_GNU_PROPERTY */, PF_R, file.at(property), file.end(property), 8),
      segment(PT_GNU_EH_FRAME, PF_R, file.at(eh_header), file.end(eh_header), 4),
      segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16),
      segment(PT_GNU_RELRO, PF_R, file.at(dynamic), loaded_end, 1),
  };
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_shoff = section_headers;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = segment_count;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(section_count);
  header.e_shstrndx = static_cast<uint16_t>(shstrtab);
  file.put(0, std::as_bytes(std::span(&header, 1)));
  file.put(sizeof header, std::as_bytes(std::span(segments)));
  layout.head = file.take();
  expect(layout.head.size() == weights_offset, "the weights were expected at ", weights_offset);
  return layout;
}

}  // namespace tenon::package
