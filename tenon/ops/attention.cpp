#include "tenon/ops/attention.h"

#include <cmath>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/dropout.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/random.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/repeat.h"
#include "tenon/ops/softmax.h"
#include "tenon/ops/triangular.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/lowering_options.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle flash_attention, flash_attention_backward;

namespace {

using Result = BasicArg<TensorMeta>;

double scale_of(const ArgsView& call, SymInt width) {
  if (call.given("scale")) return call.number("scale");
  call.require(width.is_int(), "the width of a head must be known, it is ", width, "; give a scale");
  return 1 / std::sqrt(static_cast<double>(width.as_int()));
}

// A width that only the run knows: the query is scaled before, so that what follows has a scale of 1.
Tensor scaled_by_width(const Tensor& q, SymInt width) {
  return mul(q, CallArg(sym::float_pow(sym::to_float(width), sym::Expr::real(-0.5))));
}
bool is_scaled_apart(const ArgsView& call, SymInt width) { return !call.given("scale") && !width.is_int(); }

// Sums and logarithms of a row are kept in f32 at least.
DType row_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// Four dimensions whose middle two are stored the other way round: [b, h, l, e] kept as [b, l, h, e].
TensorMeta heads_inside(const TensorMeta& operand) {
  const Sizes& s = operand.sizes;
  TensorMeta out = like(operand, s);
  out.strides = {s[1] * s[2] * s[3], s[3], s[1] * s[3], 1};
  return out;
}

void require_heads(const MetaCall& m) {
  const TensorMeta &a = m.meta("query"), &b = m.meta("key"), &c = m.meta("value");
  m.require(a.rank() == 4 && b.rank() == 4 && c.rank() == 4, "expected query, key and value of 4 dimensions, got ", a,
            ", ", b, " and ", c);
  m.require(is_floating(a.dtype) && a.dtype == b.dtype && a.dtype == c.dtype,
            "expected query, key and value of one floating point dtype, got ", a, ", ", b, " and ", c);
  auto same = [&](SymInt x, SymInt y) {
    relies_on_equal(m, x, y, "the sizes of query, key and value do not fit: ", a, ", ", b, " and ", c);
  };
  same(a.sizes[0], b.sizes[0]);
  same(a.sizes[0], c.sizes[0]);
  same(b.sizes[1], c.sizes[1]);
  same(b.sizes[2], c.sizes[2]);
  same(a.sizes[3], b.sizes[3]);
  same(a.sizes[3], c.sizes[3]);
  if (!m.given("attn_mask")) return;
  const TensorMeta& mask = m.meta("attn_mask");
  m.require(mask.rank() <= 4, "attn_mask: expected at most 4 dimensions, got ", mask);
}

void require_no_dropout(const MetaCall& m) {
  m.supports(m.number("dropout_p") == 0, "dropout is not supported here, got dropout_p=", m.number("dropout_p"));
}

Metas attention_meta(MetaCall& m) {
  require_heads(m);
  require_no_dropout(m);
  const TensorMeta& q = m.meta("query");
  TensorMeta out = like(q, q.sizes);
  if (is_dense(q)) out.strides = q.strides;
  TensorMeta rows = like(q, {q.sizes[0], q.sizes[1], q.sizes[2]}, row_dtype(q.dtype));
  rows.strides = {q.sizes[1] * q.sizes[2], 1, q.sizes[1]};
  return {Result(out), Result(rows)};
}

// A mask as the anchor takes it: in the compute dtype or boolean, with stride 0 where it is repeated.
loop::Operand mask_operand(Lower& l, Ref mask, const Sizes& q, SymInt keys, DType compute) {
  if (mask.dtype() != DType::boolean && mask.dtype() != compute)
    mask = l.temporary(compute, Sizes(mask.sizes()), [&](const Index& i) { return mask.at(i); });
  loop::Operand own = mask.operand();
  Sizes wanted = {q[0], q[1], q[2], keys}, strides(4, SymInt(0));
  size_t extra = 4 - own.sizes.size();
  for (size_t d = 0; d < own.sizes.size(); ++d)
    if (!(own.sizes[d] == SymInt(1)) || wanted[extra + d] == SymInt(1)) strides[extra + d] = own.strides[d];
  return mask.operand(wanted, strides, own.offset);
}

void lower_attention(Lower& l) {
  Ref q = l.computable(l["query"]), k = l.computable(l["key"]), v = l.computable(l["value"]);
  Ref out = l.out(0), rows = l.out(1);
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  loop::Attention a;
  a.q = q.operand();
  a.k = k.operand();
  a.v = v.operand();
  a.out = target.operand();
  a.logsumexp = rows.operand();
  a.causal = l.flag("is_causal");
  a.has_mask = l.given("attn_mask");
  if (a.has_mask) a.mask = mask_operand(l, l["attn_mask"], Sizes(q.sizes()), k.size(2), compute);
  a.scale = scale_of(l, q.size(3));
  l.anchor(std::move(a));
  if (target.id != out.id) l.copy(target, out);
}

Metas attention_backward_meta(MetaCall& m) {
  require_heads(m);
  require_no_dropout(m);
  const Sizes& q = m.meta("query").sizes;
  require_sizes(m, "grad_out", q);
  require_sizes(m, "out", q);
  require_sizes(m, "logsumexp", {q[0], q[1], q[2]});
  Metas grads;
  for (const char* name : {"query", "key", "value"}) grads.values.emplace_back(heads_inside(m.meta(name)));
  return grads;
}

void lower_attention_backward(Lower& l) {
  loop::AttentionGradient a;
  DType compute = computable(l.out(0).dtype());
  Ref q = l.computable(l["query"]), k = l.computable(l["key"]);
  a.grad = l.computable(l["grad_out"]).operand();
  a.q = q.operand();
  a.k = k.operand();
  a.v = l.computable(l["value"]).operand();
  a.out = l.computable(l["out"]).operand();
  a.logsumexp = l["logsumexp"].operand();
  Ref targets[3];
  loop::Operand* operands[] = {&a.grad_q, &a.grad_k, &a.grad_v};
  for (size_t i = 0; i < 3; ++i) {
    targets[i] = compute == l.out(i).dtype() ? l.out(i) : l.temporary(compute, Sizes(l.out(i).sizes()));
    *operands[i] = targets[i].operand();
  }
  a.causal = l.flag("is_causal");
  a.has_mask = l.given("attn_mask");
  if (a.has_mask) a.mask = mask_operand(l, l["attn_mask"], Sizes(q.sizes()), k.size(2), compute);
  a.scale = scale_of(l, q.size(3));
  l.anchor(std::move(a));
  for (size_t i = 0; i < 3; ++i)
    if (targets[i].id != l.out(i).id) l.copy(targets[i], l.out(i));
}

// A boolean mask says where to look; as numbers it adds 0 there and -inf elsewhere.
Tensor as_bias(const Tensor& mask, DType dtype) {
  if (mask.dtype() != DType::boolean) return mask;
  Tensor nothing = full(Sizes{}, 0.0, kw("dtype", dtype)),
         never = full(Sizes{}, -std::numeric_limits<double>::infinity(), kw("dtype", dtype));
  return where(mask, nothing, never);
}

bool may_be_empty(const Tensor& t) {
  for (SymInt s : t.sizes())
    if (s == SymInt(0)) return true;
  return false;
}

// Heads of keys and values shared by several heads of queries: each is repeated for its group.
Tensor repeated_heads(const Tensor& x, SymInt heads, const ArgsView& call) {
  SymInt own = x.size(-3);
  if (own == heads) return x;
  auto groups = sym::exact_quotient(heads, own);
  if (!groups) {
    relies_on_equal(call, sym::mod(heads, own), 0, "the number of heads of the query, ", heads,
                    ", must be a multiple of that of key and value, ", own);
    groups = sym::floor_div(heads, own);
  }
  return repeat_interleave_int(x, *groups, -3);
}

// PyTorch's op for the CPU reads rows through their strides but elements one after another, and wants equal sizes.
bool flash_takes(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double dropout) {
  if (dropout != 0 || q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || !is_floating(q.dtype())) return false;
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype()) return false;
  if (!(q.size(-1) == k.size(-1)) || !(q.size(-1) == v.size(-1))) return false;
  if (!(q.size(0) == k.size(0)) || !(q.size(0) == v.size(0)) || !(k.size(1) == v.size(1)) ||
      !(q.size(1) == k.size(1)) || !(k.size(2) == v.size(2)))
    return false;
  for (const Tensor& t : {q, k, v})
    if (may_be_empty(t) || !(t.strides()[3] == SymInt(1) || t.size(3) == SymInt(1))) return false;
  if (!mask) return true;
  if (mask.rank() != 2 && mask.rank() != 4) return false;
  if (mask.meta().requires_grad) return false;
  if (mask.dtype() != DType::boolean && mask.dtype() != q.dtype() &&
      !(mask.dtype() == DType::f32 && item_size(q.dtype()) == 2))
    return false;
  Sizes wanted = {q.size(0), q.size(1), q.size(2), k.size(2)};
  for (size_t d = 0; d < mask.rank(); ++d) {
    SymInt s = mask.sizes()[d], w = wanted[4 - mask.rank() + d];
    if (!(s == w) && !(s == SymInt(1) && d + 2 != mask.rank() + 1)) return false;
  }
  return true;
}

