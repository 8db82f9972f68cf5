#include "tenon/sym/exact.h"

#include <unordered_map>

namespace tenon::sym {
namespace {

class Exact {
 public:
  Expr of(Expr e) {
    if (e.is_int() || e.args().empty()) return e;
    if (auto known = made_.find(e); known != made_.end()) return known->second;
    std::vector<Expr> args;
    for (Expr arg : e.args()) args.push_back(of(arg));
    Expr out = rebuilt(e.kind(), args);
    made_.emplace(e, out);
    return out;
  }

 private:
  static Expr rebuilt(Kind kind, std::vector<Expr>& args) {
    if (kind == Kind::rational) return Expr::rational(args[0].as_int(), args[1].as_int());
    if (kind == Kind::floor_div) {
      if (args[1].is_int()) return args[0] * Expr::rational(1, args[1].as_int());
      return args[0] * pow(args[1], -1);
    }
    if (kind == Kind::max || kind == Kind::min) {
      drop_multiples(args, kind);
      if (args.size() == 1) return args[0];
    }
    return make(kind, args);
  }

  // Of sizes of which one is a multiple of the other, which of the two is larger is known: none is 0.
  static void drop_multiples(std::vector<Expr>& args, Kind kind) {
    for (size_t i = 0; i < args.size(); ++i) {
      bool drop = false;
      for (size_t j = 0; j < args.size() && !drop; ++j)
        drop = i != j && (kind == Kind::min ? is_multiple(args[i], args[j]) : is_multiple(args[j], args[i]));
      if (drop) args.erase(args.begin() + static_cast<std::ptrdiff_t>(i--));
    }
  }

  static bool is_multiple(Expr of, Expr size) {
    if (size == Expr(0) || !size.is_nonnegative()) return false;
    auto quotient = exact_quotient(of, size);
    return quotient && *quotient != Expr(0) && quotient->is_nonnegative() && quotient->is_integer_typed();
  }

  std::unordered_map<Expr, Expr> made_;
};

}  // namespace

Expr exact_form(Expr e) { return Exact().of(e); }

bool equal_if_exact(Expr a, Expr b) {
  if (a == b) return true;
  if (a.is_int() && b.is_int()) return false;
  return exact_form(a) == exact_form(b);
}

}  // namespace tenon::sym
