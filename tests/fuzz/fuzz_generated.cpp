// Programs over all operators, generated from the bytes and mutated now and then, taken the whole way.
#include <new>

#include "tests/fuzz/fuzz.h"
#include "tests/hostile/generator.h"
#include "tests/hostile/whole_way.h"
#include "tools/tenon/memory.h"

void tenon::fuzz(FuzzBytes bytes) {
  tool::limit_memory(int64_t{512} << 20);  // a program may ask for more than there is: as on a machine that has no more
  Choices choices(bytes);
  bool mutated = choices.one_in(4);
  try {
    std::string json = generated_program(choices);
    if (mutated) json = mutated_json(json, choices);
    go_the_whole_way(json);
  } catch (const std::bad_alloc&) {}
}
