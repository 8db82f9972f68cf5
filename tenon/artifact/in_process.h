// Planned programs executed by the runtime without a file: by machine code in this process's memory, or by the
// interpreter of kernels.
#pragma once
#include <memory>
#include <span>

#include "tenon/plan/make_tables.h"

struct tenon_program;

namespace tenon::artifact {

enum class Execution : uint8_t { native, interpreted };
/// Machine code where this machine has instructions for it.
Execution best_execution();

struct InProcess {
  tenon_program* program = nullptr;   // to be closed before `owner` is let go
  std::shared_ptr<const void> owner;  // of the tables and the code
};
/// `planned` was made with the option `interpreted` where that is asked for. The weights are borrowed.
InProcess open_in_process(plan::Planned planned, std::span<const std::byte> weights, Execution execution);

}  // namespace tenon::artifact
