#include "tenon/ops/masking.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/indexing.h"
#include "tenon/ops/splitting.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle nonzero, nonzero_static, masked_scatter;
static Handle masked_scatter_backward;

Ref mask_positions(Lower& l, Ref mask) {
  Sizes sizes = mask.sizes();
  Sizes flat = {count(sizes)};
  Ref ones = l.temporary(DType::i64, sizes, [&](const Index& i) {
    return loop::select(cast(mask.at(i), loop::Compute::boolean), l.extent(1), l.extent(0));
  });
  Ref totals = l.temporary(DType::i64, sizes);
  loop::Scan scan;
  scan.in = ones.operand(flat, {1});
  scan.out = totals.operand(flat, {1});
  l.anchor(std::move(scan));
  return l.temporary(DType::i64, sizes, [&](const Index& i) { return totals.at(i) - 1; });
}

namespace {

using loop::Expr;

// PyTorch keeps the coordinates of one dimension together.
TensorMeta nonzero_meta(const TensorMeta& x, SymInt found) {
  TensorMeta out = make_meta(DType::i64, {found, SymInt(static_cast<int64_t>(x.rank()))}, x.device);
  out.strides = {1, larger(found, 1)};
  if (found == SymInt(0) || x.rank() == 0) out.strides = contiguous_strides(out.sizes);
  return out;
}

// A tensor of coordinates for each dimension; a scalar counts as a tensor of one element.
Results nonzero_by_dim(const Tensor& x) {
  if (x.rank() == 0) return unbind(nonzero(unsqueeze(x, 0)), 1);
  return unbind(nonzero(x), 1);
}

// masked_scatter: true element number n takes source[n] in row-major order.
void lower_masked_scatter(Lower& l) {
  Ref self = l["self"], mask = l["mask"], source = l["source"], out = l.out();
  Sizes domain = out.sizes(), from = source.sizes();
  Ref wide = l.temporary(DType::boolean, domain, [&](const Index& i) { return mask.broadcast_at(i); });
  Ref positions = mask_positions(l, wide);
  l.tensor([&](const Index& i) {
    return source.at_if(wide.at(i), unravelled(l, positions.at(i), from), self.broadcast_at(i));
  });
}

void lower_nonzero_static(Lower& l) {
  Ref x = l["self"], out = l.out();
  Sizes sizes = x.sizes();
  l.fill(out, l.scalar("fill_value", loop::Compute::i64));
  if (sizes.empty()) return;
  Ref positions = mask_positions(l, x);
  l.stage(sizes, [&](const Index& i) {
    Expr at = positions.at(i), hit = cast(x.at(i), loop::Compute::boolean) && at < l.extent(out.size(0));
    for (size_t d = 0; d < sizes.size(); ++d) l.store_if(hit, out, {at, l.extent(static_cast<int64_t>(d))}, i[d]);
  });
}

}  // namespace

void register_masking(Registry& ops) {
  ops.add(nonzero, {
                       .schema = "nonzero(Tensor self) -> Tensor",
                       .meta = [](MetaCall& m) -> Metas { return nonzero_meta(m.meta("self"), data_dependent_size()); },
                       .host = {"nonzero"},
                       .complex = on_truth,
                   });
  ops.alias(nonzero, {"argwhere"});
  ops.add({
      .schema = "nonzero_numpy(Tensor self) -> Tensor[]",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return nonzero_by_dim(b["self"]); },
  });
  ops.add({
      .schema = "where(Tensor condition) -> Tensor[]",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return nonzero_by_dim(b["condition"]); },
  });
  ops.add(nonzero_static, {
                              .schema = "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
                              .meta = [](MetaCall& m) -> Metas {
                                return like(m.meta("self"),
                                            {m.integer("size"), SymInt(static_cast<int64_t>(m.meta("self").rank()))},
                                            DType::i64);
                              },
                              .lower = lower_nonzero_static,
                              .complex = on_truth,
                          });
  ops.add({
      .schema = "masked_select(Tensor self, Tensor mask) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("mask").dtype == DType::boolean, "expected a bool mask, got ", m.meta("mask"));
        broadcast(m.meta("self").sizes, m.meta("mask").sizes, m);
        return like(m.meta("self"), {data_dependent_size()});
      },
      .vjp = {{"self",
               [](Vjp& v) {
                 Sizes sizes = broadcast(v["self"].sizes(), v["mask"].sizes(), v);
                 return masked_scatter(zeros(sizes, v.grad()), v["mask"], v.grad());
               }}},
      .host = {"masked_select"},
      .complex = [](Build& b) { return by_parts(b, "self"); },
  });
  ops.add(
      masked_scatter,
      {
          .schema = "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
          .meta = [](MetaCall& m) -> Metas {
            m.require(m.meta("mask").dtype == DType::boolean, "expected a bool mask, got ", m.meta("mask"));
            m.require(m.meta("self").dtype == m.meta("source").dtype, "expected a source of the dtype of ",
                      m.meta("self"), ", got ", m.meta("source"));
            return like(m.meta("self"), broadcast(m.meta("self").sizes, m.meta("mask").sizes, m));
          },
          .lower = lower_masked_scatter,
          .vjp = {{"self", [](Vjp& v) { return where(v["mask"], 0.0, v.grad()); }},
                  {"source", [](Vjp& v) { return masked_scatter_backward(v.grad(), v["mask"], v["source"].sizes()); }}},
          .complex = [](Build& b) { return by_parts(b, "self, source"); },
      });
  ops.add(masked_scatter_backward,
          {
              .schema = "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
              .meta = [](MetaCall& m) -> Metas { return like(m.meta("grad_output"), m.ints("sizes")); },
              .lower =
                  [](Lower& l) {
                    Ref grad = l["grad_output"], mask = l["mask"], out = l.out();
                    Sizes domain = grad.sizes(), to = out.sizes();
                    l.fill(out, l.constant(0, loop::compute_of(out.dtype())));
                    Ref wide =
                        l.temporary(DType::boolean, domain, [&](const Index& i) { return mask.broadcast_at(i); });
                    Ref positions = mask_positions(l, wide);
                    l.stage(domain, [&](const Index& i) {
                      l.store_if(wide.at(i), out, unravelled(l, positions.at(i), to), grad.at(i));
                    });
                  },
              .vjp = {{"grad_output",
                       [](Vjp& v) {
                         return masked_scatter(zeros(v["grad_output"].sizes(), v.grad()), v["mask"], v.grad());
                       }}},
          });
}

}  // namespace tenon
