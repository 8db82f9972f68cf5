// The call as a program, compiled, on memory that ends at guard pages: the interpreter of kernels and machine code for
// every target of this machine give the same bits, and the values of the interpreter of programs.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/artifact/runtime_tensor.h"
#include "tenon/compile/emit_native.h"
#include "tenon/pipeline.h"
#include "tenon/rules/call.h"
#include "tests/sweep/checks.h"
#include "tests/sweep/compare.h"
#include "tests/sweep/program_of.h"

namespace tenon::sweep {
namespace {

using artifact::CompiledProgram;
using artifact::CompiledSession;

std::vector<CallArg> results_of(const RunResult& r) {
  std::vector<CallArg> out = r.outputs;
  for (const auto* list : {&r.buffers, &r.parameters, &r.inputs, &r.gradients})
    for (const auto& [name, tensor] : *list) out.emplace_back(tensor);
  return out;
}

/// Bit for bit; any NaN is equal to any NaN.
Outcome bits_differ(const Tensor& got, const Tensor& want) {
  if (auto wrong = meta_differs(got.meta(), want.meta())) return wrong;
  Tensor a = contiguous_copy(got), b = contiguous_copy(want);
  size_t item = item_size(a.dtype()), count = static_cast<size_t>(a.numel().as_int());
  std::vector<double> x, y;
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(a.bytes() + i * item, b.bytes() + i * item, item) == 0) continue;
    if (x.empty()) x = elements(a), y = elements(b);
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    return text("element ", i, " is ", x[i], ", expected ", y[i]);
  }
  return std::nullopt;
}

Outcome differ(const std::vector<CallArg>& got, const std::vector<CallArg>& want, bool bits) {
  if (got.size() != want.size()) return text("expected ", want.size(), " results, got ", got.size());
  for (size_t i = 0; i < got.size(); ++i) {
    auto *a = got[i].get<Tensor>(), *b = want[i].get<Tensor>();
    if ((a && *a) != (b && *b)) return text("result ", i, ": expected ", describe(want[i]), ", got ", describe(got[i]));
    Outcome wrong;
    if (a && *a) {
      wrong = bits ? bits_differ(*a, *b) : meta_differs(a->meta(), b->meta());
      if (!wrong && !bits) wrong = values_differ(*a, *b, std::nullopt);
    } else if (!(got[i] == want[i])) {
      wrong = text("expected ", describe(want[i]), ", got ", describe(got[i]));
    }
    if (wrong) return text("result ", i, ": ", *wrong);
  }
  return std::nullopt;
}

std::vector<CallArg> run(const std::shared_ptr<const CompiledProgram>& program, const std::vector<CallArg>& inputs) {
  artifact::CompiledState state(program);
  return results_of(CompiledSession(program).run(state, inputs));
}

/// Memory that ends where nothing can be touched. Small blocks begin likewise.
class Guarded {
 public:
  explicit Guarded(size_t bytes) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t whole = (bytes + page - 1) / page * page;
    total_ = whole + 2 * page;
    memory_ = mmap(nullptr, total_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(memory_ != MAP_FAILED, "no memory for ", total_, " bytes");
    if (whole > 0) mprotect(static_cast<std::byte*>(memory_) + page, whole, PROT_READ | PROT_WRITE);
    start_ = static_cast<std::byte*>(memory_) + page + whole - bytes;
  }
  ~Guarded() { munmap(memory_, total_); }
  Guarded(const Guarded&) = delete;
  std::byte* start() const { return start_; }

 private:
  void* memory_ = nullptr;
  size_t total_ = 0;
  std::byte* start_ = nullptr;
};

std::mutex blocks_mutex;
std::map<void*, std::unique_ptr<Guarded>> blocks;

/// Working memory of sessions: each block ends at a guard page, as far as its alignment lets it.
const tenon_allocator guarded_memory = {nullptr,
                                        [](void*, size_t size, size_t alignment) -> void* {
                                          size_t rounded = (size + alignment - 1) / alignment * alignment;
                                          auto* block = new Guarded(rounded);
                                          std::lock_guard lock(blocks_mutex);
                                          blocks.emplace(block->start(), block);
                                          return block->start();
                                        },
                                        [](void*, void* memory, size_t) {
                                          std::lock_guard lock(blocks_mutex);
                                          blocks.erase(memory);
                                        }};

/// Each tensor as far as it reaches, up to a guard page.
std::vector<CallArg> copies(const std::vector<CallArg>& inputs) {
  std::vector<CallArg> out;
  for (const CallArg& a : inputs) {
    auto* t = a.get<Tensor>();
    if (!t || !*t) {
      out.push_back(a);
      continue;
    }
    TensorMeta meta = t->meta();
    size_t bytes = artifact::reach_bytes(meta);
    auto memory = std::make_shared<Guarded>(bytes);
    if (bytes > 0) std::memcpy(memory->start(), t->bytes(), bytes);
    meta.offset = 0;
    out.emplace_back(
        Tensor(meta, std::make_shared<Storage>(std::span<const std::byte>(memory->start(), bytes), memory)));
  }
  return out;
}

}  // namespace

Outcome check_compiled(const Op& op, const Case& recorded) {
  ExportedProgram program = program_of(op, recorded);
  if (program.graph->outputs.empty()) return std::nullopt;
  std::vector<CallArg> inputs;
  for (const CallArg& a : recorded.arguments(op))
    for_each_tensor(a, [&](const Tensor& t) {
      if (t && !t.meta().wrapped_number) inputs.emplace_back(t);
    });
  Walk walk(program, {.inputs = inputs});
  std::shared_ptr<const Executable> executable = walk.executable();
  if (!executable->convention.sharing.empty()) return std::nullopt;  // arguments that share memory are refused
  std::unique_ptr<State> state = state_of(program);
  std::vector<CallArg> lowered, interpreted;
  {
    auto own = copies(inputs);
    lowered = results_of(Session(executable).run(*state, own));
  }
  {
    auto own = copies(inputs);
    interpreted = run(artifact::interpret_compiled(*executable, *state), own);
  }
  if (auto wrong = differ(interpreted, lowered, false)) return text("the interpreter of kernels: ", *wrong);
  for (artifact::Target target : {artifact::Target::x86_64_v3, artifact::Target::x86_64_v4}) {
    auto isa = target == artifact::Target::x86_64_v3 ? compile::Isa::v3 : compile::Isa::v4;
    if (!compile::machine_has(isa)) continue;
    auto compiled = CompiledProgram::open(artifact::compile_program(*executable, *state, {.targets = {target}}),
                                          {.allocator = &guarded_memory});
    auto own = copies(inputs);
    if (auto wrong = differ(run(compiled, own), interpreted, true))
      return text("machine code for ", name(target), ": ", *wrong);
  }
  return std::nullopt;
}

}  // namespace tenon::sweep
