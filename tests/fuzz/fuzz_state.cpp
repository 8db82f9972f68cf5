// Loads a saved state into a program that has three entries. What is accepted came from the
// file, and the reader stays inside it.
#include <cstring>
#include <vector>

#include "runtime/verify.h"
#include "tenon/package/tables.h"
#include "tests/fuzz/fuzz.h"

extern "C" {
tenon_status tn_program_open_tables(const void* tables, uint64_t size, const void* weights, void* const* functions,
                                    const tenon_options* options, tenon_program** program);
tenon_status tn_state_load_source(tenon_state* state, const struct tn_source* source);
}

namespace tenon {
namespace {

tenon_state* make_state() {
  using namespace package;
  Tables t("fuzz");
  t.state({.name = "w", .sizes = {2, 3}}, TENON_STATE_PARAMETER);
  t.state({.name = "a.b", .dtype = TENON_I64, .sizes = {}}, TENON_STATE_BUFFER);
  t.state({.name = "empty", .dtype = TENON_BOOL, .sizes = {0}}, TENON_STATE_BUFFER);
  static std::vector<std::byte> tables = t.bytes();
  tenon_program* program = nullptr;
  tenon_state* state = nullptr;
  claim(tn_program_open_tables(tables.data(), tables.size(), nullptr, nullptr, nullptr, &program) == TENON_OK);
  claim(tenon_state_create(program, &state) == TENON_OK);
  return state;
}

}  // namespace

void fuzz(FuzzBytes bytes) {
  static tenon_state* state = make_state();
  tn_source source{reinterpret_cast<const unsigned char*>(bytes.data()), -1, bytes.size()};
  if (tn_state_load_source(state, &source) != TENON_OK) return;
  int64_t value = 0;
  tenon_tensor tensor{&value, TENON_I64, 0, {}, {}};
  claim(tenon_state_get(state, "a.b", &tensor) == TENON_OK);
  // Its eight bytes came from the file.
  bool found = false;
  for (size_t i = 0; i + 8 <= bytes.size() && !found; ++i) found = std::memcmp(bytes.data() + i, &value, 8) == 0;
  claim(found);
}
}  // namespace tenon
