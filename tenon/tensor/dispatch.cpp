#include "tenon/tensor/dispatch.h"

#include <atomic>

namespace tenon {
namespace {
std::atomic<Dispatcher*> default_dispatcher{nullptr};
}  // namespace

Context& context() {
  static constinit thread_local Context of_this_thread;
  return of_this_thread;
}

Dispatcher* top_dispatcher() {
  Dispatcher* current = context().dispatcher;
  return current ? current : default_dispatcher.load(std::memory_order_relaxed);
}
void set_default_dispatcher(Dispatcher* dispatcher) { default_dispatcher = dispatcher; }

}  // namespace tenon
