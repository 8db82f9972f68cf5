// An operator's argument or result: one closed variant, over Tensor in a call and over Value in a graph.
#pragma once
#include <complex>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/tensor/dtype.h"
#include "tenon/tensor/meta.h"

namespace tenon {

struct GraphBody;

/// A graph as an argument: the body of a region or of control flow. Its name is the one in the file.
struct Subgraph {
  std::string name;
  std::shared_ptr<const GraphBody> body;  // shared: arguments are copied, bodies are not changed
  bool operator==(const Subgraph&) const = default;
};
struct OperatorName {
  std::string name;
  bool operator==(const OperatorName&) const = default;
};

/// An object among a file's constants, by its name and its class.
struct ObjectName {
  std::string name, class_name;
  bool operator==(const ObjectName&) const = default;
};

template <class T>
struct BasicArg {
  using Items = std::vector<BasicArg>;
  /// Arguments by name, in the order of the file: keys[i] is the name of values[i].
  struct Mapping {
    std::vector<std::string> keys;
    Items values;
    bool operator==(const Mapping&) const = default;
  };
  using Variant =
      std::variant<std::monostate, bool, SymInt, double, std::string, DType, Device, Layout, MemoryFormat, T,
                   std::vector<T>, Sizes, std::vector<double>, std::vector<bool>, std::vector<std::string>, Subgraph,
                   OperatorName, ObjectName, std::complex<double>, Items, Mapping>;
  Variant v;

  // Making, copying and destroying one is compiled once, in the file that instantiates the struct, not in each that
  // uses it.
  BasicArg();
  BasicArg(const BasicArg&);
  BasicArg(BasicArg&&) noexcept;
  BasicArg& operator=(const BasicArg&);
  BasicArg& operator=(BasicArg&&) noexcept;
  ~BasicArg();
  bool operator==(const BasicArg&) const;
  BasicArg(bool);
  BasicArg(int);
  BasicArg(int64_t);
  BasicArg(size_t);
  BasicArg(SymInt);
  BasicArg(double);
  BasicArg(const char*);
  BasicArg(std::string);
  BasicArg(DType);
  BasicArg(Device);
  BasicArg(Layout);
  BasicArg(MemoryFormat);
  BasicArg(T);
  BasicArg(std::vector<T>);
  BasicArg(Sizes);
  BasicArg(std::vector<double>);
  BasicArg(std::vector<bool>);
  BasicArg(std::vector<std::string>);
  BasicArg(Subgraph);
  BasicArg(OperatorName);
  BasicArg(ObjectName);
  BasicArg(std::complex<double>);
  BasicArg(Items);
  BasicArg(Mapping);

  template <class U>
  bool is() const {
    return std::holds_alternative<U>(v);
  }
  template <class U>
  const U* get() const {
    return std::get_if<U>(&v);
  }
  template <class U>
  U* get() {
    return std::get_if<U>(&v);
  }
  /// The same where it must be one; an Error where it is not.
  template <class U>
  const U& as() const {
    if (auto* value = std::get_if<U>(&v)) return *value;
    fail_kind();
  }
  bool is_none() const { return v.index() == 0; }
  [[noreturn]] void fail_kind() const;
  bool is_number() const { return is<bool>() || is<SymInt>() || is<double>() || is<std::complex<double>>(); }
};

/// Calls visit(T&) for each T inside an argument, in order: tensors in lists and nested items too.
template <class T, class Visit>
void for_each_tensor(BasicArg<T>& arg, Visit&& visit) {
  if (T* t = arg.template get<T>()) visit(*t);
  else if (auto* list = arg.template get<std::vector<T>>())
    for (T& t : *list) visit(t);
  else if (auto* items = arg.template get<std::vector<BasicArg<T>>>())
    for (auto& item : *items) for_each_tensor(item, visit);
  else if (auto* mapping = arg.template get<typename BasicArg<T>::Mapping>())
    for (auto& item : mapping->values) for_each_tensor(item, visit);
}
template <class T, class Visit>
void for_each_tensor(const BasicArg<T>& arg, Visit&& visit) {
  for_each_tensor(const_cast<BasicArg<T>&>(arg), [&](T& t) { visit(static_cast<const T&>(t)); });
}

/// An argument without tensors, over another kind of tensor.
template <class U, class T>
BasicArg<U> without_tensors(const BasicArg<T>& arg);

/// The same argument over another kind of tensor: convert(T) -> U for each one inside.
template <class U, class T, class Convert>
BasicArg<U> map_tensors(const BasicArg<T>& arg, Convert&& convert) {
  if (const T* t = arg.template get<T>()) return BasicArg<U>(convert(*t));
  if (auto* list = arg.template get<std::vector<T>>()) {
    std::vector<U> out;
    out.reserve(list->size());
    for (const T& t : *list) out.push_back(convert(t));
    return BasicArg<U>(std::move(out));
  }
  if (auto* items = arg.template get<std::vector<BasicArg<T>>>()) {
    std::vector<BasicArg<U>> out;
    out.reserve(items->size());
    for (const auto& item : *items) out.push_back(map_tensors<U>(item, convert));
    return BasicArg<U>(std::move(out));
  }
  if (auto* mapping = arg.template get<typename BasicArg<T>::Mapping>()) {
    typename BasicArg<U>::Mapping out{mapping->keys, {}};
    out.values.reserve(mapping->values.size());
    for (const auto& item : mapping->values) out.values.push_back(map_tensors<U>(item, convert));
    return BasicArg<U>(std::move(out));
  }
  return without_tensors<U>(arg);
}

}  // namespace tenon
