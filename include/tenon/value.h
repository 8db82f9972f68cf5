// Arguments and results as trees: numbers, strings, None and tensors in lists, tuples and dictionaries.
#pragma once
#include <tenon/tensor.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::TENON_INLINE v0 {
class Value;

namespace detail {
// Fields of a plain struct, up to eight, in order: what a tuple or a dataclass of the program is matched with.
struct AnyField {
  template <class T>
  operator T() const;
};
struct AnyOptional {  // an optional would be made of AnyField in two ways
  template <class T>
  operator std::optional<T>() const;
};
template <class T, class... Fields>
constexpr std::size_t count_fields() {
  if constexpr (sizeof...(Fields) == 9) return 9;
  else if constexpr (requires { T{Fields{}..., AnyField{}}; }) return count_fields<T, Fields..., AnyField>();
  else if constexpr (requires { T{Fields{}..., AnyOptional{}}; }) return count_fields<T, Fields..., AnyOptional>();
  else return sizeof...(Fields);
}
template <class T, class F>
auto with_fields(T& t, F&& f) {
  constexpr std::size_t n = count_fields<std::remove_const_t<T>>();
  static_assert(n >= 1 && n <= 8, "a struct that stands for a tuple has one to eight fields");
  if constexpr (n == 1) {
    auto& [a] = t;
    return f(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = t;
    return f(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = t;
    return f(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = t;
    return f(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = t;
    return f(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, g] = t;
    return f(a, b, c, d, e, g);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, g, h] = t;
    return f(a, b, c, d, e, g, h);
  } else {
    auto& [a, b, c, d, e, g, h, i] = t;
    return f(a, b, c, d, e, g, h, i);
  }
}
template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t n>
inline constexpr bool is_array<std::array<T, n>> = true;
template <class T>
concept Dictionary = std::is_same_v<typename T::key_type, std::string> && requires(const T& t) {
  typename T::mapped_type;
  t.begin();
};
template <class T>
concept Struct = std::is_class_v<T> && std::is_aggregate_v<T> && !is_array<T> && !std::is_same_v<T, AnyField> &&
                 !std::is_same_v<T, AnyOptional>;
}  // namespace detail

/// None, a tensor, a boolean, an integer, a real number, a string, a list, a tuple (also a named one) or a dictionary.
/// Vectors and arrays are lists; std::tuple, std::pair and plain structs are tuples. C++ values become one implicitly,
/// and as<T>() gives them back. Values are plain: threads that share one may read it.
class TENON_PUBLIC Value {
 public:
  enum class Kind : std::uint8_t { none, tensor, truth, integer, real, string, list, tuple, dictionary };

  Value() noexcept {}
  Value(std::nullptr_t) noexcept {}
  Value(std::nullopt_t) noexcept {}
  Value(Tensor tensor) : kind_(tensor ? Kind::tensor : Kind::none), tensor_(std::move(tensor)) {}
  template <class T>
  requires std::is_arithmetic_v<T> Value(T number) {
    if constexpr (std::is_same_v<T, bool>) kind_ = Kind::truth, integer_ = number;
    else if constexpr (std::is_integral_v<T>) kind_ = Kind::integer, integer_ = static_cast<std::int64_t>(number);
    else kind_ = Kind::real, real_ = static_cast<double>(number);
  }
  Value(std::string text) : kind_(Kind::string), text_(std::move(text)) {}
  Value(const char* text) : kind_(Kind::string), text_(present(text)) {}
  template <class T>
  Value(const std::vector<T>& items) : kind_(Kind::list) {
    for (const auto& item : items) items_.emplace_back(T(item));
  }
  template <class T, std::size_t n>
  Value(const std::array<T, n>& items) : kind_(Kind::list) {
    for (const T& item : items) items_.emplace_back(item);
  }
  template <class... Ts>
  Value(const std::tuple<Ts...>& items) : kind_(Kind::tuple) {
    std::apply([&](const auto&... item) { (items_.emplace_back(item), ...); }, items);
  }
  template <class A, class B>
  Value(const std::pair<A, B>& items) : Value(std::tuple<const A&, const B&>(items.first, items.second)) {}
  template <class T>
  Value(const std::map<std::string, T>& entries) : kind_(Kind::dictionary) {
    for (const auto& [key, value] : entries) keys_.push_back(key), items_.emplace_back(value);
  }
  template <detail::Dictionary T>  // unordered ones: in the order of their keys
  Value(const T& entries) : Value(std::map<std::string, typename T::mapped_type>(entries.begin(), entries.end())) {}
  template <class T>
  Value(const std::optional<T>& item) {
    if (item) *this = Value(*item);
  }
  template <detail::Struct T>
  Value(const T& fields) : kind_(Kind::tuple) {
    detail::with_fields(fields, [&](const auto&... field) { (items_.emplace_back(field), ...); });
  }

  Kind kind() const noexcept { return kind_; }
  bool is_none() const noexcept { return kind_ == Kind::none; }
  bool is_sequence() const noexcept { return kind_ == Kind::list || kind_ == Kind::tuple; }
  std::size_t size() const;                               // of a list, a tuple or a dictionary
  const std::vector<std::string>& keys() const;           // of a dictionary, in order
  const Value& operator[](std::size_t index) const;       // of a list or a tuple
  const Value& operator[](const std::string& key) const;  // of a dictionary
  bool contains(const std::string& key) const;

  /// The value as a C++ type: Tensor, numbers, std::string, std::optional, vectors, arrays, tuples, maps with string
  /// keys and structs of these. With several types: a tuple of them. Another kind is an Error that names its path.
  template <class T, class... More>
  auto as() const {
    if constexpr (sizeof...(More) == 0) return get(static_cast<const std::remove_cvref_t<T>*>(nullptr), "result");
    else return get(static_cast<const std::tuple<T, More...>*>(nullptr), "result");
  }
  operator Tensor() const { return as<Tensor>(); }  // NOLINT: Tensor y = model(x)

  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value dictionary(std::vector<std::pair<std::string, Value>> entries);

 private:
  template <class T>
  using Wanted = const T*;
  const Value& get(Wanted<Value>, const std::string&) const { return *this; }
  Tensor get(Wanted<Tensor>, const std::string& path) const;
  std::string get(Wanted<std::string>, const std::string& path) const;
  template <class T>
  requires std::is_arithmetic_v<T> T get(Wanted<T>, const std::string& path)
  const {
    if constexpr (std::is_same_v<T, bool>) return boolean_at(path);
    else if constexpr (std::is_integral_v<T>) return detail::narrowed<T>(integer_at(path));
    else return static_cast<T>(real_at(path));
  }
  template <class T>
  std::optional<T> get(Wanted<std::optional<T>>, const std::string& path) const {
    if (is_none()) return std::nullopt;
    return get(static_cast<Wanted<T>>(nullptr), path);
  }
  template <class T>
  std::vector<T> get(Wanted<std::vector<T>>, const std::string& path) const {
    std::vector<T> out;
    std::size_t n = sequence_at(path);
    for (std::size_t i = 0; i < n; ++i) out.push_back(entry<T>(i, path));
    return out;
  }
  template <class T, std::size_t n>
  std::array<T, n> get(Wanted<std::array<T, n>>, const std::string& path) const {
    sequence_at(path, n);
    return [&]<std::size_t... i>(std::index_sequence<i...>) { return std::array<T, n>{entry<T>(i, path)...}; }
    (std::make_index_sequence<n>());
  }
  template <class... Ts>
  std::tuple<Ts...> get(Wanted<std::tuple<Ts...>>, const std::string& path) const {
    sequence_at(path, sizeof...(Ts));
    return [&]<std::size_t... i>(std::index_sequence<i...>) { return std::tuple<Ts...>{entry<Ts>(i, path)...}; }
    (std::index_sequence_for<Ts...>());
  }
  template <class A, class B>
  std::pair<A, B> get(Wanted<std::pair<A, B>>, const std::string& path) const {
    sequence_at(path, 2);
    return {entry<A>(0, path), entry<B>(1, path)};
  }
  template <class T>
  std::map<std::string, T> get(Wanted<std::map<std::string, T>>, const std::string& path) const {
    dictionary_at(path);
    std::map<std::string, T> out;
    for (std::size_t i = 0; i < keys_.size(); ++i)
      out.emplace(keys_[i], items_[i].get(static_cast<Wanted<T>>(nullptr), path + "[\"" + keys_[i] + "\"]"));
    return out;
  }
  template <detail::Struct T>
  T get(Wanted<T>, const std::string& path) const {
    T out{};
    detail::with_fields(out, [&](auto&... field) {
      sequence_at(path, sizeof...(field), true);
      std::size_t i = 0;
      ((field = entry<std::remove_cvref_t<decltype(field)>>(i, path), ++i), ...);
    });
    return out;
  }
  template <class T>
  T entry(std::size_t i, const std::string& path) const {
    return items_[i].get(static_cast<Wanted<T>>(nullptr), path + "[" + std::to_string(i) + "]");
  }

  static const char* present(const char* text);
  bool boolean_at(const std::string& path) const;
  std::int64_t integer_at(const std::string& path) const;
  double real_at(const std::string& path) const;
  std::size_t sequence_at(const std::string& path) const;
  void sequence_at(const std::string& path, std::size_t size, bool or_dictionary = false) const;
  void dictionary_at(const std::string& path) const;

  friend struct detail::Access;
  Kind kind_ = Kind::none;
  std::int64_t integer_ = 0;
  double real_ = 0;
  Tensor tensor_;
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<Value> items_;
};

/// "f32[2, 3]", "a list of 2"; for messages.
TENON_PUBLIC std::string describe(const Value& value);

}  // namespace tenon::TENON_INLINEv0
