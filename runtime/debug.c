/* Tells debuggers the names of functions that no dynamic linker knows of, by the interface that gdb has for compilers
   at run time: a list of small ELF files in memory, and a function on which it sets a breakpoint. */
#include <elf.h>
#include <pthread.h>
#include <stdlib.h>

#include "internal.h"

struct jit_code_entry {
  struct jit_code_entry *next, *previous;
  const void* file;
  uint64_t size;
};
struct jit_descriptor {
  uint32_t version, action; /* 0: nothing, 1: registered, 2: unregistered */
  struct jit_code_entry *relevant, *first;
};

/* Other compilers in the process may define the same two. */
__attribute__((weak, visibility("default"))) struct jit_descriptor __jit_debug_descriptor = {1, 0, NULL, NULL};
__attribute__((weak, visibility("default"), noinline)) void __jit_debug_register_code(void) { __asm__ volatile(""); }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char section_names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
enum { most_symbols = 1 << 20 };

static size_t put(unsigned char* file, size_t at, const void* bytes, size_t size) {
  if (size) memcpy(file + at, bytes, size);
  return at + tn_round_up(size, 8);
}

/* The artifact's symbols with the addresses they have now. */
static void* make_file(const struct tn_source* source, const struct tn_image* image, const unsigned char* base,
                       uint64_t* size) {
  uint64_t count = image->symbols_size / sizeof(Elf64_Sym), names_size = image->symbol_names_size;
  if (count == 0 || count > most_symbols || names_size == 0 || names_size > 64 << 20 || image->text_size == 0)
    return NULL;
  uint64_t room = sizeof(Elf64_Ehdr) + 6 * sizeof(Elf64_Shdr) + tn_round_up(sizeof section_names, 8) +
                  count * sizeof(Elf64_Sym) + tn_round_up(names_size, 8) + tn_round_up(image->eh_frame_size, 8);
  unsigned char* file = calloc(1, room);
  Elf64_Sym* symbols = malloc(count * sizeof *symbols);
  char* names = malloc(names_size);
  if (!file || !symbols || !names ||
      tn_read(source, image->symbols_offset, symbols, count * sizeof *symbols) != TENON_OK ||
      tn_read(source, image->symbol_names_offset, names, names_size) != TENON_OK) {
    free(file);
    free(symbols);
    free(names);
    return NULL;
  }
  names[names_size - 1] = 0;
  uint32_t locals = 1;
  for (uint64_t i = 1; i < count; ++i) {
    symbols[i].st_value += (uintptr_t)base;
    symbols[i].st_shndx = ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC ? 1 : SHN_ABS;
    if (symbols[i].st_name >= names_size) symbols[i].st_name = 0;
    if (ELF64_ST_BIND(symbols[i].st_info) == STB_LOCAL && locals == i) ++locals;
  }
  Elf64_Ehdr header = {.e_type = ET_EXEC,
                       .e_machine = (Elf64_Half)image->machine,
                       .e_version = EV_CURRENT,
                       .e_shoff = sizeof header,
                       .e_ehsize = sizeof header,
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = 6,
                       .e_shstrndx = 5};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  Elf64_Shdr sections[6] = {{0},
                            {.sh_name = 1,
                             .sh_type = SHT_NOBITS,
                             .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                             .sh_addr = (uintptr_t)base + image->text_address,
                             .sh_size = image->text_size,
                             .sh_addralign = 64},
                            {.sh_name = 7,
                             .sh_type = SHT_PROGBITS,
                             .sh_flags = SHF_ALLOC,
                             .sh_addr = (uintptr_t)base + image->eh_frame_address,
                             .sh_size = image->eh_frame_size,
                             .sh_addralign = 8},
                            {.sh_name = 17,
                             .sh_type = SHT_SYMTAB,
                             .sh_size = count * sizeof *symbols,
                             .sh_link = 4,
                             .sh_info = locals,
                             .sh_addralign = 8,
                             .sh_entsize = sizeof *symbols},
                            {.sh_name = 25, .sh_type = SHT_STRTAB, .sh_size = names_size, .sh_addralign = 1},
                            {.sh_name = 33, .sh_type = SHT_STRTAB, .sh_size = sizeof section_names, .sh_addralign = 1}};
  size_t at = sizeof header + sizeof sections;
  sections[1].sh_offset = at;
  sections[2].sh_offset = at;
  at = put(file, at, base + image->eh_frame_address, image->eh_frame_size);
  sections[3].sh_offset = at;
  at = put(file, at, symbols, count * sizeof *symbols);
  sections[4].sh_offset = at;
  at = put(file, at, names, names_size);
  sections[5].sh_offset = at;
  put(file, at, section_names, sizeof section_names);
  memcpy(file, &header, sizeof header);
  memcpy(file + sizeof header, sections, sizeof sections);
  free(symbols);
  free(names);
  *size = room;
  return file;
}

void* tn_debug_register(const struct tn_source* source, const struct tn_image* image, const void* base) {
  struct jit_code_entry* entry = calloc(1, sizeof *entry);
  if (!entry) return NULL;
  entry->file = make_file(source, image, base, &entry->size);
  if (!entry->file) {
    free(entry);
    return NULL;
  }
  pthread_mutex_lock(&lock);
  entry->next = __jit_debug_descriptor.first;
  if (entry->next) entry->next->previous = entry;
  __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = entry;
  __jit_debug_descriptor.action = 1;
  __jit_debug_register_code();
  pthread_mutex_unlock(&lock);
  return entry;
}

void tn_debug_unregister(void* registered) {
  struct jit_code_entry* entry = registered;
  if (!entry) return;
  pthread_mutex_lock(&lock);
  if (entry->previous) entry->previous->next = entry->next;
  else __jit_debug_descriptor.first = entry->next;
  if (entry->next) entry->next->previous = entry->previous;
  __jit_debug_descriptor.relevant = entry;
  __jit_debug_descriptor.action = 2;
  __jit_debug_register_code();
  pthread_mutex_unlock(&lock);
  free((void*)(uintptr_t)entry->file);
  free(entry);
}
