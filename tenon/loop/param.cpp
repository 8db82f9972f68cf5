#include "tenon/loop/param.h"

#include <bit>

#include "tenon/base/error.h"

namespace tenon::loop {

Param Param::real(double number) { return {SymInt::real(number), Kind::real}; }

int64_t evaluate(const Param& param, const sym::Bindings& symbols) {
  switch (param.kind) {
    case Param::Kind::integer: return param.value.is_int() ? param.value.as_int() : sym::evaluate(param.value, symbols);
    case Param::Kind::condition: return sym::evaluate_bool(param.value, symbols);
    case Param::Kind::real: return std::bit_cast<int64_t>(sym::evaluate_real(param.value, symbols));
  }
  unreachable();
}

}  // namespace tenon::loop
