// Programs that PyTorch decomposed, as tests/record/record_decompositions.py recorded them.
#pragma once
#include <functional>
#include <string>

#include "tenon/export/exported_program.h"

namespace tenon::testing {

struct RecordedProgram {
  std::string name;
  std::string program;     // as JSON
  std::string aten, core;  // as printed; empty: PyTorch refuses
};
void for_each_recorded(const std::function<void(const RecordedProgram&)>& visit);

/// The program, with zeros for its state.
ExportedProgram program_of(const RecordedProgram& recorded);

/// What is compared: lines without comments, empty ones left out.
std::string comparable(const std::string& printed);

}  // namespace tenon::testing
