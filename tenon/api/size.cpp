#include <tenon/size.h>

#include "tenon/api/access.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon::v0 {

using detail::Access;
using detail::fail_call;

namespace {

/// An expression that is held elsewhere: nothing is counted for it.
union Borrowed {
  tenon::SymInt expression;
  explicit Borrowed(const void* node) : expression(static_cast<const tenon::sym::Node*>(node)) {}
  explicit Borrowed(const tenon::SymInt& held) : expression(held) {}
  ~Borrowed() {}
};

}  // namespace

void Size::hold(const void* expression) noexcept {
  Borrowed here(expression), one_more(here.expression);  // which nobody takes back but drop
}
void Size::drop(const void* expression) noexcept { tenon::SymInt(static_cast<const tenon::sym::Node*>(expression)); }

Size Access::size(const tenon::SymInt& size) {
  if (size.is_int()) return size.as_int();
  Size out;
  out.expression_ = size.node();
  Size::hold(out.expression_);
  if (tenon::Examples* examples = tenon::current_examples()) out.value_ = examples->value(size).value_or(0);
  return out;
}

tenon::SymInt Access::unwrap(const Size& size) {
  if (!size.expression_) return size.value_;
  Borrowed own(size.expression_);
  return own.expression;
}

int64_t Size::fixed() const {
  tenon::Examples* examples = tenon::current_examples();
  tenon::SymInt own = Access::unwrap(*this);
  if (!examples) fail_call("the size ", own, " belongs to a program that was made before; here it is no number");
  auto value = examples->value(own);
  if (!value) fail_call("the size ", own, " is known in a run only, and was asked for as a number");
  detail::guarded(ErrorKind::call, [&] { tenon::known(tenon::sym::eq(own, *value)); });
  return *value;
}

Size Size::of(Operation operation, const Size& a, const Size& b) {
  if (!a.expression_ && !b.expression_) {  // of plain integers the sum and the product, as long as 64 bits hold them
    int64_t out = 0;
    if (operation == Operation::multiply && !__builtin_mul_overflow(a.value_, b.value_, &out)) return out;
    if (operation == Operation::add && !__builtin_add_overflow(a.value_, b.value_, &out)) return out;
  }
  return detail::guarded(ErrorKind::call, [&] {
    tenon::SymInt x = Access::unwrap(a), y = Access::unwrap(b);
    switch (operation) {
      case Operation::add: return Access::size(x + y);
      case Operation::subtract: return Access::size(x - y);
      case Operation::multiply: return Access::size(x * y);
      case Operation::divide:
      case Operation::remainder:
        tenon::require(y != tenon::SymInt(0), "the size ", x, " was divided by 0");
        return Access::size(operation == Operation::divide ? tenon::sym::floor_div(x, y) : tenon::sym::mod(x, y));
    }
    tenon::unreachable();
  });
}

bool Size::holds(Relation relation, const Size& a, const Size& b) {
  if (!a.expression_ && !b.expression_) {
    switch (relation) {
      case Relation::equal: return a.value_ == b.value_;
      case Relation::unequal: return a.value_ != b.value_;
      case Relation::less: return a.value_ < b.value_;
      case Relation::less_or_equal: return a.value_ <= b.value_;
    }
  }
  tenon::SymInt x = Access::unwrap(a), y = Access::unwrap(b);
  tenon::SymInt condition = relation == Relation::equal     ? tenon::sym::eq(x, y)
                            : relation == Relation::unequal ? tenon::sym::ne(x, y)
                            : relation == Relation::less    ? tenon::sym::lt(x, y)
                                                            : tenon::sym::le(x, y);
  auto decided = detail::guarded(ErrorKind::call, [&] { return tenon::known(condition); });
  if (!decided) fail_call("only a run can tell whether ", condition, "; what a program does cannot depend on it");
  return *decided;
}

}  // namespace tenon::v0
