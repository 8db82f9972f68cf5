// What code that runs on a thread finds around it: who executes calls, whether they are recorded for gradients, whose
// symbols rules decide by, where random draws come from, what rules may choose. It is one object per thread; scopes
// (DispatchScope, GradMode, ShapesScope, ExamplesScope, RandomScope, LoweringScope, autograd::Unrecorded) change one
// field of it and put it back, nothing else does.
#pragma once

namespace tenon {

class Dispatcher;        // tensor/dispatch.h
class Examples;          // rules/symbolic_shapes.h
class RandomScope;       // ops/random.h
struct LoweringOptions;  // rules/lowering_options.h
namespace sym {
struct ShapeEnv;
}

struct Context {
  Dispatcher* dispatcher = nullptr;           // null: the process's default
  bool grad_enabled = true;                   // calls are recorded for gradients, as in PyTorch
  bool unrecorded = false;                    // a program is being made of the calls: none is recorded
  const sym::ShapeEnv* shapes = nullptr;      // of the program being traced
  sym::ShapeEnv* growing_shapes = nullptr;    // the same, where symbols may be added
  Examples* examples = nullptr;               // sizes that decide what ranges do not
  RandomScope* random = nullptr;              // null: the process's own state
  const LoweringOptions* lowering = nullptr;  // null: the defaults
};

/// This thread's.
Context& context();

/// Sets a field of this thread's context for the life of the scope.
template <class T>
class ContextScope {
 public:
  ContextScope(T Context::*field, T value) : field_(field), previous_(context().*field) { context().*field = value; }
  ~ContextScope() { context().*field_ = previous_; }
  ContextScope(const ContextScope&) = delete;

 private:
  T Context::*field_;
  T previous_;
};

}  // namespace tenon
