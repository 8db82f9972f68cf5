/* Which ELF files may be loaded: shared objects that need no loader's help. No dependencies, relocations, initialisers,
   thread-locals or writable data; so mapping the segments is all there is to do. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

#ifndef PT_GNU_PROPERTY
#define PT_GNU_PROPERTY 0x6474e553
#endif
#ifndef SHT_RELR
#define SHT_RELR 19
#endif

enum { page = 4096, most_headers = 64, most_sections = 4096 };
static const uint64_t largest_image = UINT64_C(1) << 31;

tenon_status tn_read(const struct tn_source* source, uint64_t offset, void* to, size_t size) {
  if (offset > source->size || size > source->size - offset)
    return tn_fail(TENON_INVALID_FILE, "the file is truncated: %zu bytes are expected at %llu, it ends at %llu", size,
                   (unsigned long long)offset, (unsigned long long)source->size);
  if (source->memory) {
    memcpy(to, source->memory + offset, size);
    return TENON_OK;
  }
  unsigned char* out = to;
  while (size > 0) {
    ssize_t got = pread(source->descriptor, out, size < 1 << 30 ? size : 1 << 30, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tn_fail(TENON_IO, "the file cannot be read: %s", strerror(errno));
    if (got == 0) return tn_fail(TENON_INVALID_FILE, "the file was truncated while it was read");
    out += got;
    offset += (uint64_t)got;
    size -= (size_t)got;
  }
  return TENON_OK;
}

static TN_COLD tenon_status refuse(const char* why) {
  return tn_fail(TENON_INVALID_FILE, "the file is not an artifact of Tenon: %s", why);
}

static bool inside(uint64_t offset, uint64_t size, uint64_t outer_offset, uint64_t outer_size) {
  return offset >= outer_offset && offset - outer_offset <= outer_size && size <= outer_size - (offset - outer_offset);
}

static tenon_status verify_header(const Elf64_Ehdr* e) {
  if (memcmp(e->e_ident, ELFMAG, SELFMAG) != 0) return refuse("it is no ELF file");
  if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_ident[EI_DATA] != ELFDATA2LSB ||
      e->e_ident[EI_VERSION] != EV_CURRENT || e->e_version != EV_CURRENT)
    return refuse("it is no 64-bit little-endian ELF file");
  if (e->e_ident[EI_OSABI] != ELFOSABI_NONE && e->e_ident[EI_OSABI] != ELFOSABI_GNU)
    return refuse("it is made for another operating system");
  if (e->e_type != ET_DYN) return refuse("it is no shared object");
  if (e->e_machine != EM_X86_64 && e->e_machine != EM_AARCH64) return refuse("it is made for an unknown processor");
  if (e->e_ehsize != sizeof(Elf64_Ehdr) || e->e_phentsize != sizeof(Elf64_Phdr))
    return refuse("its headers are damaged");
  if (e->e_phnum == 0 || e->e_phnum > most_headers) return refuse("it has no segments, or too many");
  if (e->e_shoff == 0 || e->e_shnum == 0) return refuse("it has no section headers; strip may have removed them");
  if (e->e_shentsize != sizeof(Elf64_Shdr) || e->e_shnum > most_sections || e->e_shstrndx >= e->e_shnum)
    return refuse("its section headers are damaged");
  return TENON_OK;
}

static tenon_status add_load(const Elf64_Phdr* p, uint64_t file_size, struct tn_image* image) {
  if (image->load_count == TN_MAX_SEGMENTS) return refuse("it has too many segments");
  if (!inside(p->p_offset, p->p_filesz, 0, file_size))
    return tn_fail(TENON_INVALID_FILE, "the file is truncated: a segment goes beyond its end");
  /* Some linkers round the segment that is protected after loading up to a page; nobody looks at that. */
  if (p->p_filesz > p->p_memsz || p->p_memsz - p->p_filesz >= ((p->p_flags & PF_W) ? 1u << 16 : 1u))
    return refuse("it has uninitialised data");
  if (p->p_vaddr % page != p->p_offset % page || p->p_vaddr >= largest_image || p->p_memsz >= largest_image)
    return refuse("a segment cannot be mapped");
  if (!(p->p_flags & PF_R)) return refuse("it has a segment that cannot be read");
  if ((p->p_flags & PF_W) && (p->p_flags & PF_X)) return refuse("it has a segment that is writable and executable");
  if (p->p_filesz == 0) return TENON_OK;
  if (image->load_count > 0) {
    const struct tn_load* before = &image->loads[image->load_count - 1];
    if (p->p_vaddr / page <= (before->address + before->size - 1) / page) return refuse("its segments overlap");
  }
  image->loads[image->load_count++] = (struct tn_load){.offset = p->p_offset,
                                                       .address = p->p_vaddr,
                                                       .size = p->p_filesz,
                                                       .writable = (p->p_flags & PF_W) != 0,
                                                       .executable = (p->p_flags & PF_X) != 0};
  return TENON_OK;
}

