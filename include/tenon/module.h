// A program with state, to be called.
#pragma once
#include <tenon/program.h>
#include <tenon/value.h>

#include <initializer_list>
#include <map>
#include <utility>

namespace tenon::TENON_INLINE v0 {
/// Keyword arguments, in any order: {{"mask", mask}, {"scale", 2.0}}.
class Kwargs {
 public:
  Kwargs() = default;
  Kwargs(std::initializer_list<std::pair<std::string, Value>> entries) : entries_(entries) {}
  void add(std::string name, Value value) { entries_.emplace_back(std::move(name), std::move(value)); }
  const std::vector<std::pair<std::string, Value>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, Value>> entries_;
};

struct ModuleOptions {
  std::uint64_t seed = 0;     // of random operators
  bool check_weights = true;  // compare the weights of a file with their checksums before the first call
  Log log = {};               // told of what prepares the program, from the thread of the call that needs it
  OnProgress progress = {};   // of load, and of preparing at the first call
};

/// All that one call gave.
struct RunResult {
  Value result;
  std::map<std::string, Tensor> gradients;  // of programs that differentiate() made, by parameter or input name
};

/// A program and its parameters and buffers. A call writes the buffers, and the arguments, that the program writes,
/// as PyTorch's module() does. Every member may be called from many threads at once: calls that only read state run
/// side by side, those that write it one after another. Copies share the state.
class TENON_PUBLIC Module {
 public:
  explicit Module(ExportedProgram program, const ModuleOptions& options = {});

  const ExportedProgram& program() const;
  std::vector<std::string> names() const;                  // parameters, buffers, constants
  Tensor get(const std::string& name) const;               // a copy
  void set(const std::string& name, const Tensor& value);  // of the same dtype and sizes

  /// One argument per parameter of forward, then keywords; a parameter of forward may be given by its name too.
  Value call(const std::vector<Value>& args, const Kwargs& kwargs = {}) const { return run(args, kwargs).result; }
  RunResult run(const std::vector<Value>& args, const Kwargs& kwargs = {}) const;

  Value operator()(const Kwargs& kwargs = {}) const { return call({}, kwargs); }
  Value operator()(Value a, const Kwargs& kwargs = {}) const { return call({std::move(a)}, kwargs); }
  Value operator()(Value a, Value b, const Kwargs& kwargs = {}) const {
    return call({std::move(a), std::move(b)}, kwargs);
  }
  Value operator()(Value a, Value b, Value c, const Kwargs& kwargs = {}) const {
    return call({std::move(a), std::move(b), std::move(c)}, kwargs);
  }
  Value operator()(Value a, Value b, Value c, Value d, const Kwargs& kwargs = {}) const {
    return call({std::move(a), std::move(b), std::move(c), std::move(d)}, kwargs);
  }
  template <class... More>
  requires(sizeof...(More) >= 1 && (std::is_convertible_v<More, Value> && ...)) Value operator()(Value a, Value b,
                                                                                                 Value c, Value d,
                                                                                                 More&&... more) const {
    return call({std::move(a), std::move(b), std::move(c), std::move(d), Value(std::forward<More>(more))...});
  }

 private:
  friend struct detail::Access;
  detail::Shared<detail::ModuleBody> body_;
};

/// Reads and verifies a .pt2 file and makes it ready to be called.
TENON_PUBLIC Module load(const std::string& path, const ModuleOptions& options = {});
/// Writes the program with the state as it is now.
TENON_PUBLIC void save(const Module& module, const std::string& path, const SaveOptions& options = {});
/// Threads that one call may use; the machine's cores where it is never called.
TENON_PUBLIC void set_threads(int count);

}  // namespace tenon::TENON_INLINEv0
