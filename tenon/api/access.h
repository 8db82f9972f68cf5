// What the public handles hold, and how the library gets at it. In the files of this folder the public types are those
// of tenon::v0, and the compiler's own are written out: tenon::Tensor.
#pragma once
#include <tenon/module.h>

#include <atomic>
#include <functional>
#include <new>

#include "tenon/export/exported_program.h"
#include "tenon/passes/driver.h"

namespace tenon::v0::detail {

/// How many handles a body has; a new one has the one it is made for.
struct Counted {
  std::atomic<int64_t> handles = 1;
};

struct TensorBody : Counted {
  tenon::Tensor tensor;
  tenon::SmallVector<Size, 6> sizes, strides;
};

struct ProgramBody : Counted {
  explicit ProgramBody(tenon::ExportedProgram program) : program(std::move(program)) {}
  tenon::ExportedProgram program;
};

struct Access {
  struct Functions;
  static Tensor wrap(tenon::Tensor tensor);
  static const tenon::Tensor& unwrap(const Tensor& tensor, const char* what = "a tensor");
  static TensorBody& body(const Tensor& tensor) { return *tensor.body_; }
  static Size size(const tenon::SymInt& size);
  static tenon::SymInt unwrap(const Size& size);
  static ExportedProgram wrap(tenon::ExportedProgram program);
  static const tenon::ExportedProgram& unwrap(const ExportedProgram& program);
  static tenon::ExportedProgram with_state(const Module& module);
  static int64_t integer(const Value& value) { return value.integer_; }
  static double real(const Value& value) { return value.real_; }
  static const Tensor& tensor(const Value& value) { return value.tensor_; }
  static const std::string& text(const Value& value) { return value.text_; }
};

/// The log as the library's own functions take it; none stays none.
inline std::function<void(const std::string&)> as_warning(const Log& log) {
  return log ? std::function<void(const std::string&)>(log) : nullptr;
}
/// A line for each pass that was run.
void report(const Log& log, const std::vector<tenon::PassRecord>& passes);

/// Runs f; whatever it throws leaves as an Error of the interface. `fault` says what is wrong when the user is.
template <class F>
auto guarded(ErrorKind fault, F&& f) {
  try {
    return f();
  } catch (const Error&) { throw; } catch (const tenon::Unsupported& e) {
    throw Error(ErrorKind::unsupported, e.what());
  } catch (const tenon::Error& e) { throw Error(fault, e.what()); } catch (const tenon::InternalError& e) {
    throw Error(ErrorKind::internal, e.what());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::call, "there is not enough memory for this; use smaller inputs or a larger machine");
  } catch (const std::exception& e) {
    throw Error(ErrorKind::internal, tenon::text("internal error: ", e.what(), "; please report it"));
  }
}

template <class Numbers>
static std::string comma_separated(const Numbers& numbers) {
  std::vector<std::string> out;
  for (int64_t number : numbers) out.push_back(std::to_string(number));
  return tenon::join(out, ", ");
}

template <class... Parts>
[[noreturn]] void fail_call(const Parts&... parts) {
  throw Error(ErrorKind::call, tenon::text(parts...));
}

}  // namespace tenon::v0::detail
