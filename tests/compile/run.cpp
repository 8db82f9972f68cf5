#include "tests/compile/run.h"

#include <sys/mman.h>

#include <cmath>
#include <cstring>

#include "tenon/base/error.h"
#include "tenon/base/text.h"
#include "tenon/compile/evaluate.h"

namespace tenon::compile {

std::vector<Isa> isas() {
  std::vector<Isa> out;
  for (Isa isa : {Isa::v3, Isa::v4})
    if (machine_has(isa)) out.push_back(isa);
  return out;
}

int call(KernelFunction function, const Kernel& kernel, const std::vector<Span>& buffers,
         const std::vector<int64_t>& params, int64_t lo, int64_t hi) {
  std::vector<std::byte> scratch(kernel.scratch_bytes() + 64);
  auto address = reinterpret_cast<uintptr_t>(scratch.data());
  std::vector<void*> pointers;
  for (const Span& s : buffers) pointers.push_back(s.data);
  tenon_args args{pointers.data(), params.data(), scratch.data() + (64 - address % 64) % 64, nullptr};
  return function(&args, lo, hi);
}

int run(const Kernel& kernel, const std::vector<Span>& buffers, const std::vector<int64_t>& params, int64_t lo,
        int64_t hi) {
  if (!isas().empty()) {
    MappedCode code(emit_native(std::span(&kernel, 1), isas().back()));
    return call(code.function(), kernel, buffers, params, lo, hi);
  }
  std::vector<std::byte> scratch(kernel.scratch_bytes());
  return interpret(kernel, buffers, params, span_of(scratch), lo, hi);
}

static std::vector<Span> spans(std::vector<std::vector<std::byte>>& buffers) {
  std::vector<Span> out;
  for (auto& b : buffers) out.push_back(span_of(b));
  return out;
}
Outcome interpreted(const Kernel& kernel, const std::vector<std::vector<std::byte>>& buffers,
                    const std::vector<int64_t>& params, int64_t lo, int64_t hi) {
  Outcome out{0, buffers};
  std::vector<std::byte> scratch(kernel.scratch_bytes());
  out.status = interpret(kernel, spans(out.buffers), params, span_of(scratch), lo, hi);
  return out;
}
Outcome called(KernelFunction function, const Kernel& kernel, const std::vector<std::vector<std::byte>>& buffers,
               const std::vector<int64_t>& params, int64_t lo, int64_t hi) {
  Outcome out{0, buffers};
  out.status = call(function, kernel, spans(out.buffers), params, lo, hi);
  return out;
}

std::string difference(const Kernel& kernel, const Outcome& wanted, const Outcome& got) {
  if (wanted.status != got.status) return text("status ", got.status, " instead of ", wanted.status);
  for (const Memory& m : kernel.memory) {
    if (m.scratch || !m.written) continue;
    const auto &a = wanted.buffers[m.number], &b = got.buffers[m.number];
    auto size = static_cast<size_t>(bytes_of(m.element));
    for (size_t i = 0; i + size <= a.size(); i += size) {
      if (std::memcmp(&a[i], &b[i], size) == 0) continue;
      Bits x = load_element(m.element, &a[i]), y = load_element(m.element, &b[i]);
      Type type = computed_in(m.element);
      if (is_float(type) && std::isnan(number_of(type, x)) && std::isnan(number_of(type, y))) continue;
      return text(m.name, '[', i / size, "] is ", number_of(type, y), " instead of ", number_of(type, x));
    }
  }
  return "";
}

}  // namespace tenon::compile
