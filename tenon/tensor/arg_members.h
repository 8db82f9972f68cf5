// The members of BasicArg that arg.h only declares. For the files that instantiate it for a kind of tensor.
#pragma once
#include "tenon/tensor/arg.h"

namespace tenon {

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
        constexpr bool tensors =
            std::is_same_v<V, T> || std::is_same_v<V, std::vector<T>> || std::is_same_v<V, std::vector<BasicArg<T>>>;
        BasicArg<U> out;
        if constexpr (!tensors) out.v = value;
        return out;
      },
      arg.v);
}

}  // namespace tenon
