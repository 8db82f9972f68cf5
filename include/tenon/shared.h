// Handles of what only the library sees.
#pragma once
#include <tenon/visibility.h>

#include <utility>

namespace tenon::TENON_INLINE v0::detail {
struct TensorBody;
struct ProgramBody;
struct ModuleBody;
struct CompiledModuleBody;
struct TrainingBody;
struct Access;

[[noreturn]] TENON_PUBLIC void fail_empty();  // of a handle that was moved from, or never made
TENON_PUBLIC void retain(TensorBody* body) noexcept;
TENON_PUBLIC void release(TensorBody* body) noexcept;
TENON_PUBLIC void retain(ProgramBody* body) noexcept;
TENON_PUBLIC void release(ProgramBody* body) noexcept;
TENON_PUBLIC void retain(ModuleBody* body) noexcept;
TENON_PUBLIC void release(ModuleBody* body) noexcept;
TENON_PUBLIC void retain(CompiledModuleBody* body) noexcept;
TENON_PUBLIC void release(CompiledModuleBody* body) noexcept;
TENON_PUBLIC void retain(TrainingBody* body) noexcept;
TENON_PUBLIC void release(TrainingBody* body) noexcept;

/// Copies share the body, which lives as long as one of them; counted safely between threads. In place of
/// std::shared_ptr, whose header costs every user more than all of ours.
template <class Body>
class Shared {
 public:
  Shared() noexcept = default;
  explicit Shared(Body* body) noexcept : body_(body) {}  // takes over the count that a new body has
  Shared(const Shared& other) noexcept : body_(other.body_) {
    if (body_) retain(body_);
  }
  Shared(Shared&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~Shared() {
    if (body_) release(body_);
  }
  Body* get() const noexcept { return body_; }
  Body* operator->() const { return &**this; }
  Body& operator*() const {
    if (!body_) fail_empty();
    return *body_;
  }
  explicit operator bool() const noexcept { return body_ != nullptr; }

 private:
  Body* body_ = nullptr;
};

}  // namespace tenon::TENON_INLINEv0::detail
