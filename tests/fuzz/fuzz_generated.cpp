// Programs over all operators, generated from the bytes and mutated now and then, taken the whole way.
#include <cstdio>
#include <new>

#include "tests/fuzz/fuzz.h"
#include "tests/hostile/inputs.h"
#include "tests/hostile/whole_way.h"
#include "tools/tenon/memory.h"

void tenon::fuzz(FuzzBytes bytes) {
  tool::limit_memory(int64_t{512} << 20);  // a program may ask for more than there is: as on a machine that has no more
  try {
    go_the_whole_way(generated_input(bytes));
  } catch (const std::bad_alloc&) {}
}

extern "C" void tenon_fuzz_print(const uint8_t* data, size_t size) {
  std::puts(tenon::generated_input(std::as_bytes(std::span(data, size))).c_str());
}
