// A value that copies share until one of them is changed: tables that every graph of a program has, and few change.
#pragma once
#include <memory>

namespace tenon {

template <class T>
class CopyOnWrite {
 public:
  const T& operator*() const { return value_ ? *value_ : nothing(); }
  const T* operator->() const { return &**this; }
  /// The value for changing; its own from now on.
  T& edit() {
    if (!value_ || value_.use_count() > 1) value_ = std::make_shared<T>(**this);
    return *value_;
  }

 private:
  static const T& nothing() {
    static const T none;
    return none;
  }
  std::shared_ptr<T> value_;  // shared: by copies that were not changed since; null: nothing was ever put into it
};

}  // namespace tenon
