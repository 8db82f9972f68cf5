// Calling host functions as a runtime does, with results that end where touching is death.
#pragma once
#include <cstring>
#include <deque>
#include <memory>

#include "tests/kernels/call.h"

namespace tenon::kernels {

inline tenon_tensor tensor_of(void* data, tenon_dtype dtype, const std::vector<int64_t>& sizes) {
  tenon_tensor out{};
  out.data = data;
  out.dtype = dtype;
  out.rank = static_cast<int32_t>(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) {
    out.sizes[d] = sizes[d];
    out.strides[d] = stride;
  }
  return out;
}
inline tenon_tensor absent() {
  tenon_tensor out{};
  out.dtype = -1;
  return out;
}
/// A result whose sizes the call tells.
inline tenon_tensor unknown(tenon_dtype dtype) {
  tenon_tensor out{};
  out.dtype = dtype;
  return out;
}
inline int64_t real(double x) {
  int64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

/// One call for one target.
class HostRun {
 public:
  HostRun(const std::string& name, tenon_target target, std::vector<tenon_tensor> inputs,
          std::vector<tenon_tensor> results, std::vector<int64_t> params = {}, int64_t extent = 1)
      : results(std::move(results)), made_(this->results.size()) {
    tenon_host_function function = find_host(name, target);
    EXPECT_NE(function, nullptr) << name;
    if (!function) return;
    tenon_host_call call{};
    call.inputs = inputs.data();
    call.results = this->results.data();
    call.params = params.data();
    call.counts = counts;
    call.input_count = static_cast<uint32_t>(inputs.size());
    call.result_count = static_cast<uint32_t>(this->results.size());
    call.param_count = static_cast<uint32_t>(params.size());
    call.context = this;
    call.allocate = allocate;
    call.work = work;
    for (int64_t i = extent; i-- > 0;) status |= function(&call, i, i + 1);
  }

  int status = 0;
  int64_t counts[TENON_MAX_COUNTS] = {};
  std::vector<tenon_tensor> results;

  template <class T>
  std::vector<T> values(size_t result) const {  // of a contiguous one
    int64_t n = 1;
    for (int32_t d = 0; d < results[result].rank; ++d) n *= results[result].sizes[d];
    const T* data = static_cast<const T*>(results[result].data);
    return std::vector<T>(data, data + n);
  }

 private:
  static int allocate(const tenon_host_call* call, uint32_t result, int32_t rank, const int64_t* sizes) {
    auto& self = *static_cast<HostRun*>(call->context);
    int64_t n = 1;
    for (int32_t d = 0; d < rank; ++d) n *= sizes[d];
    self.made_[result] = std::make_unique<Guarded<int64_t>>(static_cast<size_t>(n));  // wide enough for any
    self.results[result] = tensor_of(self.made_[result]->data(), static_cast<tenon_dtype>(self.results[result].dtype),
                                     std::vector<int64_t>(sizes, sizes + rank));
    return 0;
  }
  static void* work(const tenon_host_call* call, uint64_t bytes) {
    auto& self = *static_cast<HostRun*>(call->context);
    self.work_.push_back(std::make_unique<Guarded<int64_t>>((bytes + 7) / 8));
    std::memset(self.work_.back()->data(), 0xa5, (bytes + 7) / 8 * 8);
    return self.work_.back()->data();
  }
  std::vector<std::unique_ptr<Guarded<int64_t>>> made_;
  std::deque<std::unique_ptr<Guarded<int64_t>>> work_;
};

}  // namespace tenon::kernels