// softmax(q kᵀ · scale + mask) v, written out.
Tensor attention_by_products(Build& b, Tensor q, Tensor k, Tensor v, const Tensor& mask, double dropout, bool causal,
                             double scale) {
  double root = std::sqrt(std::abs(scale));
  Tensor scores;
  if (scale < 0) scores = matmul(q, transpose(k, -2, -1)) * scale;
  else scores = matmul(q * root, transpose(k, -2, -1) * root);  // each side scaled: products stay small
  Tensor bias = mask;
  if (causal) bias = tril(ones(Sizes{q.size(-2), k.size(-2)}, kw("dtype", DType::boolean)));
  if (bias) scores = scores + as_bias(bias, q.dtype());
  Tensor weights = safe_softmax(scores, -1);
  if (dropout > 0) {
    b.require(dropout <= 1, "dropout_p: expected a probability, got ", dropout);
    weights = tenon::dropout(weights, dropout, true);
  }
  return matmul(weights, v);
}

Results composed_attention(Build& b) {
  Tensor q = b["query"], k = b["key"], v = b["value"], mask = b["attn_mask"];
  double dropout = b.number("dropout_p");
  bool causal = b.flag("is_causal");
  b.require(q.rank() >= 2 && k.rank() >= 2 && v.rank() >= 2,
            "expected query, key and value of at least 2 dimensions, got ", q.meta(), ", ", k.meta(), " and ",
            v.meta());
  b.require(q.dtype() == k.dtype() && q.dtype() == v.dtype(), "expected query, key and value of one dtype, got ",
            q.meta(), ", ", k.meta(), " and ", v.meta());
  b.require(!mask || !causal, "give a mask or is_causal=True, not both");
  b.require(!mask || mask.dtype() == DType::boolean || mask.dtype() == q.dtype() || mask.dtype() == DType::f32,
            "expected a mask of bool or of the query's dtype, got ", mask ? mask.meta() : TensorMeta());
  bool apart = is_scaled_apart(b, q.size(-1));
  if (apart) q = scaled_by_width(q, q.size(-1));
  double scale = apart ? 1 : scale_of(b, q.size(-1));
  if (b.flag("enable_gqa")) {
    b.require(q.rank() >= 3 && k.rank() >= 3 && v.rank() >= 3, "enable_gqa needs a dimension of heads, got ", q.meta());
    k = repeated_heads(k, q.size(-3), b);
    v = repeated_heads(v, q.size(-3), b);
  }
  bool flat = q.rank() == 3 && k.rank() == 3 && v.rank() == 3 && (!mask || mask.rank() == 2);
  Tensor q4 = q, k4 = k, v4 = v;
  if (flat && dropout == 0) {
    q4 = unsqueeze(q, 0);
    k4 = unsqueeze(k, 0);
    v4 = unsqueeze(v, 0);
  }
  if (!lowering_options().flash_attention || !flash_takes(q4, k4, v4, mask, dropout))
    return one(attention_by_products(b, q, k, v, mask, dropout, causal, scale));
  Tensor bias = mask ? as_bias(mask, q.dtype()) : none;
  CallArg by = apart ? CallArg(1.0) : b.arg("scale");
  Tensor out = flash_attention(q4, k4, v4, 0.0, causal, kw("attn_mask", bias), kw("scale", by))[0];
  if (flat) out = squeeze_dim(out, 0);
  return one(out);
}

