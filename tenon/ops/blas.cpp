#include "tenon/ops/blas.h"

#include "tenon/base/saturate.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/einsum.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle mm, bmm, addmm, matmul, linear;
static Handle dot, outer;

namespace {

// A batch of matrices [b, m, k] as an anchor takes it; a plain matrix is a batch of one.
loop::Operand batched(Ref x) {
  loop::Operand o = x.operand();
  if (o.sizes.size() == 2) {
    o.sizes.insert(0, 1);
    o.strides.insert(0, 0);
  }
  return o;
}

// out = a · b, through a buffer the anchor computes in where out has another dtype.
void lower_product(Lower& l, Ref a, Ref b, Ref out) {
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  a = l.computable(a);
  b = l.computable(b);
  l.anchor(loop::Gemm{batched(a), batched(b), batched(target)});
  if (target.id != out.id) l.copy(target, out);
}

void require_product(const MetaCall& m, const TensorMeta& x, const TensorMeta& y, size_t rank) {
  m.require(x.rank() == rank && y.rank() == rank, "expected two tensors of ", rank, " dimensions, got ", x, " and ", y);
  m.require(x.dtype == y.dtype, "expected equal dtypes, got ", x, " and ", y);
  SymInt k = x.sizes[rank - 1], k2 = y.sizes[rank - 2];
  relies_on_equal(m, k, k2, "the inner sizes differ: ", x, " and ", y);
  if (rank == 3) relies_on_equal(m, x.sizes[0], y.sizes[0], "the batches differ: ", x, " and ", y);
}

// Broadcasts the batch dims of both sides and multiplies them as one batch.
Tensor multiplied(const Tensor& a, const Tensor& b, const ArgsView& call) {
  size_t ra = a.rank(), rb = b.rank();
  call.require(ra >= 1 && rb >= 1, "both tensors need at least one dimension, got ", a.meta(), " and ", b.meta());
  if (ra == 1 && rb == 1) {
    Tensor row = unsqueeze(a, 0), column = unsqueeze(b, 1);
    return view(mm(row, column), Sizes{});
  }
  if (ra == 1) return squeeze_dim(multiplied(unsqueeze(a, 0), b, call), -2);
  if (rb == 1) return squeeze_dim(multiplied(a, unsqueeze(b, 1), call), -1);
  if (ra == 2 && rb == 2) return mm(a, b);
  SymInt m = a.size(-2), k = a.size(-1), n = b.size(-1);
  if (rb == 2) {  // rows of all batches against one matrix
    Sizes sizes(std::span<const SymInt>(a.sizes().begin(), ra - 1));
    sizes.push_back(n);
    return view(mm(reshape(a, Sizes{count(Sizes(std::span<const SymInt>(a.sizes().begin(), ra - 1))), k}), b), sizes);
  }
  Sizes batch_a(std::span<const SymInt>(a.sizes().begin(), ra - 2)),
      batch_b(std::span<const SymInt>(b.sizes().begin(), rb - 2));
  Sizes batch = broadcast(batch_a, batch_b, call);
  auto spread = [&](const Tensor& x, SymInt rows, SymInt columns) -> Tensor {
    Sizes sizes = batch;
    sizes.push_back(rows);
    sizes.push_back(columns);
    Tensor wide = x.sizes() == sizes ? x : expand(x, sizes);
    return reshape(wide, Sizes{count(batch), rows, columns});
  };
  Tensor right = spread(b, b.size(-2), n), left = spread(a, m, k);  // in the order of PyTorch's graphs
  Tensor product = bmm(left, right);
  Sizes sizes = batch;
  sizes.push_back(m);
  sizes.push_back(n);
  return view(product, sizes);
}

// Numbers meet integers as integers, truth values as truth.
Tensor scaled(const Tensor& x, const ArgsView& call, const char* by) {
  if (call.arg(by).is<std::complex<double>>()) return mul(x, call.arg(by));
  if (x.dtype() == DType::boolean) return mul(x, call.number(by) != 0);
  if (!is_differentiable(x.dtype())) return mul(x, saturated(call.number(by)));
  return call.number(by) == 1 ? x : mul(x, call.arg(by));
}

// beta * self + alpha * product; beta of 0 means self is not looked at, not even its NaN, and has a gradient of zeros.
Tensor combined(const ArgsView& call, const Tensor& product) {
  Tensor p = scaled(product, call, "alpha");
  if (!call.arg("beta").is<std::complex<double>>() && call.number("beta") == 0)
    return where(full(Sizes{}, false, kw("dtype", DType::boolean)), call["self"], p);
  return scaled(call["self"], call, "beta") + p;
}

void require_vector_product(const ArgsView& call, const Tensor& a, const Tensor& b, size_t rank_a, size_t rank_b) {
  call.require(a.rank() == rank_a && b.rank() == rank_b, "expected tensors of ", rank_a, " and ", rank_b,
               " dimensions, got ", a.meta(), " and ", b.meta());
  call.require(a.dtype() == b.dtype(), "expected equal dtypes, got ", a.meta(), " and ", b.meta());
  relies_on_equal(call, a.size(-1), b.size(0), "the inner sizes differ: ", a.meta(), " and ", b.meta());
}

}  // namespace

