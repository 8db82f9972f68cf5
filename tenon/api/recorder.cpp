#include "tenon/api/recorder.h"

#include <tenon/export.h>

namespace tenon::v0 {
namespace detail {
namespace {
thread_local Recorder* current = nullptr;
}

Recorder* current_recorder() { return current; }
RecorderScope::RecorderScope(Recorder* recorder) : previous_(current) { current = recorder; }
RecorderScope::~RecorderScope() { current = previous_; }

}  // namespace detail

ModuleScope::ModuleScope(const void* module, const char* type) : entered_(detail::current != nullptr) {
  if (entered_) detail::current->enter(module, type);
}
void ModuleScope::takes(TensorList inputs) const {
  if (entered_ && detail::current) detail::current->takes(inputs);
}
void ModuleScope::gives(TensorList results) const {
  if (entered_ && detail::current) detail::current->gives(results);
}
ModuleScope::~ModuleScope() {
  if (entered_ && detail::current) detail::current->leave();
}

}  // namespace tenon::v0
