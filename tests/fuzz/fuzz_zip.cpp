// Opens an archive and reads every entry; entries that are archives themselves are opened too.
#include "tenon/io/zip.h"
#include "tests/fuzz/fuzz.h"

namespace tenon {
namespace {
void read(FuzzBytes bytes, int depth) {
  ZipArchive archive(bytes, "fuzz", {.entries = 1000, .inflated = 16 << 20});
  for (const ZipEntry& entry : archive.entries()) {
    claim(archive.find(entry.name) == &entry);
    claim(bad_zip_name(entry.name) == nullptr);
    try {
      FuzzBytes content = archive.bytes(entry);
      claim(content.size() == entry.size);
      if (depth < 2 && looks_like_zip(content)) read(content, depth + 1);
    } catch (const Error&) {}
  }
}
}  // namespace

void fuzz(FuzzBytes bytes) { read(bytes, 0); }
}  // namespace tenon
