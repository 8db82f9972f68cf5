// How the public functions of operators, which the build makes, call them.
#pragma once
#include <tenon/operators.h>

#include <array>

#include "tenon/api/access.h"
#include "tenon/graph/op.h"

namespace tenon::v0::detail {

/// An operator of the registry, by its schema's name.
const tenon::Op& operator_named(const char* name);

/// One call: the arguments in the order of the schema, then one of the getters, which makes the call and gives what
/// came back. Whatever is wrong leaves as an Error of the interface.
class Call {
 public:
  explicit Call(const tenon::Op& op);
  void give(const Tensor& tensor);
  void give(TensorList tensors);
  void give(Scalar number);
  void give(OptionalScalar number);
  void give(Size number);
  void give(std::int64_t number);
  void give(double number);
  void give(Flag flag);
  void give(IntList numbers);
  void give(FloatList numbers);
  void give(std::string_view text);
  void give(DType dtype);
  template <class T>
  void give(const std::optional<T>& value) {
    value ? give(*value) : absent();
  }
  void leave_out();  // the schema's default

  void run();
  Tensor tensor();
  Tensor written(const Tensor& self);  // what an in-place operator wrote
  std::vector<Tensor> list();
  bool truth();
  Size integer();
  double real();
  Scalar scalar();
  template <std::size_t n>
  auto tensors() {
    std::vector<Tensor> all = several(n);
    return [&]<std::size_t... i>(std::index_sequence<i...>) { return std::make_tuple(std::move(all[i])...); }
    (std::make_index_sequence<n>());
  }

 private:
  void absent();
  void give(tenon::CallArg arg);  // made fit for its slot
  std::vector<Tensor> several(std::size_t count);
  const tenon::CallArg& only();
  void require_result_fits(tenon::DType own) const;

  const tenon::Op& op_;
  tenon::CallArgs args_;
  tenon::CallResults results_;
};

}  // namespace tenon::v0::detail
