// Average pooling over windows.
#include "tenon/ops/pooling.h"
#include "tenon/rules/memory_format.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle avg_pool2d;
static Handle avg_pool3d, avg_pool2d_backward, avg_pool3d_backward;

namespace {

using loop::Compute;
using loop::Expr;

// An average's window: [corner, end) with padding counted, and what is left of it inside the image.
struct Span {
  Expr corner, begin, end, full;
};
Span average_span(Lower& l, const Windows& w, size_t k, SymInt size, Expr at) {
  Expr corner = at * l.extent(w.stride[k]) - l.extent(w.padding[k]);
  Expr stop = min(corner + l.extent(w.kernel[k]), l.extent(size + w.padding[k]));
  return {corner, max(corner, l.extent(0)), min(stop, l.extent(size)), stop - corner};
}

// How many elements the average at `i` divides by.
Expr divisor(Lower& l, const Windows& w, const Sizes& image, const Index& i) {
  if (l.given("divisor_override")) return l.extent(l.integer("divisor_override"));
  bool include_padding = l.flag("count_include_pad");
  size_t first = i.size() - w.space;
  Expr out;
  for (size_t k = 0; k < w.space; ++k) {
    Span s = average_span(l, w, k, image[first + k], i[first + k]);
    Expr n = include_padding ? s.full : s.end - s.begin;
    out = k ? out * n : n;
  }
  return max(out, l.extent(1));
}

PoolElement average_element(Lower& l, const Windows& w, const Sizes& image, const Index& i, const Index& r) {
  size_t first = i.size() - w.space;
  PoolElement p{i, loop::constant(l.program.arena, 1.0, Compute::boolean)};
  for (size_t k = 0; k < w.space; ++k) {
    Span s = average_span(l, w, k, image[first + k], i[first + k]);
    Expr at = s.corner + r[k];
    p.inside = p.inside && at >= s.begin && at < s.end;
    p.at[first + k] = at;
  }
  return p;
}

template <size_t space>
void lower_average(Lower& l) {
  Windows w(l, space);
  Ref x = l["self"];
  Sizes image = x.sizes();
  Compute type = loop::compute_of(x.dtype());
  l.tensor([&](const Index& i) {
    Expr total = l.sum(w.kernel, [&](const Index& r) {
      PoolElement p = average_element(l, w, image, i, r);
      return x.at_if(p.inside, p.at, 0);
    });
    return total / cast(divisor(l, w, image, i), type);
  });
}

template <size_t space>
void lower_average_backward(Lower& l) {
  Windows w(l, space);
  Ref grad = l["grad_output"], out = l.out();
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  l.fill(target, l.constant(0, loop::compute_of(compute)));
  Sizes image = out.sizes(), domain = grad.sizes();
  for (SymInt k : w.kernel) domain.push_back(k);
  l.stage(domain, [&](const Index& all) {
    Index i = all.drop_last(space), r = all.drop_first(i.size());
    PoolElement p = average_element(l, w, image, i, r);
    Expr share = grad.at(i) / cast(divisor(l, w, image, i), loop::compute_of(compute));
    l.store_if(p.inside, target, p.at, share, loop::Mode::add);
  });
  if (target.id != out.id) l.copy(target, out);
}

// Only images keep the format of their operand, not volumes.
template <size_t space>
TensorMeta result_like(const TensorMeta& x, Sizes sizes) {
  return space == 2 ? formatted_like(x, std::move(sizes)) : like(x, std::move(sizes));
}

template <size_t space, Handle& pool, Handle& backward>
void add_avg_pool(Registry& ops, const char* schema, const char* backward_schema) {
  ops.add(pool, {
                    .schema = schema,
                    .meta = [](MetaCall& m) -> Metas {
                      const TensorMeta& x = m.meta("self");
                      m.require(is_floating(x.dtype) || x.dtype == DType::i64,
                                "expected a floating point or i64 tensor, got ", x);
                      m.require(!m.given("divisor_override") || m.constant("divisor_override") != 0,
                                "divisor_override must not be 0");
                      return result_like<space>(x, pooled_sizes(m, x, Windows(m, space)));
                    },
                    .lower = lower_average<space>,
                    .vjp = {{"self",
                             [](Vjp& v) {
                               Windows w(v, space);
                               return backward(v.grad(), v["self"], w.kernel, w.stride, w.padding, w.ceil,
                                               v.arg("count_include_pad"), v.arg("divisor_override"));
                             }}},
                });
  ops.add(backward, {
                        .schema = backward_schema,
                        .meta = [](MetaCall& m) -> Metas {
                          const TensorMeta& x = m.meta("self");
                          require_pool_gradient(m, m.meta("grad_output"), x, space);
                          return result_like<space>(x, x.sizes);
                        },
                        .lower = lower_average_backward<space>,
                        .vjp = {{"grad_output",
                                 [](Vjp& v) {
                                   return pool(v.grad(), v.arg("kernel_size"), v.arg("stride"), v.arg("padding"),
                                               v.arg("ceil_mode"), v.arg("count_include_pad"),
                                               v.arg("divisor_override"));
                                 }}},
                    });
}

Results one_dimension(const Build& b) {
  auto row = [&](const char* arg, int64_t of_rows) {
    Sizes own = b.ints(arg);
    b.require(own.size() <= 1, arg, ": expected one number, got ", own);
    return own.empty() ? own : Sizes{of_rows, own[0]};
  };
  return pool_one_row(b["self"], 1, [&](const Tensor& x) {
    return avg_pool2d(x, row("kernel_size", 1), row("stride", 1), row("padding", 0), b.arg("ceil_mode"),
                      b.arg("count_include_pad"));
  });
}

}  // namespace

void register_pooling_average(Registry& ops) {
  add_avg_pool<2, avg_pool2d, avg_pool2d_backward>(
      ops,
      "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
      "count_include_pad=True, int? divisor_override=None) -> Tensor",
      "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool "
      "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor");
  add_avg_pool<3, avg_pool3d, avg_pool3d_backward>(
      ops,
      "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool "
      "count_include_pad=True, int? divisor_override=None) -> Tensor",
      "avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool "
      "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor");
  ops.add({
      .schema = "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool "
                "ceil_mode=False, bool count_include_pad=True) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one_dimension(b); },
  });
}

}  // namespace tenon
