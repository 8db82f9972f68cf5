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
    if (kind == Kind::max) {
      std::erase(args, Expr(1));
      if (args.size() == 1) return args[0];
    }
    return make(kind, args);
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
