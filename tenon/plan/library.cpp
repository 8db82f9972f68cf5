#include "tenon/plan/library.h"
#include "tenon/base/error.h"
namespace tenon::plan { LibraryCalls library_calls(const loop::Program&, const loop::Step&) { fail_unsupported("anchor"); } }
