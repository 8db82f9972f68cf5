// Runs the anchors of a program with the kernel library.
#pragma once
#include "kernels/library.h"
#include "tenon/interp/stage.h"

namespace tenon::interp {

/// An anchor made ready to run: calls of the kernel library (tenon/plan/library.h) with numbers.
class PreparedAnchor {
 public:
  /// Sizes that do not belong together are an Error. The machine must have what the target needs.
  PreparedAnchor(const Resolved& program, const loop::Step& anchor, tenon_target target = kernels::machine_target());
  /// Bytes of memory that the anchor works in, each piece aligned to 64 bytes.
  std::span<const size_t> temporaries() const { return temporaries_; }
  /// places[i] points to the first element of buffer i. Several threads may run it at once, with other memory.
  void run(std::byte* const* places, std::byte* const* temporaries) const;
  /// The same with temporaries of its own.
  void run(std::byte* const* places) const;

 private:
  struct Call {
    tenon_kernel kernel;
    std::vector<loop::BufferId> buffers;  // no_buffer: a temporary
    std::vector<size_t> temporary;        // which, of those
    std::vector<int64_t> params;
    int64_t extent, grain;
    size_t scratch;
  };
  std::vector<size_t> temporaries_;
  std::vector<Call> calls_;
};

}  // namespace tenon::interp
