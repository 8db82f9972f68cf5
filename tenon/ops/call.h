// Calling operators and reading the arguments of a call: what user code and the rules of operators are written with.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tenon/graph/op.h"

namespace tenon {

inline const Tensor none;   // an absent optional tensor

/// What an operator returned.
struct Results {
  CallResults values;
  operator Tensor() const;                              // the only result
  Tensor operator[](size_t i) const;                    // a tensor result; none where it is absent
  const std::vector<Tensor>& list(size_t i = 0) const;  // a Tensor[] result
};

/// An argument by position, or by name: add(x, y, kw("alpha", 2)).
struct Given {
  const char* name = nullptr;
  CallArg value;
  template <class T>
    requires std::is_constructible_v<CallArg, T&&>
  Given(T&& value) : value(std::forward<T>(value)) {}
  Given(const char* name, CallArg value) : name(name), value(std::move(value)) {}
};
inline Given kw(const char* name, CallArg value) { return Given(name, std::move(value)); }

/// By which formulas and users call an op. Declared once in its family's header, set when the op is registered.
class Handle {
 public:
  constexpr Handle() = default;
  template <class... A>
  Results operator()(A&&... args) const {
    Given given[] = {Given(std::forward<A>(args))...};
    return call(std::span<Given>(given, sizeof...(A)));
  }
  const Op& op() const;

 private:
  friend class Registry;
  Results call(std::span<Given> args) const;
  const Op* op_ = nullptr;
};

/// Arguments in schema order with defaults filled in; a wrong one is an Error that names op, argument, expected and got.
CallArgs bind(const Op& op, std::span<Given> given);
Results call_op(const Op& op, CallArgs args);

/// Typed access to the arguments of a call; the base of what rules get.
struct ArgsView {
  const Op& op;
  std::span<const CallArg> args;

  ArgsView(const Op& op, std::span<const CallArg> args) : op(op), args(args) {}
  bool given(size_t i) const;                       // neither None nor an absent tensor
  bool is_tensor(size_t i) const;                   // a tensor, not a number in a tensor's slot
  Tensor tensor(size_t i) const;                    // a number becomes a 0-d tensor marked wrapped_number; None becomes none
  Tensor operator[](size_t i) const { return tensor(i); }
  const TensorMeta& meta(size_t i) const;
  std::vector<Tensor> tensors(size_t i) const;      // Tensor[] and Tensor?[]
  SymInt integer(size_t i) const;
  int64_t constant(size_t i) const;                 // an integer that must not be symbolic
  double number(size_t i) const;                    // int, float or bool as a double
  bool flag(size_t i) const;
  Sizes ints(size_t i) const;
  Sizes ints(size_t i, size_t count) const;         // a broadcasting list: one number stands for all
  std::optional<DType> dtype(size_t i) const;
  const std::string& string(size_t i) const;
  size_t dim(size_t i, size_t rank) const;          // a dimension made non-negative
  /// Dimensions made non-negative, sorted and without repeats; all of them where the list is absent or empty.
  SmallVector<size_t, 6> dims(size_t i, size_t rank) const;
  const CallArg& arg(size_t i) const { return args[i]; }

  /// The user's fault: the message starts with the op's name.
  template <class... Parts>
  void require(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]] tenon::fail(op.name(), ": ", parts...);
  }
  /// Nobody's fault, but not done.
  template <class... Parts>
  void supports(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]] fail_unsupported(text(op.name(), ": ", parts...));
  }
};

/// "f32[2, 3]", "3", "None": an argument as an error message shows it.
std::string describe(const CallArg& arg);

}  // namespace tenon
