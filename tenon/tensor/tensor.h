// One handle for users and for rules, in eager code and under tracing: it holds real storage, or a value of a graph
// being built. Operators on tensors are declared in ops/; a Tensor itself has no op methods.
#pragma once
#include <cstdint>
#include <memory>

#include "tenon/base/error.h"
#include "tenon/tensor/meta.h"
#include "tenon/tensor/storage.h"

namespace tenon {

struct GraphBody;  // graph/graph.h
using ValueId = uint32_t;

/// What autograd hangs on a tensor; declared here so that the handle can carry it.
struct GradInfo {
  virtual ~GradInfo() = default;
};

class Tensor {
 public:
  struct Impl {
    TensorMeta meta;
    std::shared_ptr<Storage> storage;  // shared: views; null when traced
    GraphBody* graph = nullptr;        // the graph being built; null when real
    ValueId value = 0;
    std::shared_ptr<GradInfo> grad;  // shared by handles of one autograd history
  };

  Tensor() = default;                                         // none: an optional tensor that is absent
  Tensor(TensorMeta meta, std::shared_ptr<Storage> storage);  // real
  Tensor(TensorMeta meta, GraphBody* graph, ValueId value);   // traced
  static Tensor empty(TensorMeta meta);                       // real, fresh storage, contents undefined
  static Tensor empty(DType dtype, const Sizes& sizes) { return empty(make_meta(dtype, sizes)); }
  static Tensor number(double value);   // 0-d f64 marked wrapped_number
  static Tensor number(int64_t value);  // 0-d i64 marked wrapped_number
  static Tensor number(bool value);

  explicit operator bool() const { return impl_ != nullptr; }
  bool defined() const { return impl_ != nullptr; }
  bool is_traced() const { return impl_ && impl_->graph; }
  // Of a tensor that is none these are Errors.
  const TensorMeta& meta() const { return there()->meta; }
  DType dtype() const { return meta().dtype; }
  const Sizes& sizes() const { return meta().sizes; }
  const Sizes& strides() const { return meta().strides; }
  SymInt size(int64_t dim) const { return meta().sizes[normal_dim(dim, rank())]; }
  size_t rank() const { return meta().rank(); }
  SymInt numel() const { return count(meta().sizes); }

  const std::shared_ptr<Storage>& storage() const { return there()->storage; }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes());
  }
  template <class T>
  T* mutable_data() {
    return reinterpret_cast<T*>(mutable_bytes());
  }
  /// Of the first element, which lies within the storage; of an empty tensor some address that is not to be read.
  const std::byte* bytes() const;
  std::byte* mutable_bytes();
  /// A tensor over the same storage with other sizes, strides or dtype.
  Tensor with_meta(TensorMeta meta) const;
  bool same_as(const Tensor& other) const { return impl_ == other.impl_; }
  friend bool operator==(const Tensor& a, const Tensor& b) {
    return a.impl_ == b.impl_;
  }  // the same handle; eq() compares elements

  Impl* impl() const { return impl_.get(); }

 private:
  Impl* there() const {
    if (!impl_) [[unlikely]]
      fail_none();
    return impl_.get();
  }
  [[noreturn]] static void fail_none();
  size_t first_byte() const;
  std::shared_ptr<Impl> impl_;  // shared: a handle is copied freely
};

/// The number that a real tensor of one element holds, widened to f64 or i64; any other count is an Error.
double scalar_value(const Tensor& t);
int64_t scalar_integer(const Tensor& t);
/// A real contiguous copy (also of mapped or strided data). Plain memory work, no operator runs.
Tensor contiguous_copy(const Tensor& t);
/// Copies elements of equal dtype and sizes, strides permitting anything.
void copy_elements(const Tensor& from, Tensor& to);
/// Fails where sizes, strides and offset do not fit the storage; all arithmetic is checked.
void require_fits(const TensorMeta& meta, size_t storage_bytes, std::string_view what);

}  // namespace tenon
