// Reads an .npy or .npz, writes each array and reads it again: the written bytes must be equal.
#include "tenon/io/npy.h"
#include "tests/fuzz/fuzz.h"

namespace tenon {
namespace {
void rewrite(const Array& array) {
  std::string once = npy_bytes(array);
  claim(npy_bytes(read_npy(std::as_bytes(std::span(once)), "again")) == once);
}
}  // namespace

void fuzz(FuzzBytes bytes) {
  if (looks_like_npy(bytes)) return rewrite(read_npy(bytes, "fuzz"));
  for (const NamedArray& named : read_npz(bytes, "fuzz")) rewrite(named.array);
}
}  // namespace tenon
