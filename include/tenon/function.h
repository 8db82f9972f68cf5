// Functions of the user that the library calls: lambdas, function pointers, objects with a call operator.
#pragma once
#include <tenon/visibility.h>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace tenon::TENON_INLINE v0 {
namespace detail {
[[noreturn]] TENON_PUBLIC void fail_no_function();
}  // namespace detail

template <class Signature>
class Function;

/// A callable, or none; copies share it. In place of std::function, whose header costs every user more than all of
/// ours. Calling none is an Error.
template <class Result, class... Args>
class Function<Result(Args...)> {
 public:
  Function() noexcept = default;
  Function(std::nullptr_t) noexcept {}
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Function> && std::is_invocable_r_v<Result, std::decay_t<F>&, Args...>)
      Function(F&& callable) {
    std::decay_t<F> own(std::forward<F>(callable));
    if constexpr (std::is_pointer_v<std::decay_t<F>> || requires { own.operator bool(); }) {  // an empty std::function
      if (!own) return;
    }
    held_ = new Holds<std::decay_t<F>>(std::move(own));
  }
  Function(const Function& other) noexcept : held_(other.held_) {
    if (held_) __atomic_fetch_add(&held_->handles, 1, __ATOMIC_RELAXED);
  }
  Function(Function&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Function& operator=(Function other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Function() {
    if (held_ && __atomic_fetch_sub(&held_->handles, 1, __ATOMIC_ACQ_REL) == 1) delete held_;
  }
  explicit operator bool() const noexcept { return held_ != nullptr; }
  bool operator==(std::nullptr_t) const noexcept { return held_ == nullptr; }
  Result operator()(Args... args) const {
    if (!held_) detail::fail_no_function();
    return held_->call(std::forward<Args>(args)...);
  }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual Result call(Args... args) = 0;
    long handles = 1;
  };
  template <class F>
  struct Holds final : Held {
    explicit Holds(F&& own) : callable(std::move(own)) {}
    Result call(Args... args) override {
      if constexpr (std::is_void_v<Result>) static_cast<void>(callable(std::forward<Args>(args)...));
      else return callable(std::forward<Args>(args)...);
    }
    F callable;
  };
  Held* held_ = nullptr;
};

}  // namespace tenon::TENON_INLINEv0
