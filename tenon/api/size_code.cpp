#include "tenon/api/size_code.h"

#include <vector>

#include "tenon/base/error.h"
#include "tenon/base/text.h"

namespace tenon::v0::detail {
namespace {

using tenon::sym::Expr;
using tenon::sym::Kind;

class Spelling {
 public:
  explicit Spelling(const std::function<std::string(Expr)>& name_of) : name_of_(name_of) {}

  std::string of(Expr e, bool outermost) const {
    auto joined = [&](const char* sign) {
      std::vector<std::string> parts;
      for (Expr each : e.args()) parts.push_back(of(each, false));
      std::string out = tenon::join(parts, sign);
      return outermost ? out : "(" + out + ")";
    };
    auto called = [&](const char* name) {
      std::vector<std::string> parts;
      for (Expr each : e.args()) parts.push_back(of(each, true));
      return tenon::text(name, "(", tenon::join(parts, ", "), ")");
    };
    switch (e.kind()) {
      case Kind::integer: return tenon::text(e.as_int());
      case Kind::boolean: return e.boolean_value() ? "True" : "False";
      case Kind::symbol: return name_of_(e);
      case Kind::add: return joined(" + ");
      case Kind::mul: return joined("*");
      case Kind::pow: return joined("**");
      case Kind::max: return called("max");
      case Kind::min: return called("min");
      case Kind::mod: return joined(" % ");
      case Kind::floor_div: return joined(" // ");
      case Kind::eq: return joined(" == ");
      case Kind::ne: return joined(" != ");
      case Kind::lt: return joined(" < ");
      case Kind::le: return joined(" <= ");
      case Kind::gt: return joined(" > ");
      case Kind::ge: return joined(" >= ");
      case Kind::logical_and: return joined(" and ");
      case Kind::logical_or: return joined(" or ");
      case Kind::logical_not: return tenon::text("not (", of(e.args()[0], true), ")");
      case Kind::rational:
      case Kind::real:
      case Kind::true_div:
      case Kind::float_true_div:
      case Kind::float_pow:
      case Kind::to_float:
      case Kind::trunc:
      case Kind::trunc_float:
      case Kind::ceil:
      case Kind::floor:
      case Kind::round:
      case Kind::round_decimal:
      case Kind::bit_and:
      case Kind::bit_or:
      case Kind::lshift:
      case Kind::rshift:
      case Kind::piecewise:
      case Kind::unknown_call: break;
    }
    tenon::fail("a condition on sizes that computes with real numbers or bits cannot be written into a program");
  }

 private:
  const std::function<std::string(Expr)>& name_of_;
};

}  // namespace

std::string size_code(Expr e, const std::function<std::string(Expr symbol)>& name_of) {
  return Spelling(name_of).of(e, true);
}

}  // namespace tenon::v0::detail