// The gradients of softmax(q kᵀ · scale + mask) v, written out, so that they have gradients themselves.
Results attention_gradient_by_products(Build& b) {
  DType dtype = computable(b["query"].dtype());
  Tensor g = to(b["grad_out"], dtype), q = to(b["query"], dtype), k = to(b["key"], dtype), v = to(b["value"], dtype);
  b.supports(b.number("dropout_p") == 0, "a second gradient of attention with dropout is not supported");
  double scale = scale_of(b, q.size(-1));
  Tensor scores = matmul(q, transpose(k, -2, -1)) * scale, mask = b["attn_mask"];
  if (b.flag("is_causal")) mask = tril(ones(Sizes{q.size(-2), k.size(-2)}, kw("dtype", DType::boolean)));
  if (mask) scores = scores + as_bias(mask, dtype);
  Tensor weights = safe_softmax(scores, -1);
  Tensor by_weights = matmul(g, transpose(v, -2, -1));
  Tensor by_scores = weights * (by_weights - Tensor(sum(by_weights * weights, Sizes{-1}, true))) * scale;
  DType out = b["query"].dtype();
  auto heads_inside = [&](const Tensor& t) {  // as the operator lays its results out
    return CallArg(Tensor(transpose(contiguous(transpose(to(t, out), 1, 2)), 1, 2)));
  };
  return {{heads_inside(matmul(by_scores, k)), heads_inside(matmul(transpose(by_scores, -2, -1), q)),
           heads_inside(matmul(transpose(weights, -2, -1), g))}};
}

}  // namespace

