// The JSON of real programs, changed as a tree by what the bytes say, taken the whole way.
#include <cstdio>
#include <new>

#include "tests/fuzz/fuzz.h"
#include "tests/hostile/inputs.h"
#include "tests/hostile/whole_way.h"
#include "tools/tenon/memory.h"

void tenon::fuzz(FuzzBytes bytes) {
  std::string json = mutated_input(bytes);
  tool::limit_memory(int64_t{512} << 20);
  try {
    go_the_whole_way(json);
  } catch (const std::bad_alloc&) {}
}

extern "C" void tenon_fuzz_print(const uint8_t* data, size_t size) {
  std::puts(tenon::mutated_input(std::as_bytes(std::span(data, size))).c_str());
}