void register_blas(Registry& ops) {
  ops.add(mm, {
                  .schema = "mm(Tensor self, Tensor mat2) -> Tensor",
                  .meta = [](MetaCall& m) -> Metas {
                    require_product(m, m.meta("self"), m.meta("mat2"), 2);
                    return like(m.meta("self"), {m.meta("self").sizes[0], m.meta("mat2").sizes[1]});
                  },
                  .lower = [](Lower& l) { lower_product(l, l["self"], l["mat2"], l.out()); },
                  .vjp = {{"self", [](Vjp& v) { return mm(v.grad(), transposed(v["mat2"])); }},
                          {"mat2", [](Vjp& v) { return mm(transposed(v["self"]), v.grad()); }}},
                  .complex = [](Build& b) { return by_products(b, "self", "mat2"); },
              });
  ops.add(
      bmm,
      {
          .schema = "bmm(Tensor self, Tensor mat2) -> Tensor",
          .meta = [](MetaCall& m) -> Metas {
            require_product(m, m.meta("self"), m.meta("mat2"), 3);
            return like(m.meta("self"), {m.meta("self").sizes[0], m.meta("self").sizes[1], m.meta("mat2").sizes[2]});
          },
          .lower = [](Lower& l) { lower_product(l, l["self"], l["mat2"], l.out()); },
          .vjp = {{"self", [](Vjp& v) { return bmm(v.grad(), transposed(v["mat2"])); }},
                  {"mat2", [](Vjp& v) { return bmm(transposed(v["self"]), v.grad()); }}},
          .complex = [](Build& b) { return by_products(b, "self", "mat2"); },
      });
  ops.add(addmm,
          {
              .schema = "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
              .meta = [](MetaCall& m) -> Metas {
                require_product(m, m.meta("mat1"), m.meta("mat2"), 2);
                Sizes sizes = {m.meta("mat1").sizes[0], m.meta("mat2").sizes[1]};
                broadcast(sizes, m.meta("self").sizes, m);
                return like(m.meta("mat1"), sizes);
              },
              .lower =
                  [](Lower& l) {  // the product first, in the compute dtype; then one rounding
                    Ref product = l.temporary(computable(l.out().dtype()), Sizes(l.out().sizes()));
                    lower_product(l, l["mat1"], l["mat2"], product);
                    bool plain = l.number("beta") == 1 && l.number("alpha") == 1;
                    l.tensor([&](const Index& i) {
                      loop::Expr p = product.at(i);
                      if (l.number("beta") == 0) return p * l.scalar("alpha", p.type());
                      loop::Expr c = cast(l["self"].broadcast_at(i), p.type());
                      return plain ? c + p : c * l.scalar("beta", p.type()) + p * l.scalar("alpha", p.type());
                    });
                  },
              .vjp = {{"self", [](Vjp& v) { return scaled(v.grad(), v, "beta"); }},
                      {"mat1", [](Vjp& v) { return scaled(mm(v.grad(), transposed(v["mat2"])), v, "alpha"); }},
                      {"mat2", [](Vjp& v) { return scaled(mm(transposed(v["mat1"]), v.grad()), v, "alpha"); }}},
              .complex = [](Build& b) { return one(combined(b, mm(b["mat1"], b["mat2"]))); },
          });
  ops.add(matmul, {
                      .schema = "matmul(Tensor self, Tensor other) -> Tensor",
                      .kind = OpKind::composite,
                      .decompose = [](Build& b) -> Results { return one(multiplied(b["self"], b["other"], b)); },
                  });
  ops.alias(matmul, {"linalg_matmul"});
  ops.add(linear, {
                      .schema = "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
                      .kind = OpKind::composite,
                      .decompose = [](Build& b) -> Results {
                        Tensor x = b["input"], w = b["weight"];
                        b.require(w.rank() == 1 || w.rank() == 2, "expected a weight of 1 or 2 dimensions, got ",
                                  w.meta());
                        if (w.rank() == 2 && x.rank() >= 2 && b.given("bias")) {
                          Sizes sizes = x.sizes();
                          SymInt k = sizes.back();
                          sizes.back() = w.size(0);
                          Sizes rows(std::span<const SymInt>(x.sizes().begin(), x.rank() - 1));
                          Tensor flat = x.rank() == 2 ? x : reshape(x, Sizes{count(rows), k});
                          Tensor y = addmm(b["bias"], flat, transposed(w));
                          return x.rank() == 2 ? one(y) : view(y, sizes);
                        }
                        Tensor y = multiplied(x, w.rank() == 2 ? transposed(w) : w, b);
                        return one(b.given("bias") ? y + b["bias"] : y);
                      },
                  });
  ops.add({
      .schema = "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor product = bmm(b["batch1"], b["batch2"]);
            b.require(b["self"].dtype() == product.dtype(), "expected tensors of one dtype, got ", b["self"].meta(),
                      " and ", product.meta());
            Sizes sizes = broadcast(b["self"].sizes(), product.sizes(), b);
            b.require(sizes.size() == 3, "expected self to broadcast to ", product.sizes(), ", got ", b["self"].meta());
            return one(combined(b, product));
          },
  });
  ops.add({
      .schema = "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return one(
                combined(b, sum(bmm(b["batch1"], b["batch2"]), Sizes{0}, false, kw("dtype", b["batch1"].dtype()))));
          },
  });
  ops.add({
      .schema = "mv(Tensor self, Tensor vec) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            require_vector_product(b, b["self"], b["vec"], 2, 1);
            return squeeze_dim(mm(b["self"], unsqueeze(b["vec"], 1)), 1);
          },
  });
  ops.add({
      .schema = "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            require_vector_product(b, b["mat"], b["vec"], 2, 1);
            return one(combined(b, squeeze_dim(mm(b["mat"], unsqueeze(b["vec"], 1)), 1)));
          },
  });
  ops.add(dot, {
                   .schema = "dot(Tensor self, Tensor tensor) -> Tensor",
                   .kind = OpKind::composite,
                   .decompose =
                       [](Build& b) {
                         require_vector_product(b, b["self"], b["tensor"], 1, 1);
                         Tensor column = unsqueeze(b["tensor"], 1), row = unsqueeze(b["self"], 0);
                         return view(mm(row, column), Sizes{});
                       },
               });
  ops.add({
      .schema = "vdot(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return is_complex(b["self"].dtype()) ? dot(conjugate(b["self"]), b["other"]) : dot(b["self"], b["other"]);
          },
  });
  ops.add(outer, {
                     .schema = "outer(Tensor self, Tensor vec2) -> Tensor",
                     .kind = OpKind::composite,
                     .decompose =
                         [](Build& b) {
                           b.require(b["self"].rank() == 1 && b["vec2"].rank() == 1,
                                     "expected two tensors of 1 dimension, got ", b["self"].meta(), " and ",
                                     b["vec2"].meta());
                           return mul(unsqueeze(b["self"], 1), b["vec2"]);
                         },
                 });
  ops.add({
      .schema = "ger(Tensor self, Tensor vec2) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return outer(b["self"], b["vec2"]); },
  });
  ops.add({
      .schema = "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            b.require(b["vec1"].rank() == 1 && b["vec2"].rank() == 1, "expected two vectors, got ", b["vec1"].meta(),
                      " and ", b["vec2"].meta());
            return one(combined(b, mul(unsqueeze(b["vec1"], 1), b["vec2"])));
          },
  });
  ops.add({
      .schema = "inner(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        if (b["self"].rank() == 0 || b["other"].rank() == 0) return mul(b["self"], b["other"]);
        relies_on_equal(b, b["self"].size(-1), b["other"].size(-1), "the last dimensions differ: ", b["self"].meta(),
                        " and ", b["other"].meta());
        return tensordot(b["self"], b["other"], Sizes{-1}, Sizes{-1});
      },
  });
}

}  // namespace tenon