void register_attention(Registry& ops) {
  ops.add({
      .schema = "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
                "dropout_p=0., bool is_causal=False, *, "
                "float? scale=None, bool enable_gqa=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = composed_attention,
  });
  ops.add(flash_attention, {
                               .schema = "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor "
                                         "value, float dropout_p=0., bool is_causal=False, *, Tensor? "
                                         "attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
                               .meta = attention_meta,
                               .lower = lower_attention,
                               .vjp = {{"query, key, value",
                                        [](Vjp& v) -> Grads {
                                          Results r = flash_attention_backward(
                                              v.grad(), v["query"], v["key"], v["value"], v.out(0), v.out(1),
                                              v.arg("dropout_p"), v.arg("is_causal"),
                                              kw("attn_mask", v.arg("attn_mask")), kw("scale", v.arg("scale")));
                                          return {r[0], r[1], r[2]};
                                        }},
                                       {"attn_mask",
                                        [](Vjp& v) {
                                          v.require(!v.given("attn_mask"), "there is no gradient for attn_mask here");
                                          return none;
                                        }}},
                           });
  ops.add(flash_attention_backward,
          {
              .schema = "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor "
                        "key, Tensor value, Tensor out, Tensor logsumexp, "
                        "float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor "
                        "grad_query, Tensor grad_key, Tensor grad_value)",
              .meta = attention_backward_meta,
              .lower = lower_attention_backward,
              .for_grad = attention_gradient_by_products,
          });
}

}  // namespace tenon
