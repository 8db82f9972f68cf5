// Calling operators and reading the arguments of a call: what user code and the rules of operators are written with.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tenon/graph/op.h"

namespace tenon {

inline const Tensor none;  // an absent optional tensor

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
  requires std::is_constructible_v<CallArg, T&&> Given(T&& value) : value(std::forward<T>(value)) {}
  Given(const Results& only) : value(Tensor(only)) {}  // of another call: exp(neg(x))
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

/// Arguments in schema order with defaults filled in; a wrong one is an Error that names op, argument, expected and
/// got.
CallArgs bind(const Op& op, std::span<Given> given);
Results call_op(const Op& op, CallArgs args);

/// Which argument of a call: by its name in the schema; by position only where a loop runs over all of them.
struct Slot {
  const char* name = nullptr;
  size_t position = 0;
  Slot(const char* name) : name(name) {}
  Slot(size_t position) : position(position) {}
  Slot(int) = delete;  // a number says nothing to the reader
};

/// Typed access to the arguments of a call; the base of what rules get.
struct ArgsView {
  const Op& op;
  std::span<const CallArg> args;

  ArgsView(const Op& op, std::span<const CallArg> args) : op(op), args(args) {}
  size_t index(Slot arg) const;    // its position in the schema
  bool given(Slot arg) const;      // neither None nor an absent tensor
  bool is_tensor(Slot arg) const;  // a tensor, not a number in a tensor's slot
  Tensor tensor(Slot arg) const;   // a number becomes a 0-d tensor marked wrapped_number; None becomes none
  Tensor operator[](Slot arg) const { return tensor(arg); }
  const TensorMeta& meta(Slot arg) const;
  std::vector<Tensor> tensors(Slot arg) const;  // Tensor[] and Tensor?[]
  SymInt integer(Slot arg) const;
  int64_t constant(Slot arg) const;  // an integer that must not be symbolic
  double number(Slot arg) const;     // int, float or bool as a double
  bool flag(Slot arg) const;
  Sizes ints(Slot arg) const;
  Sizes ints(Slot arg, size_t count) const;  // a broadcasting list: one number stands for all
  std::optional<DType> dtype(Slot arg) const;
  const std::string& string(Slot arg) const;
  size_t dim(Slot arg, size_t rank) const;  // a dimension made non-negative
  /// Dimensions made non-negative, sorted and without repeats; all of them where the list is absent or empty.
  SmallVector<size_t, 6> dims(Slot arg, size_t rank) const;
  const CallArg& arg(Slot arg) const { return args[index(arg)]; }

  /// The user's fault: the message starts with the op's name.
  template <class... Parts>
  void require(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      tenon::fail(op.name(), ": ", parts...);
  }
  /// Nobody's fault, but not done.
  template <class... Parts>
  void supports(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      fail_unsupported(text(op.name(), ": ", parts...));
  }
};

/// "f32[2, 3]", "3", "None": an argument as an error message shows it.
std::string describe(const CallArg& arg);

}  // namespace tenon
