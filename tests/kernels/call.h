// Calling functions of the kernel library as the interpreter does, with memory that ends where touching is death.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/library.h"

namespace tenon::kernels {

/// Elements between two pages that may not be touched, close to the second.
template <class T>
class Guarded {
 public:
  explicit Guarded(size_t count) : count_(count) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = count * sizeof(T);
    pages_ = (bytes + page - 1) / page * page + 2 * page;
    start_ = static_cast<char*>(mmap(nullptr, pages_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(start_, page, PROT_NONE);
    mprotect(start_ + pages_ - page, page, PROT_NONE);
    data_ = reinterpret_cast<T*>(start_ + pages_ - page - bytes);
  }
  explicit Guarded(const std::vector<T>& values) : Guarded(values.size()) {
    std::copy(values.begin(), values.end(), data_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(start_, pages_); }
  T* data() const { return data_; }
  std::vector<T> values() const { return {data_, data_ + count_}; }

 private:
  size_t count_, pages_ = 0;
  char* start_ = nullptr;
  T* data_ = nullptr;
};

/// "_f32" for float, and so on: how names of functions end.
template <class T>
std::string suffix() {
  if constexpr (std::is_same_v<T, float>) return "_f32";
  else if constexpr (std::is_same_v<T, double>) return "_f64";
  else return "_i64";
}

/// The targets whose instructions this machine has.
inline std::vector<tenon_target> targets() {
  std::vector<tenon_target> out;
  for (int t = 0; t <= machine_target(); ++t) out.push_back(static_cast<tenon_target>(t));
  return out;
}

/// A params struct, and what follows it, as words.
template <class Params>
std::vector<int64_t> words(const Params& params, const std::vector<int64_t>& behind = {}) {
  std::vector<int64_t> out(sizeof params / 8);
  std::memcpy(out.data(), &params, sizeof params);
  out.insert(out.end(), behind.begin(), behind.end());
  return out;
}

struct KernelCall {
  std::string name;
  std::vector<void*> buffers;
  std::vector<int64_t> params;
  int64_t extent = 1, grain = 1, scratch = 0;

  /// In chunks, the last first: their order may not matter.
  int run(tenon_target target) const {
    tenon_kernel kernel = find(name, target);
    EXPECT_NE(kernel, nullptr) << name;
    if (!kernel) return -1;
    int64_t bytes = (scratch + 63) / 64 * 64;
    Guarded<char> memory(static_cast<size_t>(bytes));
    std::memset(memory.data(), 0xa5, static_cast<size_t>(bytes));
    tenon_args args{buffers.data(), params.data(), memory.data(), nullptr};
    int status = 0;
    for (int64_t chunk = (extent + grain - 1) / grain; chunk-- > 0;)
      status |= kernel(&args, chunk * grain, std::min(extent, (chunk + 1) * grain));
    return status;
  }
};

}  // namespace tenon::kernels