static const struct tn_load* load_at(const struct tn_image* image, uint64_t address, uint64_t size) {
  for (uint32_t i = 0; i < image->load_count; ++i)
    if (inside(address, size, image->loads[i].address, image->loads[i].size)) return &image->loads[i];
  return NULL;
}

static tenon_status verify_segments(const struct tn_source* source, const Elf64_Ehdr* e, struct tn_image* image,
                                    Elf64_Phdr* dynamic) {
  Elf64_Phdr headers[most_headers];
  tenon_status status = tn_read(source, e->e_phoff, headers, e->e_phnum * sizeof(Elf64_Phdr));
  if (status != TENON_OK) return status;
  bool stack = false, has_dynamic = false;
  for (uint32_t i = 0; i < e->e_phnum; ++i) {
    const Elf64_Phdr* p = &headers[i];
    switch (p->p_type) {
      case PT_LOAD:
        if ((status = add_load(p, source->size, image)) != TENON_OK) return status;
        break;
      case PT_DYNAMIC:
        if (has_dynamic) return refuse("it has two dynamic sections");
        has_dynamic = true;
        *dynamic = *p;
        break;
      case PT_GNU_STACK:
        if (p->p_flags & PF_X) return refuse("it asks for an executable stack");
        stack = true;
        break;
      case PT_GNU_RELRO:
        if (image->relro_size) return refuse("it has two segments to be protected");
        image->relro_address = p->p_vaddr;
        image->relro_size = p->p_memsz;
        break;
      case PT_INTERP: return refuse("it is an executable");
      case PT_TLS: return refuse("it has thread-local data");
      case PT_NULL:
      case PT_PHDR:
      case PT_NOTE:
      case PT_GNU_EH_FRAME:
      case PT_GNU_PROPERTY: break;
      default: return refuse("it has a segment of unknown kind");
    }
  }
  if (!stack) return refuse("it asks for an executable stack");
  if (!has_dynamic) return refuse("it has no dynamic section");
  if (image->load_count == 0) return refuse("it has no segments to load");
  for (uint32_t i = 0; i < image->load_count; ++i) {
    const struct tn_load* l = &image->loads[i];
    if (l->writable && !inside(l->address, l->size, image->relro_address / page * page,
                               tn_round_up(image->relro_size + image->relro_address % page, page)))
      return refuse("it has writable data");
  }
  if (image->relro_size && !load_at(image, image->relro_address, 1)) return refuse("its segments are damaged");
  return TENON_OK;
}

static tenon_status verify_dynamic(const struct tn_source* source, const struct tn_image* image, const Elf64_Phdr* d) {
  const struct tn_load* load = load_at(image, d->p_vaddr, d->p_filesz);
  if (!load || d->p_offset - load->offset != d->p_vaddr - load->address || d->p_filesz > 4096)
    return refuse("its dynamic section is damaged");
  for (uint64_t i = 0; i < d->p_filesz / sizeof(Elf64_Dyn); ++i) {
    Elf64_Dyn entry;
    tenon_status status = tn_read(source, d->p_offset + i * sizeof entry, &entry, sizeof entry);
    if (status != TENON_OK) return status;
    switch (entry.d_tag) {
      case DT_NULL: return TENON_OK;
      case DT_HASH:
      case DT_GNU_HASH:
      case DT_STRTAB:
      case DT_SYMTAB:
      case DT_STRSZ:
      case DT_SYMENT:
      case DT_SONAME:
      case DT_PLTGOT: break; /* some linkers name it even if it is empty */
      case DT_FLAGS:
        if (entry.d_un.d_val & DF_TEXTREL) return refuse("it needs relocations");
        break;
      case DT_FLAGS_1: break;
      case DT_NEEDED: return refuse("it needs another library");
      case DT_INIT:
      case DT_FINI:
      case DT_INIT_ARRAY:
      case DT_FINI_ARRAY:
      case DT_PREINIT_ARRAY: return refuse("it has code that runs when it is loaded or unloaded");
      case DT_RELA:
      case DT_REL:
      case DT_JMPREL:
      case DT_TEXTREL:
      case DT_PLTRELSZ:
      case 36 /* DT_RELR */: return refuse("it needs relocations");
      default: return refuse("its dynamic section has an entry that artifacts do not have");
    }
  }
  return refuse("its dynamic section does not end");
}

