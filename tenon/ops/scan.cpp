#include "tenon/ops/scan.h"

#include <algorithm>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/flip.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/scatter_gather.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle cumsum, cumprod, logcumsumexp;
static Handle cumprod_backward;

namespace {

Tensor flipped(const Tensor& x, int64_t dim) {
  if (x.rank() == 0) return x;
  return flip(x, Sizes{SymInt(dim)});
}

// What comes from an element on.
Tensor summed_from(const Tensor& x, int64_t dim) { return flipped(cumsum(flipped(x, dim), dim), dim); }

DType scanned_dtype(const ArgsView& m) {
  DType own = m.meta("self").dtype;
  return m.dtype("dtype").value_or(is_floating(own) ? own : DType::i64);
}

Metas scan_meta(MetaCall& m) {
  (void)m.dim("dim", m.meta("self").rank());
  return like(m.meta("self"), m.meta("self").sizes, scanned_dtype(m));
}

// Converted first, as PyTorch does, then scanned in a dtype that anchors take.
void lower_scan(Lower& l, loop::ScanKind kind, bool indices = false) {
  Ref x = l["self"], out = l.out();
  size_t rank = x.sizes().size();
  if (rank == 0) {
    l.copy(x, out);
    if (indices) l.fill(l.out(1), l.constant(0, loop::Compute::i64));
    return;
  }
  DType compute = computable(out.dtype());
  Ref in = x;
  if (x.dtype() != compute)
    in = l.temporary(compute, Sizes(x.sizes()), [&](const Index& i) { return loop::round_to(x.at(i), out.dtype()); });
  Ref target = out.dtype() == compute ? out : l.temporary(compute, Sizes(out.sizes()));
  loop::Scan scan{.kind = kind,
                  .in = in.operand(),
                  .out = target.operand(),
                  .has_indices = indices,
                  .indices = {},
                  .dim = l.dim("dim", rank)};
  if (indices) scan.indices = l.out(1).operand();
  l.anchor(std::move(scan));
  if (target.id != out.id) l.copy(target, out);
}

Metas extreme_scan_meta(MetaCall& m) {
  (void)m.dim("dim", m.meta("self").rank());
  return {like(m.meta("self"), m.meta("self").sizes), like(m.meta("self"), m.meta("self").sizes, DType::i64)};
}

Grads extreme_scan_gradient(Vjp& v) {
  if (!v.grad()) return {};
  if (v["self"].rank() == 0) return {v.grad()};
  return {scatter_add(zeros(v["self"].sizes(), v.grad()), v.arg("dim"), v.out(1), v.grad())};
}

// sum over j >= i of g[j] * y[j] / x[i] up to the first zero; there, the products without it; nothing after.
Tensor cumprod_gradient(const Tensor& g, const Tensor& x, int64_t dim, const Tensor& y) {
  Tensor zero = eq(x, 0.0), zeros_before = cumsum(zero, dim);
  Tensor first = logical_and(zero, eq(zeros_before, 1));
  Tensor without = cumprod(where(first, 1.0, x), dim);
  Tensor before = summed_from(g * y, dim) / where(zero, 1.0, x);
  Tensor at = summed_from(g * without, dim);
  return where(eq(zeros_before, 0), before, where(first, at, 0.0));
}

Tensor logcumsumexp_gradient(const Tensor& g, const Tensor& x, int64_t dim, const Tensor& y) {
  double low = -std::numeric_limits<double>::infinity();
  Tensor size = log(abs(g));
  auto part = [&](const Tensor& sign) -> Tensor {
    Tensor chosen = where(sign, size, low);
    return exp(flipped(logcumsumexp(flipped(chosen - y, dim), dim), dim) + x);
  };
  return part(gt(g, 0.0)) - part(lt(g, 0.0));
}

// In steps of doubled distance: after each, an element holds twice as many of those in front of it.
Results running_product(Build& b, Tensor x) {
  if (x.rank() == 0) return one(clone(x));
  auto dim = static_cast<int64_t>(b.dim("dim", x.rank()));
  SymInt n = x.size(dim);
  b.supports(n.is_int(), "a running product of complex numbers takes a size that is known, got ", x.meta());
  if (n.as_int() < 2) return one(clone(x));
  for (int64_t step = 1; step < n.as_int(); step *= 2) {
    Tensor later = narrow(x, dim, step, n - step), earlier = narrow(x, dim, 0, n - step);
    x = cat(std::vector<Tensor>{narrow(x, dim, 0, step), earlier * later}, dim);
  }
  return one(x);
}

Tensor difference(const Tensor& x, int64_t dim) {
  Tensor later = slice(x, dim, 1), earlier = slice(x, dim, 0, -1);
  if (x.dtype() == DType::boolean) return ne(later, earlier);
  return later - earlier;
}

}  // namespace

