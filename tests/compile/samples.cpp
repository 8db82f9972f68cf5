#include "tests/compile/samples.h"

#include <limits>

#include "tenon/compile/math.h"

namespace tenon::compile {

Kernel pointwise_chain() {
  Builder b("pointwise_chain");
  uint32_t x = b.buffer("x", Element::bf16, 0), bias = b.buffer("bias", Element::f32, 1),
           y = b.buffer("y", Element::bf16, 2, true);
  Val columns = b.param(0), lo = b.lo(), hi = b.hi();
  b.loop(lo, hi, {}, [&](Val row, const Vals&) -> Vals {
    Val base = row * columns;
    b.lanes(0, columns, 32, {}, [&](Val, const Vals&) -> Vals {
      Val from = b.load({x, base, true}), added = b.load({bias, 0, true});
      Val sum = round_to(from + added, Element::bf16);
      b.store({y, base, true}, max_nan(sum, 0.0) * 0.5);
      return {};
    });
    return {};
  });
  return b.finish();
}

Kernel row_sum() {
  Builder b("row_sum");
  uint32_t x = b.buffer("x", Element::f32, 0), y = b.buffer("y", Element::f32, 1, true);
  Val columns = b.param(0), lo = b.lo(), hi = b.hi();
  b.loop(lo, hi, {}, [&](Val row, const Vals&) -> Vals {
    Val base = row * columns;
    Val sum = b.lanes(0, columns, 32, {{b.constant(Type::f32, 0), Combine::add}}, [&](Val, const Vals& s) -> Vals {
      return {s[0] + b.load({x, base, true})};
    })[0];
    b.store({y, row}, sum);
    return {};
  });
  return b.finish();
}

Kernel gather_rows() {
  Builder b("gather_rows");
  uint32_t table = b.buffer("table", Element::f32, 0), index = b.buffer("index", Element::i64, 1),
           y = b.buffer("y", Element::f32, 2, true);
  Val rows = b.param(0), columns = b.param(1), lo = b.lo(), hi = b.hi();
  b.loop(lo, hi, {}, [&](Val i, const Vals&) -> Vals {
    Val which = b.load({index, i});
    Val inside = b.emit(Op::ult, Type::b1, {which, rows});
    b.fault(1, ~inside);
    Val from = which * columns, to = i * columns;
    b.lanes(0, columns, 16, {}, [&](Val, const Vals&) -> Vals {
      b.store({y, to, true}, b.load({table, from, true}, inside, 0.0));
      return {};
    });
    return {};
  });
  return b.finish();
}

Kernel scatter_add() {
  Builder b("scatter_add");
  uint32_t x = b.buffer("x", Element::f32, 0), index = b.buffer("index", Element::i64, 1),
           y = b.buffer("y", Element::f32, 2, true);
  Val rows = b.param(0), lo = b.lo(), hi = b.hi();
  b.lanes(lo, hi, 16, {}, [&](Val, const Vals&) -> Vals {
    Val which = b.load({index, 0, true});
    Val inside = b.emit(Op::ult, Type::b1, {which, rows});
    b.fault(1, ~inside);
    Place to;
    to.memory = y;
    to.offset = which;
    b.update(Combine::add, to, b.load({x, 0, true}), inside);
    return {};
  });
  return b.finish();
}

Kernel softmax_rows() {
  Builder b("softmax_rows");
  uint32_t x = b.buffer("x", Element::f32, 0), y = b.buffer("y", Element::f32, 1, true);
  Val columns = b.param(0), lo = b.lo(), hi = b.hi();
  b.loop(lo, hi, {}, [&](Val row, const Vals&) -> Vals {
    Val base = row * columns;
    Val least = b.constant(Type::f32, -std::numeric_limits<double>::infinity());
    Val largest = b.lanes(0, columns, 32, {{least, Combine::max}}, [&](Val, const Vals& s) -> Vals {
      return {max_nan(s[0], b.load({x, base, true}))};
    })[0];
    Val sum = b.lanes(0, columns, 32, {{b.constant(Type::f32, 0), Combine::add}}, [&](Val, const Vals& s) -> Vals {
      Val e = exp(b.load({x, base, true}) - largest);
      b.store({y, base, true}, e);
      return {s[0] + e};
    })[0];
    Val factor = 1.0 / sum;
    b.lanes(0, columns, 32, {}, [&](Val, const Vals&) -> Vals {
      b.store({y, base, true}, b.load({y, base, true}) * factor);
      return {};
    });
    return {};
  });
  return b.finish();
}

}  // namespace tenon::compile