static tenon_status read_build_id(const struct tn_source* source, const Elf64_Shdr* s, struct tn_image* image) {
  Elf64_Nhdr note;
  if (s->sh_size < sizeof note + 4) return refuse("its build-id is damaged");
  tenon_status status = tn_read(source, s->sh_offset, &note, sizeof note);
  if (status != TENON_OK) return status;
  if (note.n_namesz != 4 || note.n_type != NT_GNU_BUILD_ID || note.n_descsz > sizeof image->build_id ||
      note.n_descsz > s->sh_size - sizeof note - 4)
    return refuse("its build-id is damaged");
  image->build_id_size = note.n_descsz;
  return tn_read(source, s->sh_offset + sizeof note + 4, image->build_id, note.n_descsz);
}

static tenon_status verify_section(const struct tn_source* source, const Elf64_Shdr* s, const char* name,
                                   const Elf64_Shdr* sections, uint32_t count, struct tn_image* image) {
  if (s->sh_type == SHT_RELA || s->sh_type == SHT_REL || s->sh_type == SHT_RELR) return refuse("it needs relocations");
  if (s->sh_type == SHT_INIT_ARRAY || s->sh_type == SHT_FINI_ARRAY || s->sh_type == SHT_PREINIT_ARRAY)
    return refuse("it has code that runs when it is loaded or unloaded");
  if (s->sh_type == SHT_NULL) return TENON_OK;
  if (s->sh_type == SHT_NOBITS) {
    if (s->sh_size > 0 && !inside(s->sh_addr, s->sh_size, image->relro_address, image->relro_size))
      return refuse("it has uninitialised data");
    return TENON_OK;
  }
  if (!inside(s->sh_offset, s->sh_size, 0, source->size))
    return tn_fail(TENON_INVALID_FILE, "the file is truncated: a section goes beyond its end");
  if (strcmp(name, TENON_SECTION_TABLES) == 0) {
    const struct tn_load* load = load_at(image, s->sh_addr, s->sh_size);
    if (image->tables_size || s->sh_type != SHT_PROGBITS || !(s->sh_flags & SHF_ALLOC) || !load || load->writable ||
        s->sh_offset - load->offset != s->sh_addr - load->address || s->sh_addr % 8 != 0 || s->sh_size == 0)
      return refuse("its tables do not lie where they are loaded");
    image->tables_offset = s->sh_offset;
    image->tables_address = s->sh_addr;
    image->tables_size = s->sh_size;
  } else if (strcmp(name, TENON_SECTION_WEIGHTS) == 0) {
    if (image->weights_offset || s->sh_type != SHT_PROGBITS || (s->sh_flags & SHF_ALLOC) || s->sh_offset % page != 0)
      return refuse("its weights cannot be mapped");
    image->weights_offset = s->sh_offset;
    image->weights_size = s->sh_size;
  } else if (strcmp(name, TENON_SECTION_CHECKSUMS) == 0) {
    image->checksums_offset = s->sh_offset;
    image->checksums_size = s->sh_size;
  } else if (strcmp(name, ".note.gnu.build-id") == 0) {
    return read_build_id(source, s, image);
  } else if (strcmp(name, ".text") == 0 || strcmp(name, ".eh_frame") == 0) {
    if (s->sh_size > 0 && !load_at(image, s->sh_addr, s->sh_size))
      return refuse("its code does not lie where it is loaded");
    *(name[1] == 't' ? &image->text_address : &image->eh_frame_address) = s->sh_addr;
    *(name[1] == 't' ? &image->text_size : &image->eh_frame_size) = s->sh_size;
  } else if (s->sh_type == SHT_SYMTAB) {
    if (s->sh_link >= count || sections[s->sh_link].sh_type != SHT_STRTAB ||
        !inside(sections[s->sh_link].sh_offset, sections[s->sh_link].sh_size, 0, source->size))
      return refuse("its symbols are damaged");
    image->symbols_offset = s->sh_offset;
    image->symbols_size = s->sh_size;
    image->symbol_names_offset = sections[s->sh_link].sh_offset;
    image->symbol_names_size = sections[s->sh_link].sh_size;
  }
  return TENON_OK;
}

