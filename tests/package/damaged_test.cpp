// Files that are no artifacts, or damaged ones: a sentence for each, and never a crash.
#include <elf.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/verify.h"
#include "tenon/base/error.h"
#include "tenon/base/file.h"
#include "tenon/package/artifact.h"
#include "tests/package/sample.h"

namespace tenon::package {
namespace {

using Bytes = std::vector<std::byte>;

std::string refusal(std::span<const std::byte> bytes) {
  try {
    Artifact::parse(bytes, "file").verify_checksums();
  } catch (const Error& error) { return error.what(); }
  return "accepted";
}

template <class T>
T* at(Bytes& bytes, uint64_t offset) {
  return reinterpret_cast<T*>(bytes.data() + offset);
}
Elf64_Ehdr& header(Bytes& bytes) { return *at<Elf64_Ehdr>(bytes, 0); }
Elf64_Phdr& segment(Bytes& bytes, uint32_t type, int skip = 0) {
  for (int i = 0; i < header(bytes).e_phnum; ++i) {
    auto found = at<Elf64_Phdr>(bytes, header(bytes).e_phoff + i * sizeof(Elf64_Phdr));
    if (found->p_type == type && skip-- == 0) return *found;
  }
  fail("no such segment");
}
Elf64_Shdr& section(Bytes& bytes, std::string_view name) {
  auto sections = at<Elf64_Shdr>(bytes, header(bytes).e_shoff);
  for (int i = 0; i < header(bytes).e_shnum; ++i)
    if (name == at<char>(bytes, sections[header(bytes).e_shstrndx].sh_offset + sections[i].sh_name)) return sections[i];
  fail("no such section");
}
Elf64_Dyn& dynamic_entry(Bytes& bytes, int64_t tag) {
  for (auto entry = at<Elf64_Dyn>(bytes, segment(bytes, PT_DYNAMIC).p_offset);; ++entry)
    if (entry->d_tag == tag) return *entry;
}
tenon_header& tables(Bytes& bytes) { return *at<tenon_header>(bytes, section(bytes, TENON_SECTION_TABLES).sh_offset); }
template <class T>
T* table(Bytes& bytes, tenon_table where) {
  return at<T>(bytes, section(bytes, TENON_SECTION_TABLES).sh_offset + where.offset);
}

struct Case {
  const char* name;
  std::function<void(Bytes&)> change;
  const char* says;
};

class Damaged : public testing::TestWithParam<Case> {};

TEST_P(Damaged, gets_a_sentence) {
  Bytes bytes = sample_bytes();
  GetParam().change(bytes);
  std::string message = refusal(bytes);
  EXPECT_NE(message.find(GetParam().says), message.npos) << message;
}

const Case cases[] = {
    {"nothing", [](Bytes& b) { b.clear(); }, "it is empty"},
    {"some_bytes", [](Bytes& b) { b.resize(20); }, "shorter than the header"},
    {"a_text", [](Bytes& b) { std::memset(b.data(), 'a', 64); }, "it is no ELF file"},
    {"class_32", [](Bytes& b) { header(b).e_ident[EI_CLASS] = ELFCLASS32; }, "no 64-bit little-endian"},
    {"an_executable", [](Bytes& b) { header(b).e_type = ET_EXEC; }, "no shared object"},
    {"other_processor", [](Bytes& b) { header(b).e_machine = EM_RISCV; }, "unknown processor"},
    {"no_segments", [](Bytes& b) { header(b).e_phnum = 0; }, "no segments"},
    {"no_sections", [](Bytes& b) { header(b).e_shnum = 0; }, "no section headers"},
    {"segments_elsewhere", [](Bytes& b) { header(b).e_phoff = ~uint64_t(0) - 8; }, "truncated"},
    {"sections_elsewhere", [](Bytes& b) { header(b).e_shoff = b.size() - 8; }, "truncated"},
    {"needs_a_library", [](Bytes& b) { dynamic_entry(b, DT_SONAME).d_tag = DT_NEEDED; }, "needs another library"},
    {"an_initialiser", [](Bytes& b) { dynamic_entry(b, DT_SONAME).d_tag = DT_INIT; },
     "code that runs when it is loaded"},
    {"an_initialiser_array", [](Bytes& b) { dynamic_entry(b, DT_SONAME).d_tag = DT_INIT_ARRAY; },
     "code that runs when"},
    {"relocations", [](Bytes& b) { dynamic_entry(b, DT_SONAME).d_tag = DT_RELA; }, "needs relocations"},
    {"text_relocations",
     [](Bytes& b) {
       dynamic_entry(b, DT_SONAME) = {DT_FLAGS, {DF_TEXTREL}};
     },
     "needs relocations"},
    {"a_run_path", [](Bytes& b) { dynamic_entry(b, DT_SONAME).d_tag = DT_RUNPATH; },
     "an entry that artifacts do not have"},
    {"dynamic_without_end", [](Bytes& b) { dynamic_entry(b, DT_NULL).d_tag = DT_STRSZ; }, "does not end"},
    {"writable_code", [](Bytes& b) { segment(b, PT_LOAD, 1).p_flags |= PF_W; }, "writable and executable"},
    {"writable_data", [](Bytes& b) { segment(b, PT_GNU_RELRO).p_memsz = 0; }, "writable data"},
    {"writable_tables", [](Bytes& b) { segment(b, PT_LOAD, 0).p_flags |= PF_W; }, "writable data"},
    {"executable_stack", [](Bytes& b) { segment(b, PT_GNU_STACK).p_flags |= PF_X; }, "executable stack"},
    {"no_stack", [](Bytes& b) { segment(b, PT_GNU_STACK).p_type = PT_NULL; }, "executable stack"},
    {"an_interpreter", [](Bytes& b) { segment(b, PT_NOTE).p_type = PT_INTERP; }, "an executable"},
    {"thread_locals", [](Bytes& b) { segment(b, PT_NOTE).p_type = PT_TLS; }, "thread-local"},
    {"unknown_segment", [](Bytes& b) { segment(b, PT_NOTE).p_type = 0x70000000; }, "unknown kind"},
    {"uninitialised_data", [](Bytes& b) { segment(b, PT_LOAD, 2).p_memsz += 1 << 20; }, "uninitialised data"},
    {"overlapping_segments", [](Bytes& b) { segment(b, PT_LOAD, 1).p_vaddr = 0; }, "overlap"},
    {"odd_segment", [](Bytes& b) { segment(b, PT_LOAD, 1).p_vaddr += 8; }, "cannot be mapped"},
    {"far_segment", [](Bytes& b) { segment(b, PT_LOAD, 2).p_vaddr = uint64_t(1) << 40; }, "cannot be mapped"},
    {"segment_beyond_the_end", [](Bytes& b) { segment(b, PT_LOAD, 2).p_offset += 1 << 20; }, "truncated"},
    {"no_tables", [](Bytes& b) { section(b, TENON_SECTION_TABLES).sh_name = 0; }, "no section .tenon.tables"},
    {"tables_elsewhere", [](Bytes& b) { section(b, TENON_SECTION_TABLES).sh_addr += 64; }, "where they are loaded"},
    {"relocation_section", [](Bytes& b) { section(b, ".hash").sh_type = SHT_RELA; }, "needs relocations"},
    {"odd_weights", [](Bytes& b) { section(b, TENON_SECTION_WEIGHTS).sh_offset -= 8; }, "weights cannot be mapped"},
    {"short_weights", [](Bytes& b) { section(b, TENON_SECTION_WEIGHTS).sh_size -= 64; }, "weights are truncated"},
    {"weights_cut_off", [](Bytes& b) { b.resize(b.size() - 1); }, "truncated"},
    {"other_magic", [](Bytes& b) { tables(b).magic[0] = 'x'; }, "do not begin as those of Tenon"},
    {"next_version", [](Bytes& b) { tables(b).abi_major = 9; }, "version 9.1, this runtime"},
    {"next_minor", [](Bytes& b) { tables(b).abi_minor = 77; }, "version 1.77, this runtime"},
    {"size_of_tables", [](Bytes& b) { tables(b).size -= 8; }, "tables are truncated"},
    {"table_beyond", [](Bytes& b) { tables(b).exprs.count = 1 << 30; }, "exprs lie outside"},
    {"strings_without_end", [](Bytes& b) { table<char>(b, tables(b).strings)[tables(b).strings.count - 1] = 'x'; },
     "strings do not end"},
    {"control_character", [](Bytes& b) { table<char>(b, tables(b).strings)[1] = '\033'; }, "control character"},
    {"no_target", [](Bytes& b) { tables(b).targets = 0; }, "no known target"},
    {"function_outside", [](Bytes& b) { table<tenon_function>(b, tables(b).functions)->entry[1] = 8; },
     "not lie in the code"},
    {"unknown_operation", [](Bytes& b) { *table<int64_t>(b, tables(b).words) = 200; }, "unknown operation"},
    {"unknown_symbol", [](Bytes& b) { *table<int64_t>(b, tables(b).words) = TENON_WORD(TENON_OP_SYMBOL, 99); },
     "symbol that is not there"},
    {"unknown_dtype", [](Bytes& b) { table<tenon_buffer>(b, tables(b).buffers)->dtype = 77; }, "unknown dtype"},
    {"unknown_role", [](Bytes& b) { table<tenon_buffer>(b, tables(b).buffers)->role = 9; }, "unknown role"},
    {"too_many_dimensions", [](Bytes& b) { table<tenon_buffer>(b, tables(b).buffers)->rank = 17; },
     "too many dimensions"},
    {"constant_outside",
     [](Bytes& b) {
       for (uint64_t i = 0; i < tables(b).buffers.count; ++i) {
         auto& buffer = table<tenon_buffer>(b, tables(b).buffers)[i];
         if (buffer.role == TENON_ROLE_CONSTANT) buffer.weights = 1 << 20;
       }
     },
     "outside the weights"},
    {"unknown_step", [](Bytes& b) { table<tenon_step>(b, tables(b).steps)->kind = 42; }, "unknown kind"},
    {"a_step_twice", [](Bytes& b) { tables(b).on_state = tables(b).main; }, "stands in two lists"},
    {"no_plan",
     [](Bytes& b) {
       auto& s = *table<tenon_step>(b, tables(b).steps);
       s = {TENON_STEP_CHECK, 0, 0, TENON_NONE, TENON_NONE, 0};
     },
     "before it has memory"},
    {"no_entry_bind", [](Bytes& b) { tables(b).entry.count = 0; }, "before it is bound"},
    {"a_write_to_a_constant",
     [](Bytes& b) {
       tenon_list args = table<tenon_instance>(b, tables(b).instances)->args;
       for (uint32_t i = 0; i < args.count; ++i) table<uint32_t>(b, tables(b).refs)[args.first + i] |= TENON_WRITTEN;
     },
     "may only read"},
    {"other_weights", [](Bytes& b) { b.back() ^= std::byte{1}; }, "weights are damaged between"},
    {"other_code", [](Bytes& b) { *at<char>(b, section(b, ".text").sh_offset + 9) ^= 1; },
     "code or its tables are damaged"},
};
INSTANTIATE_TEST_SUITE_P(, Damaged, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(DamagedFile, a_foreign_shared_object_is_refused) {
  EXPECT_THROW(Artifact::open(TENON_RUNTIME_SHARED), Error);
  try {
    Artifact::open(TENON_RUNTIME_SHARED);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("is not an artifact of Tenon"), std::string::npos) << error.what();
  }
}

TEST(DamagedFile, every_length_is_refused) {
  Bytes bytes = sample_bytes();
  for (size_t size = 0; size < bytes.size(); size += 13)
    EXPECT_NE(refusal(std::span(bytes).first(size)), "accepted") << size;
}

TEST(DamagedFile, every_changed_byte_is_refused_or_harmless) {
  // Whatever is read must stay inside the file: run under sanitizers. Code, tables and weights are covered by
  // checksums.
  Bytes bytes = sample_bytes();
  std::span<const std::byte> whole = bytes;
  Artifact artifact = Artifact::parse(whole, "file");
  uint64_t covered = artifact.image().checksums_offset;
  for (size_t i = 0; i < bytes.size(); ++i)
    for (uint8_t flip : {uint8_t(0x01), uint8_t(0x80), uint8_t(0xff)}) {
      bytes[i] ^= std::byte{flip};
      std::string message = refusal(whole);
      bool sealed = i < covered || i >= bytes.size() - artifact.weights().size();
      EXPECT_TRUE(!sealed || message != "accepted") << i;
      bytes[i] ^= std::byte{flip};
    }
}

TEST(DamagedFile, code_and_tables_are_told_from_their_checksums_alone) {
  // As before a run: what strip changes, and the weights, may be otherwise.
  Bytes bytes = sample_bytes();
  Artifact artifact = Artifact::parse(bytes, "file");
  const tn_image& image = artifact.image();
  artifact.verify_code();
  auto refused_with = [&](uint64_t offset) {
    bytes[offset] ^= std::byte{1};
    bool refused = false;
    try {
      artifact.verify_code();
    } catch (const Error&) { refused = true; }
    bytes[offset] ^= std::byte{1};
    return refused;
  };
  for (const tn_load& load : std::span(image.loads).first(image.load_count))
    if (load.executable) {
      EXPECT_TRUE(refused_with(load.offset));
      EXPECT_TRUE(refused_with(load.offset + load.size - 1));
    }
  EXPECT_TRUE(refused_with(image.tables_offset + image.tables_size - 1));
  EXPECT_FALSE(refused_with(offsetof(Elf64_Ehdr, e_shoff)));
  EXPECT_FALSE(refused_with(image.weights_offset));
}

}  // namespace
}  // namespace tenon::package
