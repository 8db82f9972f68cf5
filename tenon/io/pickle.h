// Pickles read as inert data: nothing is imported, called or built. A global is two names, a call is a callee and its
// arguments, and whoever reads the tree decides which of them mean something. Covers what torch.save and TorchScript
// write.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/base/budget.h"
#include "tenon/base/error.h"

namespace tenon {

enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  real,
  string,
  bytes,
  tuple,
  list,
  dict,
  set,         // frozen or not
  global,      // module and name
  call,        // callee(*args), then perhaps items or pairs added and a state set
  object,      // callee.__new__(callee, *args), the same
  persistent,  // a value kept outside the pickle, known by its id
};

namespace detail {
struct PickleBody;
struct PickleNode;
}  // namespace detail

class PickleValue;
struct PicklePair;

/// A value of a PickleDocument, which must outlive it. Values may be shared, but never contain themselves, and walking
/// the whole as a tree is safe: depth and size are limited. Accessors check the kind.
class PickleValue {
 public:
  PickleKind kind() const;
  bool is(PickleKind wanted) const { return kind() == wanted; }
  bool is_none() const { return is(PickleKind::none); }

  bool as_bool() const;
  int64_t as_int() const;
  double as_real() const;              // integers too
  std::string_view as_string() const;  // as in the file: not checked to be UTF-8
  std::string_view as_bytes() const;

  /// Items of a tuple, list or set; pairs of a dict; what was added to a call or object, of either sort.
  size_t size() const;
  PickleValue operator[](size_t i) const;
  bool has_pairs() const;
  PicklePair pair(size_t i) const;

  std::string_view module() const;  // of a global
  std::string_view name() const;
  bool is_global(std::string_view module, std::string_view name) const;

  PickleValue callee() const;  // of a call or object: always a global
  PickleValue args() const;    // always a tuple
  std::optional<PickleValue> state() const;
  bool is_call(std::string_view module, std::string_view name) const;

  PickleValue id() const;  // of a persistent value

  /// "the string 'x'", "a call of torch._utils._rebuild_tensor_v2", for messages.
  std::string describe() const;
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(text(subject(), ": ", parts...));
  }
  template <class... Parts>
  void require(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      fail(parts...);
  }

 private:
  friend class PickleDocument;
  PickleValue(const detail::PickleBody* body, uint32_t index) : body_(body), index_(index) {}
  const detail::PickleNode& node() const;
  const detail::PickleNode& need(PickleKind kind) const;
  const detail::PickleNode& need_callable() const;
  const std::string& subject() const;
  std::string_view text_of(uint32_t index) const;

  const detail::PickleBody* body_;
  uint32_t index_;
};

struct PicklePair {
  PickleValue key, value;
};

struct PickleLimits {
  size_t bytes = size_t{256} << 20;
  size_t values = size_t{4} << 20;    // values made, and instructions to make them
  size_t expanded = size_t{8} << 20;  // values met when walking the result as a tree
  size_t depth = 200;
  Budget* budget = nullptr;  // of the file that the pickle is from
};

class PickleDocument {
 public:
  PickleDocument(std::span<const std::byte> bytes, std::string subject, const PickleLimits& limits = {});
  ~PickleDocument();
  PickleDocument(PickleDocument&&) noexcept;
  PickleDocument& operator=(PickleDocument&&) noexcept;

  PickleValue root() const;

 private:
  std::unique_ptr<detail::PickleBody> body_;
};

/// A tensor as torch.save pickles it; its storage stands in the archive under data/<key>.
struct PickledTensor {
  std::string_view storage;  // "FloatStorage"; empty for dtypes without a storage class, which are told by `dtype`
  std::string_view dtype;    // "uint16"
  std::string_view key;
  std::string_view location = "cpu";
  int64_t count = 0;  // elements of the storage, or its bytes where it has no class
  int64_t offset = 0;
  std::span<const int64_t> sizes, strides;
  bool requires_grad = false;
};

/// Writes protocol 2, what torch.load(weights_only=True) reads.
class PickleWriter {
 public:
  PickleWriter();
  void none();
  void boolean(bool value);
  void integer(int64_t value);
  void real(double value);
  void string(std::string_view value);
  void begin_tuple();
  void end_tuple();
  void begin_list();
  void end_list();
  void begin_dict();          // then key, value, key, value
  void begin_ordered_dict();  // a collections.OrderedDict, ended by end_dict()
  void begin_default_dict(std::string_view module, std::string_view name);  // a defaultdict that makes such; "": none
  void end_dict();
  void begin_deque(std::optional<int64_t> limit);                     // ended by end_list()
  void begin_object(std::string_view module, std::string_view name);  // then what the class is made from
  void end_object();
  void begin_object_with_fields(std::string_view module, std::string_view name);  // then field, value, field, value
  void end_object_with_fields();
  void begin_object_with_state(std::string_view module, std::string_view name);  // then one value
  void end_object_with_state();
  void tensor(const PickledTensor& tensor);

  std::string take();

 private:
  void value();
  void begin(char kind);
  void end(char kind, char opcode);
  void global(std::string_view module, std::string_view name);
  void integers(std::span<const int64_t> values);
  struct Open {
    char kind;
    size_t count;
  };
  std::string out_;
  std::vector<Open> open_;
  bool done_ = false;
};

}  // namespace tenon
