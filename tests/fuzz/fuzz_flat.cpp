// A file of the flat format, PyTorch 2.4 to 2.7. The input lists its entries, so that checksums need no guessing: parts
// are separated by a line "%%", the first line of each is the entry's name. What an entry ending in .pt holds is the
// pickle of a torch.save file, which gets a few storages beside it.
#include <sys/mman.h>
#include <unistd.h>

#include "tenon/export/print.h"
#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tenon/io/zip.h"
#include "tests/export/test_ops.h"
#include "tests/fuzz/fuzz.h"

namespace tenon {
namespace {

std::string torch_saved(std::string_view pickle) {
  std::string out;
  ZipWriter zip(&out);
  zip.add("archive/data.pkl", pickle);
  zip.add("archive/byteorder", "little");
  for (int i = 0; i < 4; ++i) zip.add(text("archive/data/", i), std::string(size_t{64} << i, 'x'));
  zip.commit();
  return out;
}

std::string flat_file(std::string_view parts) {
  constexpr std::string_view mark = "\n%%\n";
  std::string out;
  ZipWriter zip(&out, ZipStyle::plain);
  while (!parts.empty()) {
    size_t end = std::min(parts.find(mark), parts.size());
    std::string_view part = parts.substr(0, end);
    parts.remove_prefix(std::min(end + mark.size(), parts.size()));
    size_t line = std::min(part.find('\n'), part.size());
    std::string name(part.substr(0, line));
    std::string_view content = part.substr(std::min(line + 1, part.size()));
    require(!bad_zip_name(name), "the writer takes no such name");
    zip.add(name, name.ends_with(".pt") ? torch_saved(content) : std::string(content));
  }
  zip.commit();
  return out;
}

// One file in memory, written anew for each input.
const std::string& in_memory(std::string_view bytes) {
  static const int file = ::memfd_create("flat", 0);
  static const std::string path = text("/proc/self/fd/", file);
  claim(::ftruncate(file, 0) == 0);
  claim(::pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return path;
}

}  // namespace

void fuzz(FuzzBytes bytes) {
  std::string file = flat_file(as_text(bytes));
  ExportedProgram program = load_exported(in_memory(file), test_ops());
  program.check_payloads();
  to_text(program);
  std::string json = to_json(program), again;
  try {
    again = to_json(read_program(json, "written", test_ops()));
  } catch (const Error&) {
    claim(false);  // what is written can be read
  }
  claim(again == json);
  if (program.samples) program.samples();
}
}  // namespace tenon
