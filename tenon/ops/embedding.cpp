#include "tenon/ops/embedding.h"

#include "tenon/ops/accumulation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle embedding;
static Handle embedding_backward;

namespace {

using loop::Expr;

Metas embedding_meta(MetaCall& m) {
  const TensorMeta &weight = m.meta("weight"), &indices = m.meta("indices");
  m.require(weight.rank() == 2, "expected a weight of 2 dimensions, got ", weight);
  m.require(indices.dtype == DType::i64 || indices.dtype == DType::i32, "expected i64 or i32 indices, got ", indices);
  Sizes sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  return like(weight, sizes);
}

void lower_embedding_backward(Lower& l) {
  Ref grad = l["grad_output"], indices = l["indices"], out = l.out();
  WideResult wide(l, out);
  l.fill(wide.target, l.constant(0, loop::compute_of(wide.target.dtype())));
  std::optional<Ref> counts;
  if (l.flag("scale_grad_by_freq")) {
    counts = l.temporary(DType::i64, Sizes{l.integer("num_weights")}, [&](const Index&) { return l.extent(0); });
    l.stage(Sizes(indices.sizes()),
            [&](const Index& i) { l.store(*counts, {indices.at(i)}, l.extent(1), loop::Mode::add); });
  }
  l.stage(Sizes(grad.sizes()), [&](const Index& i) {
    Expr row = indices.at(i.drop_last()), value = grad.at(i);
    if (counts) value = value / cast(counts->at({row}), value.type());
    l.store_if(row != l.extent(l.integer("padding_idx")), wide.target, {row, i.last()}, value, loop::Mode::add);
  });
  wide.finish();
}

}  // namespace

void register_embedding(Registry& ops) {
  ops.add(
      embedding,
      {
          .schema = "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
                    "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
          .meta = embedding_meta,
          .lower =
              [](Lower& l) {
                l.tensor([&](const Index& i) { return l["weight"].at({l["indices"].at(i.drop_last()), i.last()}); });
              },
          .vjp = {{"weight",
                   [](Vjp& v) {
                     v.supports(!v.flag("sparse"), "sparse gradients are not supported; use sparse=False");
                     return embedding_backward(v.grad(), v["indices"], v["weight"].size(0), v.arg("padding_idx"),
                                               v.arg("scale_grad_by_freq"));
                   }}},
      });
  ops.add(embedding_backward,
          {
              .schema = "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt "
                        "padding_idx, bool scale_grad_by_freq) -> Tensor",
              .meta = [](MetaCall& m) -> Metas {
                m.require(m.meta("grad_output").rank() == m.meta("indices").rank() + 1,
                          "expected one dimension more than ", m.meta("indices"), ", got ", m.meta("grad_output"));
                return like(m.meta("grad_output"), {m.integer("num_weights"), m.meta("grad_output").sizes.back()});
              },
              .lower = lower_embedding_backward,
              .vjp = {{"grad_output",
                       [](Vjp& v) {
                         Tensor rows = embedding(
                             v.grad(), v["indices"]);  // PyTorch leaves scale_grad_by_freq out of the second gradient
                         return where(eq(unsqueeze(v["indices"], -1), v.arg("padding_idx")), 0.0, rows);
                       }}},
          });
}

}  // namespace tenon