void register_scan(Registry& ops) {
  ops.add(cumsum, {
                      .schema = "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
                      .meta = scan_meta,
                      .lower = [](Lower& l) { lower_scan(l, loop::ScanKind::sum); },
                      .vjp = {{"self", [](Vjp& v) { return summed_from(v.grad(), v.constant("dim")); }}},
                      .complex = [](Build& b) { return by_parts(b, "self"); },
                  });
  ops.add(cumprod, {
                       .schema = "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
                       .meta = scan_meta,
                       .lower = [](Lower& l) { lower_scan(l, loop::ScanKind::product); },
                       .vjp = {{"self",
                                [](Vjp& v) {
                                  return cumprod_backward(v.grad(), to(v["self"], v.out().dtype()), v.arg("dim"),
                                                          v.out());
                                }}},
                       .complex = [](Build& b) -> Results {
                         DType dtype = b.dtype("dtype").value_or(b["self"].dtype());
                         b.supports(is_complex(dtype), "cumprod: expected a complex dtype of the result, got ", dtype);
                         return running_product(b, to(b["self"], dtype));
                       },
                   });
  ops.add(cumprod_backward,
          {
              .schema = "cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor",
              .kind = OpKind::composite,
              .decompose = [](Build& b) -> Results {
                return one(cumprod_gradient(b["grad"], b["input"], b.constant("dim"), b["output"]));
              },
          });
  ops.add({
      .schema = "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
      .meta = extreme_scan_meta,
      .lower = [](Lower& l) { lower_scan(l, loop::ScanKind::max, true); },
      .vjp = {{"self", extreme_scan_gradient}},
  });
  ops.add({
      .schema = "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
      .meta = extreme_scan_meta,
      .lower = [](Lower& l) { lower_scan(l, loop::ScanKind::min, true); },
      .vjp = {{"self", extreme_scan_gradient}},
  });
  ops.add(logcumsumexp,
          {
              .schema = "logcumsumexp(Tensor self, int dim) -> Tensor",
              .meta = [](MetaCall& m) -> Metas {
                (void)m.dim("dim", m.meta("self").rank());
                m.require(is_floating(m.meta("self").dtype), "expected a floating point tensor, got ", m.meta("self"),
                          "; convert it first");
                return like(m.meta("self"), m.meta("self").sizes);
              },
              .lower = [](Lower& l) { lower_scan(l, loop::ScanKind::logsumexp); },
              .vjp = {{"self",
                       [](Vjp& v) { return logcumsumexp_gradient(v.grad(), v["self"], v.constant("dim"), v.out()); }}},
          });
  ops.add({
      .schema = "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = b["self"];
        b.require(x.rank() >= 1, "expected a tensor of at least one dimension, got ", x.meta());
        int64_t n = b.constant("n"), dim = static_cast<int64_t>(b.dim("dim", x.rank()));
        b.require(n >= 0, "argument n: expected a number that is not negative, got ", n);
        if (n > 0 && (b.given("prepend") || b.given("append"))) {
          std::vector<Tensor> parts;
          if (b.given("prepend")) parts.push_back(b["prepend"]);
          parts.push_back(x);
          if (b.given("append")) parts.push_back(b["append"]);
          x = cat(parts, dim);
        }
        if (n == 0) return clone(x);
        SymInt size = x.size(dim);
        if (size.is_int() && n > size.as_int()) n = std::max<int64_t>(size.as_int(), 1);
        for (int64_t i = 0; i < n; ++i) x = difference(x, dim);
        return one(x);
      },
  });
}

}  // namespace tenon
