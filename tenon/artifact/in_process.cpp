#include "tenon/artifact/in_process.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "kernels/library.h"
#include "runtime/open_tables.h"
#include "tenon/base/error.h"
#include "tenon/compile/interpret.h"
#include "tenon/compile/mapped_code.h"
#include "tenon/ops/custom_ops.h"

namespace tenon::artifact {
namespace {

/// A kernel's own address is its first parameter.
int interpret(const tenon_args* args, int64_t lo, int64_t hi) {
  const auto& kernel = *reinterpret_cast<const compile::Kernel*>(args->params[0]);
  std::vector<compile::Span> buffers;
  for (const compile::Memory& m : kernel.memory)
    if (!m.scratch) {
      buffers.resize(std::max(buffers.size(), static_cast<size_t>(m.number) + 1));
      buffers[m.number] = {args->buffers[m.number], INT64_MAX};
    }
  constexpr size_t any = 1 << 20;  // the kernel names those it has
  return compile::interpret(kernel, buffers, {args->params + 1, any}, {args->scratch, kernel.scratch_bytes()}, lo, hi);
}

struct Owner {
  std::vector<std::unique_ptr<compile::Kernel>> kernels;
  std::optional<compile::MappedCode> code;
  std::vector<uint64_t> tables;
  std::vector<void*> functions;
};

std::optional<compile::Isa> best_isa() {
  for (compile::Isa isa : {compile::Isa::v4, compile::Isa::v3})
    if (compile::machine_has(isa)) return isa;
  return std::nullopt;
}

}  // namespace

Execution best_execution() { return best_isa() ? Execution::native : Execution::interpreted; }

InProcess open_in_process(plan::Planned planned, std::span<const std::byte> weights, Execution execution) {
  auto owner = std::make_shared<Owner>();
  owner->kernels = std::move(planned.kernels);
  if (execution == Execution::native) {
    std::vector<compile::Kernel> kernels;
    for (const auto& kernel : owner->kernels) kernels.push_back(*kernel);
    owner->code.emplace(compile::emit_native(kernels, *best_isa()));
  }
  auto generated = [&](const std::string& name) -> tenon_kernel {
    if (execution == Execution::interpreted) return name == plan::interpret_function ? interpret : nullptr;
    for (size_t i = 0; i < owner->kernels.size(); ++i)
      if (owner->kernels[i]->name == name) return owner->code->function(i);
    return nullptr;
  };
  const std::vector<std::string>& names = planned.tables.function_names();
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (planned.tables.is_external(static_cast<package::Id>(i))) {
      auto* given = reinterpret_cast<void*>(find_custom_kernel(name));
      expect(given != nullptr, "there is no operator ", name);
      owner->functions.push_back(given);
      continue;
    }
    tenon_kernel kernel = generated(name);
    if (!kernel) kernel = kernels::find(name);
    void* function = kernel ? reinterpret_cast<void*>(kernel) : reinterpret_cast<void*>(kernels::find_host(name));
    expect(function != nullptr, "the kernel library has no function ", name);
    owner->functions.push_back(function);
  }
  planned.tables.targets(1u << TENON_TARGET_PORTABLE);
  std::vector<std::byte> bytes = planned.tables.bytes();
  owner->tables.resize((bytes.size() + 7) / 8);
  std::memcpy(owner->tables.data(), bytes.data(), bytes.size());
  InProcess out;
  out.owner = owner;
  tenon_status status = tn_program_open_tables(owner->tables.data(), bytes.size(), weights.data(),
                                               owner->functions.data(), nullptr, &out.program);
  expect(status == TENON_OK, tenon_last_error());
  return out;
}

}  // namespace tenon::artifact
