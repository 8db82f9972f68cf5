#include "tenon/plan/library.h"

#include "tenon/base/error.h"

namespace tenon::plan {

LibraryCalls library_calls(const loop::Program&, const loop::Step&) {
  fail_unsupported(
      "matrix products, convolutions, attention, sorting and scans cannot be compiled yet; run the .pt2 file instead");
}

}  // namespace tenon::plan
