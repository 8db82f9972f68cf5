// The JSON of a program, read, printed, written back, read again and verified.
#include "tenon/export/print.h"
#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tests/export/test_ops.h"
#include "tests/fuzz/fuzz.h"

void tenon::fuzz(FuzzBytes bytes) {
  ExportedProgram program = read_program(as_text(bytes), "input", test_ops());
  to_text(program);
  std::string json = to_json(program);
  std::string again;
  try {
    again = to_json(read_program(json, "written", test_ops()));
  } catch (const Error&) {
    claim(false);  // what is written can be read
  }
  claim(again == json);
  verify(program);
}
