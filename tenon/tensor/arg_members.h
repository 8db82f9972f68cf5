// The members of BasicArg that arg.h only declares. For the files that instantiate it for a kind of tensor.
#pragma once
#include "tenon/tensor/arg.h"

namespace tenon {

template <class T>
BasicArg<T>::BasicArg() = default;
template <class T>
BasicArg<T>::BasicArg(bool value) : v(value) {}
template <class T>
BasicArg<T>::BasicArg(double value) : v(value) {}
template <class T>
BasicArg<T>::BasicArg(DType value) : v(value) {}
template <class T>
BasicArg<T>::BasicArg(Device value) : v(value) {}
template <class T>
BasicArg<T>::BasicArg(Layout value) : v(value) {}
template <class T>
BasicArg<T>::BasicArg(MemoryFormat value) : v(value) {}
template <class T>
BasicArg<T>::BasicArg(std::complex<double> value) : v(value) {}
template <class T>
BasicArg<T>::BasicArg(int value) : v(SymInt(value)) {}
template <class T>
BasicArg<T>::BasicArg(int64_t value) : v(SymInt(value)) {}
template <class T>
BasicArg<T>::BasicArg(size_t value) : v(SymInt(static_cast<int64_t>(value))) {}
template <class T>
BasicArg<T>::BasicArg(const char* value) : v(std::string(value)) {}
template <class T>
BasicArg<T>::BasicArg(SymInt value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(std::string value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(T value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(std::vector<T> value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(Sizes value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(std::vector<double> value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(std::vector<bool> value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(std::vector<std::string> value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(Subgraph value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(OperatorName value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(ObjectName value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(Items value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(Mapping value) : v(std::move(value)) {}
template <class T>
BasicArg<T>::BasicArg(const BasicArg&) = default;
template <class T>
BasicArg<T>::BasicArg(BasicArg&&) noexcept = default;
template <class T>
BasicArg<T>& BasicArg<T>::operator=(const BasicArg&) = default;
template <class T>
BasicArg<T>& BasicArg<T>::operator=(BasicArg&&) noexcept = default;
template <class T>
BasicArg<T>::~BasicArg() = default;
template <class T>
bool BasicArg<T>::operator==(const BasicArg& other) const {
  return v == other.v;
}

template <class T>
void BasicArg<T>::fail_kind() const {
  fail("an argument or result is ",
       is_none()     ? "None"
       : is_number() ? "a number"
                     : "of another kind",
       " where the program needs something else");
}

template <class U, class T>
BasicArg<U> without_tensors(const BasicArg<T>& arg) {
  return std::visit(
      [](const auto& value) -> BasicArg<U> {
        using V = std::decay_t<decltype(value)>;
        constexpr bool tensors = std::is_same_v<V, T> || std::is_same_v<V, std::vector<T>> ||
                                 std::is_same_v<V, typename BasicArg<T>::Items> ||
                                 std::is_same_v<V, typename BasicArg<T>::Mapping>;
        BasicArg<U> out;
        if constexpr (!tensors) out.v = value;
        return out;
      },
      arg.v);
}

}  // namespace tenon