static tenon_status verify_sections(const struct tn_source* source, const Elf64_Ehdr* e, struct tn_image* image) {
  tenon_status status;
  uint64_t count = e->e_shnum, names_size;
  Elf64_Shdr* sections = malloc(count * sizeof *sections);
  char* names = NULL;
  if (!sections) return tn_fail_memory(count * sizeof *sections, "section headers");
  if ((status = tn_read(source, e->e_shoff, sections, count * sizeof *sections)) != TENON_OK) goto done;
  names_size = sections[e->e_shstrndx].sh_size;
  if (names_size == 0 || names_size > 1 << 20) {
    status = refuse("the names of its sections are damaged");
    goto done;
  }
  if (!(names = malloc(names_size))) {
    status = tn_fail_memory(names_size, "section names");
    goto done;
  }
  if ((status = tn_read(source, sections[e->e_shstrndx].sh_offset, names, names_size)) != TENON_OK) goto done;
  if (names[names_size - 1] != 0) status = refuse("the names of its sections are damaged");
  for (uint64_t i = 0; i < count && status == TENON_OK; ++i)
    status = sections[i].sh_name < names_size
                 ? verify_section(source, &sections[i], names + sections[i].sh_name, sections, (uint32_t)count, image)
                 : refuse("the names of its sections are damaged");
  if (status == TENON_OK && image->tables_size == 0) status = refuse("it has no section " TENON_SECTION_TABLES);
done:
  free(names);
  free(sections);
  return status;
}

tenon_status tn_image_verify(const struct tn_source* source, struct tn_image* image) {
  Elf64_Ehdr header;
  Elf64_Phdr dynamic;
  memset(image, 0, sizeof *image);
  if (source->size < sizeof header)
    return source->size == 0 ? refuse("it is empty") : refuse("it is shorter than the header of an ELF file");
  tenon_status status = tn_read(source, 0, &header, sizeof header);
  if (status == TENON_OK) status = verify_header(&header);
  if (status != TENON_OK) return status;
  image->machine = header.e_machine;
  memset(&dynamic, 0, sizeof dynamic);
  status = verify_segments(source, &header, image, &dynamic);
  if (status == TENON_OK) status = verify_dynamic(source, image, &dynamic);
  if (status == TENON_OK) status = verify_sections(source, &header, image);
  return status;
}

tenon_status tn_image_read_tables(const struct tn_source* source, const struct tn_image* image, void* memory,
                                  struct tn_tables* tables) {
  tenon_status status = tn_read(source, image->tables_offset, memory, image->tables_size);
  if (status == TENON_OK) status = tn_tables_verify(memory, image->tables_size, tables);
  if (status != TENON_OK) return status;
  if (tables->header->weights_size != image->weights_size)
    return tn_fail(TENON_INVALID_FILE, "the weights are truncated: the tables expect %llu bytes, there are %llu",
                   (unsigned long long)tables->header->weights_size, (unsigned long long)image->weights_size);
  for (uint32_t i = 0; i < tables->header->functions.count; ++i)
    for (uint32_t k = 0; k < TENON_TARGET_COUNT; ++k) {
      const struct tenon_function* f = &tables->functions[i];
      if (f->external || !(tables->header->targets >> k & 1)) continue;
      const struct tn_load* load = load_at(image, image->tables_address + (uint64_t)f->entry[k], 1);
      if (!load || !load->executable)
        return tn_fail(TENON_INVALID_FILE, "the tables are damaged: function %u does not lie in the code", i);
    }
  return TENON_OK;
}
