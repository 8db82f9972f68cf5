// A vector that keeps short contents inside itself: sizes, strides and argument lists. Its elements move and are
// destroyed without failing.
#pragma once
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "tenon/base/text.h"

namespace tenon {

/// An Error: an index that a list does not have.
[[noreturn]] void fail_index(size_t index, size_t size);

template <class T, size_t N>
class SmallVector {
  static constexpr bool trivial = std::is_trivially_copyable_v<T>;
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);

 public:
  using value_type = T;
  SmallVector() = default;
  SmallVector(std::initializer_list<T> items) { append(items.begin(), items.size()); }
  explicit SmallVector(std::span<const T> items) { append(items.data(), items.size()); }
  SmallVector(size_t count, const T& value) { resize(count, value); }
  SmallVector(const SmallVector& other) { append(other.data(), other.size()); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other.data(), other.size());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      clear();
      release();
      take(other);
    }
    return *this;
  }
  ~SmallVector() {
    clear();
    release();
  }

  T* data() { return heap_ ? heap_ : reinterpret_cast<T*>(inline_); }
  const T* data() const { return heap_ ? heap_ : reinterpret_cast<const T*>(inline_); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  // Checked: rules of operators index sizes by what a file says, and a file may say anything.
  T& operator[](size_t i) { return data()[checked(i)]; }
  const T& operator[](size_t i) const { return data()[checked(i)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }
  operator std::span<const T>() const { return {data(), size_}; }

  void push_back(const T& value) {
    if (size_ == capacity_) {
      T copy = value;  // it may be an element of this
      reserve(size_ + 1);
      new (data() + size_) T(std::move(copy));
    } else {
      new (data() + size_) T(value);
    }
    ++size_;
  }
  void pop_back() {
    checked(0);
    shrink(size_ - 1);
  }
  void resize(size_t count, const T& value = T{}) {
    if (count <= size_) return shrink(count);
    T copy = value;
    reserve(count);
    while (size_ < count) {
      new (data() + size_) T(copy);
      ++size_;
    }
  }
  void clear() { shrink(0); }
  void insert(size_t at, const T& value) {
    if (at > size_) fail_index(at, size_);
    T copy = value;
    push_back(copy);
    for (size_t i = size_ - 1; i > at; --i) data()[i] = std::move(data()[i - 1]);
    data()[at] = std::move(copy);
  }
  void erase(size_t at) {
    checked(at);
    for (size_t i = at; i + 1 < size_; ++i) data()[i] = std::move(data()[i + 1]);
    shrink(size_ - 1);
  }
  void append(std::span<const T> items) { append(items.data(), items.size()); }
  void reserve(size_t count) {
    if (count <= capacity_) return;
    if (count > most) [[unlikely]]
      fail_index(count, size_);
    size_t larger = count > 2 * capacity_ ? count : 2 * capacity_;
    T* heap = static_cast<T*>(::operator new(larger * sizeof(T)));
    relocate(data(), size_, heap);
    release();
    heap_ = heap;
    capacity_ = larger;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }

 private:
  // No list is this long. A count above it is a difference of sizes that went below zero.
  static constexpr size_t most = size_t{1} << 32;
  size_t checked(size_t i) const {
    if (i >= size_) [[unlikely]]
      fail_index(i, size_);
    return i;
  }
  void append(const T* items, size_t count) {
    if (count > most) [[unlikely]]
      fail_index(count, size_);
    reserve(size_ + count);
    if constexpr (trivial) {
      if (count) std::memcpy(static_cast<void*>(data() + size_), items, count * sizeof(T));
      size_ += count;
    } else {
      T* to = data() + size_;
      for (size_t i = 0; i < count; ++i) new (to + i) T(items[i]);
      size_ += count;
    }
  }
  void shrink(size_t count) {
    if constexpr (!trivial)
      for (T *at = data() + count, *last = data() + size_; at < last; ++at) at->~T();
    size_ = count;
  }
  // Moves elements to raw memory, and leaves raw memory behind.
  static void relocate(T* from, size_t count, T* to) {
    if constexpr (trivial) {
      if (count) std::memcpy(static_cast<void*>(to), from, count * sizeof(T));
    } else {
      for (size_t i = 0; i < count; ++i) {
        new (to + i) T(std::move(from[i]));
        from[i].~T();
      }
    }
  }
  void take(SmallVector& other) {
    heap_ = other.heap_;
    size_ = other.size_;
    capacity_ = other.capacity_;
    if (!heap_) relocate(reinterpret_cast<T*>(other.inline_), size_, reinterpret_cast<T*>(inline_));
    other.heap_ = nullptr;
    other.size_ = 0;
    other.capacity_ = N;
  }
  void release() {
    if (heap_) ::operator delete(heap_);
    heap_ = nullptr;
    capacity_ = N;
  }

  T* heap_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

template <class T, size_t N>
void append_text(std::string& out, const SmallVector<T, N>& items) {
  out += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += ", ";
    append_text(out, items[i]);
  }
  out += ']';
}

}  // namespace tenon
