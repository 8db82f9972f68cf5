#include "tenon/interp/anchors.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "tenon/base/error.h"
#include "tenon/base/parallel.h"
#include "tenon/plan/library.h"
#include "tenon/tensor/storage.h"

namespace tenon::interp {
namespace {

/// Memory of this thread for kernels to work in: kept from call to call, unless it is a lot.
class Scratch {
 public:
  explicit Scratch(size_t bytes) {
    thread_local Kept kept;
    if (bytes <= most) {
      if (bytes > kept.bytes) kept.grow(bytes);
      data_ = kept.data;
    } else {
      data_ = own_ = allocate(bytes);
    }
  }
  ~Scratch() { std::free(own_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  static constexpr size_t most = size_t{16} << 20;
  struct Kept {
    void* data = nullptr;
    size_t bytes = 0;
    ~Kept() { std::free(data); }
    void grow(size_t wanted) {
      void* more = allocate(wanted);
      std::free(data);
      data = more;
      bytes = wanted;
    }
  };
  static void* allocate(size_t bytes) {
    void* data = std::aligned_alloc(TENON_ALIGNMENT, (bytes + TENON_ALIGNMENT - 1) / TENON_ALIGNMENT * TENON_ALIGNMENT);
    if (!data) throw std::bad_alloc();
    return data;
  }
  void *data_ = nullptr, *own_ = nullptr;
};

}  // namespace

PreparedAnchor::PreparedAnchor(const Resolved& program, const loop::Step& anchor, tenon_target target) {
  plan::LibraryCalls made = plan::library_calls(program.program, anchor);
  for (const plan::Condition& c : made.conditions) require(sym::evaluate_bool(c.holds, program.symbols), c.message);
  for (SymInt bytes : made.temporaries) temporaries_.push_back(static_cast<size_t>(program.value(bytes)));
  for (const plan::LibraryCall& c : made.calls) {
    Call call{.kernel = kernels::find(c.function, target),
              .buffers = {},
              .temporary = {},
              .params = {},
              .extent = program.value(c.extent),
              .grain = program.value(c.grain),
              .scratch = static_cast<size_t>(program.value(c.scratch))};
    expect(call.kernel != nullptr, "the kernel library has no ", c.function);
    for (const plan::LibraryArg& arg : c.args) {
      call.buffers.push_back(arg.buffer);
      call.temporary.push_back(arg.temporary);
    }
    for (const loop::Param& p : c.params) call.params.push_back(loop::evaluate(p, program.symbols));
    calls_.push_back(std::move(call));
  }
}

void PreparedAnchor::run(std::byte* const* places, std::byte* const* temporaries) const {
  for (const Call& call : calls_) {
    SmallVector<void*, 16> buffers;
    for (size_t i = 0; i < call.buffers.size(); ++i)
      buffers.push_back(call.buffers[i] == loop::no_buffer ? temporaries[call.temporary[i]] : places[call.buffers[i]]);
    std::atomic<int> status = 0;
    parallel::parallel_for(call.extent, call.grain, [&](int64_t lo, int64_t hi) {
      Scratch scratch(call.scratch);
      tenon_args args{buffers.data(), call.params.data(), scratch.data(), nullptr};
      if (int bits = call.kernel(&args, lo, hi)) status |= bits;
    });
    expect(status == TENON_KERNEL_OK, "a kernel of the library returned status ", status.load());
  }
}

void PreparedAnchor::run(std::byte* const* places) const {
  std::vector<std::unique_ptr<Storage>> memory;
  std::vector<std::byte*> temporaries;
  for (size_t bytes : temporaries_) {
    memory.push_back(std::make_unique<Storage>(bytes));
    temporaries.push_back(memory.back()->mutable_data());
  }
  run(places, temporaries.data());
}

}  // namespace tenon::interp
