// Executes the library calls of an anchor on one target, with every buffer, temporary and scratch at a guard page.
#pragma once
#include <map>
#include <memory>

#include "tenon/base/error.h"
#include "tenon/plan/library.h"
#include "tests/kernels/call.h"

namespace tenon::plan {

/// A program of buffers alone, and their memory.
template <class T>
class Buffers {
 public:
  loop::Program program;

  /// A buffer of these sizes, row-major; its elements come from `value`.
  template <class Value>
  loop::Operand add(const Sizes& sizes, Value value) {
    TensorMeta meta = make_meta(dtype(), sizes);
    return add(sizes, meta.strides, numbers(sizes), value);
  }
  /// The same with strides; sizes may have symbols, `numbers` are their values.
  template <class Value>
  loop::Operand add(const Sizes& sizes, const Sizes& strides, const Sizes& numbers, Value value) {
    const loop::BufferId id = static_cast<loop::BufferId>(program.buffers.size());
    program.buffers.push_back({.dtype = dtype(), .sizes = sizes, .strides = strides, .name = text("b", id)});
    size_t count = 1;
    for (SymInt e : numbers) count *= static_cast<size_t>(e.as_int());
    std::vector<T> values(count);
    for (T& x : values) x = static_cast<T>(value());
    first_.push_back(values);
    return {id, sizes, strides, 0};
  }

  /// What buffer `id` holds after the step.
  std::vector<T> run(const std::vector<loop::Step>& steps, loop::BufferId id, tenon_target target, int64_t grain_factor,
                     const sym::Bindings& symbols = {}) const {
    std::vector<std::unique_ptr<kernels::Guarded<T>>> memory;
    for (const std::vector<T>& values : first_) memory.push_back(std::make_unique<kernels::Guarded<T>>(values));
    for (const loop::Step& step : steps) {
      const LibraryCalls made = library_calls(program, step);
      auto number = [&](SymInt e) { return e.is_int() ? e.as_int() : sym::evaluate(e, symbols); };
      for (const Condition& c : made.conditions) require(sym::evaluate_bool(c.holds, symbols), c.message);
      std::vector<std::unique_ptr<kernels::Guarded<char>>> temporaries;
      for (SymInt bytes : made.temporaries)
        temporaries.push_back(std::make_unique<kernels::Guarded<char>>(static_cast<size_t>(number(bytes))));
      for (const LibraryCall& c : made.calls) {
        kernels::KernelCall call{std::string(c.function), {}, {}, number(c.extent), number(c.grain) * grain_factor,
                                 number(c.scratch)};
        for (const LibraryArg& arg : c.args)
          call.buffers.push_back(arg.buffer == loop::no_buffer ? static_cast<void*>(temporaries[arg.temporary]->data())
                                                               : memory[arg.buffer]->data());
        for (const loop::Param& p : c.params) call.params.push_back(loop::evaluate(p, symbols));
        EXPECT_EQ(call.run(target), 0) << c.function;
      }
    }
    return memory[id]->values();
  }

  const std::vector<T>& values(const loop::Operand& o) const { return first_[o.buffer]; }

 private:
  static DType dtype() {
    return std::is_same_v<T, float> ? DType::f32 : std::is_same_v<T, double> ? DType::f64 : DType::i64;
  }
  static Sizes numbers(const Sizes& sizes) { return sizes; }
  std::vector<std::vector<T>> first_;
};

}  // namespace tenon::plan
