// The pickle of a torch.save file as the weights of a program: which tensors does it hold?
#include <sys/mman.h>
#include <unistd.h>

#include "tenon/export/serde/archive.h"
#include "tenon/io/zip.h"
#include "tests/fuzz/fuzz.h"

namespace tenon {
namespace {

std::string file_with(std::string_view pickle) {
  std::string weights, out;
  ZipWriter inner(&weights);
  inner.add("archive/data.pkl", pickle);
  for (int i = 0; i < 4; ++i) inner.add(text("archive/data/", i), std::string(size_t{64} << i, 'x'));
  inner.commit();
  ZipWriter outer(&out, ZipStyle::plain);
  outer.add("serialized_exported_program.json", "{}");
  outer.add("version", "7.3");
  outer.add("serialized_state_dict.pt", weights);
  outer.commit();
  return out;
}

}  // namespace

void fuzz(FuzzBytes bytes) {
  static const int memory = ::memfd_create("weights", 0);
  std::string file = file_with(as_text(bytes));
  claim(::ftruncate(memory, 0) == 0);
  claim(::pwrite(memory, file.data(), file.size(), 0) == static_cast<ssize_t>(file.size()));
  auto archive = serde::Archive::open(text("/proc/self/fd/", memory));
  std::vector<std::function<void()>> checks;
  std::vector<OpaquePayload> objects;
  for (const NamedTensor& weight :
       serde::read_pickled_payloads(archive, serde::PayloadFolder::weights, checks, objects)) {
    require_fits(weight.tensor.meta(), weight.tensor.storage()->size(), weight.name);
    contiguous_copy(weight.tensor);  // reads every element
  }
  for (const auto& check : checks) check();
}
}  // namespace tenon
