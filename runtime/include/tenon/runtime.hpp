// The runtime's C interface (tenon/runtime.h) for C++17: handles that own, errors that throw, tensors over vectors.
// Header-only; everything is in runtime.h, where thread safety and ownership are written down.
#ifndef TENON_RUNTIME_HPP
#define TENON_RUNTIME_HPP
#include <complex>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime.h"

namespace tenon::runtime {

class Error : public std::runtime_error {
 public:
  Error(tenon_status status, const char* message) : std::runtime_error(message), status_(status) {}
  tenon_status status() const { return status_; }

 private:
  tenon_status status_;
};

inline void check(tenon_status status) {
  if (status != TENON_OK) throw Error(status, tenon_last_error());
}

template <class T>
constexpr int32_t dtype_of();
#define TENON_DTYPE_OF(type, code)     \
  template <>                          \
  constexpr int32_t dtype_of<type>() { \
    return code;                       \
  }
TENON_DTYPE_OF(bool, TENON_BOOL)
TENON_DTYPE_OF(uint8_t, TENON_U8)
TENON_DTYPE_OF(int8_t, TENON_I8)
TENON_DTYPE_OF(int16_t, TENON_I16)
TENON_DTYPE_OF(int32_t, TENON_I32)
TENON_DTYPE_OF(int64_t, TENON_I64)
TENON_DTYPE_OF(uint16_t, TENON_U16)
TENON_DTYPE_OF(uint32_t, TENON_U32)
TENON_DTYPE_OF(uint64_t, TENON_U64)
TENON_DTYPE_OF(float, TENON_F32)
TENON_DTYPE_OF(double, TENON_F64)
TENON_DTYPE_OF(std::complex<float>, TENON_C64)
TENON_DTYPE_OF(std::complex<double>, TENON_C128)
#undef TENON_DTYPE_OF

/// A contiguous tensor over somebody's memory. Data of an input that the program does not write is not changed.
inline tenon_tensor tensor(const void* data, int32_t dtype, const std::vector<int64_t>& sizes) {
  tenon_tensor out{};
  if (sizes.size() > TENON_MAX_RANK) throw Error(TENON_INVALID_ARGUMENT, "a tensor has at most 16 dimensions");
  out.data = const_cast<void*>(data);
  out.dtype = dtype;
  out.rank = static_cast<int32_t>(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    out.sizes[d] = sizes[d];
    out.strides[d] = stride;
    stride *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return out;
}
template <class T>
tenon_tensor tensor(const T* data, const std::vector<int64_t>& sizes) {
  return tensor(data, dtype_of<T>(), sizes);
}

/// A result: memory that the runtime allocated.
class Result {
 public:
  explicit Result(const tenon_tensor& described) : tensor_(described), memory_(described.data, &std::free) {}
  const tenon_tensor& tensor() const { return tensor_; }
  std::vector<int64_t> sizes() const { return {tensor_.sizes, tensor_.sizes + tensor_.rank}; }
  size_t elements() const {
    size_t out = 1;
    for (int32_t d = 0; d < tensor_.rank; ++d) out *= static_cast<size_t>(tensor_.sizes[d]);
    return out;
  }
  /// Contiguous in the order of memory; another dtype than the result's throws.
  template <class T>
  const T* data() const {
    if (tensor_.dtype != dtype_of<T>()) throw Error(TENON_INVALID_ARGUMENT, "the result has another dtype");
    return static_cast<const T*>(tensor_.data);
  }

 private:
  tenon_tensor tensor_;
  std::unique_ptr<void, void (*)(void*)> memory_;
};

namespace detail {
struct Close {
  void operator()(tenon_program* p) const { tenon_program_close(p); }
  void operator()(tenon_state* p) const { tenon_state_destroy(p); }
  void operator()(tenon_session* p) const { tenon_session_destroy(p); }
  void operator()(tenon_pool* p) const { tenon_pool_destroy(p); }
};
}  // namespace detail

class Pool {
 public:
  explicit Pool(int threads = 0) {
    tenon_pool* made = nullptr;
    check(tenon_pool_create(threads, &made));
    handle_.reset(made);
  }
  tenon_pool* get() const { return handle_.get(); }

 private:
  std::unique_ptr<tenon_pool, detail::Close> handle_;
};

class Program {
 public:
  static Program open(const std::string& path, const tenon_options* options = nullptr) {
    tenon_program* made = nullptr;
    check(tenon_program_open(path.c_str(), options, &made));
    return Program(made);
  }
  /// The bytes are borrowed for as long as the program, its states and sessions live.
  static Program open_memory(const void* bytes, size_t size, const tenon_options* options = nullptr) {
    tenon_program* made = nullptr;
    check(tenon_program_open_memory(bytes, size, options, &made));
    return Program(made);
  }
  tenon_program* get() const { return handle_.get(); }
  size_t inputs() const { return tenon_program_input_count(get()); }
  size_t outputs() const { return tenon_program_output_count(get()); }
  size_t states() const { return tenon_program_state_count(get()); }
  tenon_value_info input(size_t index) const {
    tenon_value_info info;
    check(tenon_program_input_info(get(), index, &info));
    return info;
  }
  tenon_value_info output(size_t index) const {
    tenon_value_info info;
    check(tenon_program_output_info(get(), index, &info));
    return info;
  }
  tenon_state_info state(size_t index) const {
    tenon_state_info info;
    check(tenon_program_state_info(get(), index, &info));
    return info;
  }

 private:
  explicit Program(tenon_program* made) : handle_(made) {}
  std::unique_ptr<tenon_program, detail::Close> handle_;
};

class State {
 public:
  explicit State(const Program& program) {
    tenon_state* made = nullptr;
    check(tenon_state_create(program.get(), &made));
    handle_.reset(made);
  }
  tenon_state* get() const { return handle_.get(); }
  void reset() { check(tenon_state_reset(get())); }
  void assign(const State& from) { check(tenon_state_assign(get(), from.get())); }
  void get(const std::string& name, tenon_tensor to) const { check(tenon_state_get(get(), name.c_str(), &to)); }
  void set(const std::string& name, const tenon_tensor& from) { check(tenon_state_set(get(), name.c_str(), &from)); }
  void seed(uint64_t value) { check(tenon_state_seed(get(), value)); }
  uint64_t version() const { return tenon_state_version(get()); }
  void save(const std::string& path) const { check(tenon_state_save(get(), path.c_str())); }
  void load(const std::string& path) { check(tenon_state_load(get(), path.c_str())); }

 private:
  std::unique_ptr<tenon_state, detail::Close> handle_;
};

class Session {
 public:
  explicit Session(const Program& program) : outputs_(program.outputs()) {
    tenon_session* made = nullptr;
    check(tenon_session_create(program.get(), &made));
    handle_.reset(made);
  }
  tenon_session* get() const { return handle_.get(); }

  /// Into memory of the caller's; tensors whose data is null are allocated (see tenon_output_release).
  void run(State& state, const std::vector<tenon_tensor>& inputs, std::vector<tenon_tensor>& outputs) {
    check(tenon_session_run(get(), state.get(), inputs.data(), inputs.size(), outputs.data(), outputs.size()));
  }
  std::vector<Result> run(State& state, const std::vector<tenon_tensor>& inputs) {
    std::vector<tenon_tensor> outputs(outputs_);
    std::vector<Result> results;
    results.reserve(outputs_);
    run(state, inputs, outputs);
    for (const tenon_tensor& output : outputs) results.emplace_back(output);
    return results;
  }
  size_t memory() const { return tenon_session_memory(get()); }

 private:
  std::unique_ptr<tenon_session, detail::Close> handle_;
  size_t outputs_;
};

}  // namespace tenon::runtime
#endif
