#include "tenon/tensor/dispatch.h"

#include <atomic>

namespace tenon {
namespace {
std::atomic<Dispatcher*> default_dispatcher{nullptr};
thread_local Dispatcher* current = nullptr;
thread_local bool grad_mode = true;
}  // namespace

Dispatcher* top_dispatcher() { return current ? current : default_dispatcher.load(std::memory_order_relaxed); }
void set_default_dispatcher(Dispatcher* dispatcher) { default_dispatcher = dispatcher; }

DispatchScope::DispatchScope(Dispatcher* dispatcher) : previous_(current) { current = dispatcher; }
DispatchScope::~DispatchScope() { current = previous_; }

bool grad_enabled() { return grad_mode; }
GradMode::GradMode(bool enabled) : previous_(grad_mode) { grad_mode = enabled; }
GradMode::~GradMode() { grad_mode = previous_; }

}  // namespace tenon
