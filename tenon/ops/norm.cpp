#include "tenon/ops/norm.h"

#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/where.h"
#include "tenon/ops/index.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/statistics.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle native_layer_norm, native_group_norm;
static Handle layer_norm_backward, group_norm_backward;

DType statistics_dtype(const ArgsView& call, size_t input, std::initializer_list<size_t> parameters) {
  DType own = call.meta(input).dtype;
  for (size_t p : parameters)
    if (call.given(p) && call.meta(p).dtype != own) {
      call.require((own == DType::f16 || own == DType::bf16) && call.meta(p).dtype == DType::f32,
                   "expected parameters of dtype ", own, " or f32 beside a half precision input, got ", call.meta(p));
      return DType::f32;
    }
  return own;
}

Sizes normalized_strides(const TensorMeta& input) {
  for (MemoryFormat format : {MemoryFormat::channels_last, MemoryFormat::channels_last_3d}) {
    size_t rank = format == MemoryFormat::channels_last ? 4 : 5;
    if (input.rank() == rank && !is_contiguous(input) && is_contiguous(input, format)) return input.strides;
  }
  return contiguous_strides(input.sizes);
}

static bool masked_in(const ArgsView& call, size_t mask, size_t result) {
  auto* flags = call.arg(mask).get<std::vector<bool>>();
  call.require(flags && result < flags->size(), "output_mask: expected a list of flags, got ",
               describe(call.arg(mask)));
  return (*flags)[result];
}

Metas masked_metas(const ArgsView& call, size_t mask, std::initializer_list<TensorMeta> metas) {
  Metas out;
  for (const TensorMeta& meta : metas) {
    if (masked_in(call, mask, out.values.size())) out.values.emplace_back(meta);
    else out.values.emplace_back();
  }
  return out;
}

namespace {

using loop::Compute;
using loop::Expr;

// How an input's dims are normalized: the last ones, together.
struct Rows {
  Sizes sizes;
  size_t outer = 0;  // dims before the normalized ones
  Reduced over;
  Rows(const ArgsView& call, const Sizes& sizes, const Sizes& normalized)
      : sizes(sizes), outer(sizes.size() - std::min(normalized.size(), sizes.size())), over({}, true, sizes.size()) {
    bool fits = !normalized.empty() && normalized.size() <= sizes.size();
    for (size_t i = outer; fits && i < sizes.size(); ++i) fits = !statically_true(sym::ne(sizes[i], normalized[i - outer]));
    call.require(fits, "normalized_shape: expected the last sizes of the input ", sizes, ", got ", normalized);
    for (size_t i = outer; i < sizes.size(); ++i) over.dims.push_back(i);
  }
  Sizes extents() const { return extents_of(sizes, over.dims); }
  Sizes statistics() const { return reduced_sizes(sizes, over.dims, true); }
  Index inner(const Index& i) const { return i.drop_first(outer); }
};

void require_parameter(const ArgsView& m, size_t at, const Sizes& sizes) {
  if (m.given(at))
    m.require(m.meta(at).sizes.size() == sizes.size() && !statically_true(sym::ne(count(m.meta(at).sizes), count(sizes))),
              m.op.schema.args[at].name, ": expected sizes ", sizes, ", got ", m.meta(at));
}

void lower_layer_norm(Lower& l) {
  Ref x = l[0];
  Rows rows(l, x.sizes(), l.ints(1));
  Sizes extents = rows.extents();
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  auto n = [&] { return cast(l.extent(count(extents)), type); };
  Ref mean = l.temporary(dtype, rows.statistics(), [&](const Index& i) {
    return l.sum(extents, [&](const Index& r) { return x.at(rows.over.at(i, r)); }) / n();
  });
  Ref rstd = l.temporary(dtype, rows.statistics(), [&](const Index& i) {
    Expr squares = l.sum(extents, [&](const Index& r) {
      Expr d = x.at(rows.over.at(i, r)) - mean.at(i);
      return d * d;
    });
    return l.constant(1, type) / loop::sqrt(squares / n() + l.number(4));
  });
  l.tensor(l.out(0), [&](const Index& i) {
    Expr y = (x.at(i) - mean.broadcast_at(i)) * rstd.broadcast_at(i);
    if (l.given(2)) y = y * cast(l[2].at(rows.inner(i)), type);
    return l.given(3) ? y + cast(l[3].at(rows.inner(i)), type) : y;
  });
  l.copy(mean, l.out(1));
  l.copy(rstd, l.out(2));
}

// With h = (x - mean) * rstd and w * g for g: dx = rstd * (g - mean(g) - h * mean(g * h)), dw = sum(g * h), db =
// sum(g).
void lower_layer_norm_gradient(Lower& l) {
  Ref g = l[0], x = l[1], mean = l[3], rstd = l[4];
  Rows rows(l, x.sizes(), l.ints(2));
  Sizes extents = rows.extents();
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  auto normal = [&](const Index& i) {
    return (x.at(i) - cast(mean.broadcast_at(i), type)) * cast(rstd.broadcast_at(i), type);
  };
  auto weighted = [&](const Index& i) {
    return l.given(5) ? cast(g.at(i), type) * cast(l[5].at(rows.inner(i)), type) : cast(g.at(i), type);
  };
  if (l.wants(0)) {
    Ref a = l.temporary(dtype, rows.statistics()), b = l.temporary(dtype, rows.statistics());
    l.stage(rows.statistics(), [&](const Index& i) {
      Expr n = cast(l.extent(count(extents)), type);
      l.store(a, i, l.sum(extents, [&](const Index& r) { return weighted(rows.over.at(i, r)); }) / n);
      l.store(b, i, l.sum(extents, [&](const Index& r) {
        return weighted(rows.over.at(i, r)) * normal(rows.over.at(i, r));
      }) / n);
    });
    l.tensor(l.out(0), [&](const Index& i) {
      return cast(rstd.broadcast_at(i), type) * (weighted(i) - a.broadcast_at(i) - normal(i) * b.broadcast_at(i));
    });
  }
  Sizes outer(std::span<const SymInt>(rows.sizes.begin(), rows.outer));
  auto whole = [](const Index& r, const Index& i) {
    Index at = r;
    at.insert(at.end(), i.begin(), i.end());
    return at;
  };
  if (l.wants(1))
    l.tensor(l.out(1), [&](const Index& i) {
      return l.sum(outer, [&](const Index& r) { return cast(g.at(whole(r, i)), type) * normal(whole(r, i)); });
    });
  if (l.wants(2))
    l.tensor(l.out(2), [&](const Index& i) {
      return l.sum(outer, [&](const Index& r) { return cast(g.at(whole(r, i)), type); });
    });
}

// The channels of an input [n, c, ...] in groups; places of a group are its channels and all that comes after.
struct Groups {
  Sizes sizes, extents;
  SymInt groups, width;
  Groups(const ArgsView& call, const Sizes& sizes, SymInt groups) : sizes(sizes), groups(groups) {
    call.require(sizes.size() >= 2, "expected an input of at least 2 dimensions, got sizes ", sizes);
    call.require(!statically_true(sym::ne(sym::mod(sizes[1], groups), 0)), "the ", sizes[1], " channels do not divide into ",
                 groups, " groups");
    width = sym::floor_div(sizes[1], groups);
    extents.push_back(width);
    for (size_t i = 2; i < sizes.size(); ++i) extents.push_back(sizes[i]);
  }
  Sizes statistics() const { return {sizes[0], groups}; }
  // [n, group] and the place in the group
  Index at(Lower& l, const Index& i, const Index& r) const {
    Index out = {i[0], i[1] * l.extent(width) + r[0]};
    out.insert(out.end(), r.begin() + 1, r.end());
    return out;
  }
  Index group(Lower& l, const Index& i) const { return {i[0], call(loop::Fn::floor_div, i[1], l.extent(width))}; }
};

void lower_group_norm(Lower& l) {
  Ref x = l[0];
  Groups groups(l, x.sizes(), l.integer(6));
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  auto n = [&] { return cast(l.extent(count(groups.extents)), type); };
  Ref mean = l.temporary(dtype, groups.statistics(), [&](const Index& i) {
    return l.sum(groups.extents, [&](const Index& r) { return x.at(groups.at(l, i, r)); }) / n();
  });
  Ref rstd = l.temporary(dtype, groups.statistics(), [&](const Index& i) {
    Expr squares = l.sum(groups.extents, [&](const Index& r) {
      Expr d = x.at(groups.at(l, i, r)) - mean.at(i);
      return d * d;
    });
    return l.constant(1, type) / loop::sqrt(squares / n() + l.number(7));
  });
  l.tensor(l.out(0), [&](const Index& i) {
    Expr y = (x.at(i) - mean.at(groups.group(l, i))) * rstd.at(groups.group(l, i));
    if (l.given(1)) y = y * cast(l[1].at({i[1]}), type);
    return l.given(2) ? y + cast(l[2].at({i[1]}), type) : y;
  });
  l.copy(mean, l.out(1));
  l.copy(rstd, l.out(2));
}

void lower_group_norm_gradient(Lower& l) {
  Ref g = l[0], x = l[1], mean = l[2], rstd = l[3];
  Groups groups(l, x.sizes(), l.integer(8));
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  auto normal = [&](const Index& i) {
    return (x.at(i) - cast(mean.at(groups.group(l, i)), type)) * cast(rstd.at(groups.group(l, i)), type);
  };
  auto weighted = [&](const Index& i) {
    return l.given(4) ? cast(g.at(i), type) * cast(l[4].at({i[1]}), type) : cast(g.at(i), type);
  };
  if (l.wants(0)) {
    Ref a = l.temporary(dtype, groups.statistics()), b = l.temporary(dtype, groups.statistics());
    l.stage(groups.statistics(), [&](const Index& i) {
      Expr n = cast(l.extent(count(groups.extents)), type);
      l.store(a, i, l.sum(groups.extents, [&](const Index& r) { return weighted(groups.at(l, i, r)); }) / n);
      l.store(b, i, l.sum(groups.extents, [&](const Index& r) {
        return weighted(groups.at(l, i, r)) * normal(groups.at(l, i, r));
      }) / n);
    });
    l.tensor(l.out(0), [&](const Index& i) {
      Index at = groups.group(l, i);
      return cast(rstd.at(at), type) * (weighted(i) - a.at(at) - normal(i) * b.at(at));
    });
  }
  Sizes others = x.sizes();
  others.erase(1);
  if (l.wants(1))
    l.tensor(l.out(1), [&](const Index& i) {
      return l.sum(others,
                   [&](const Index& r) { return cast(g.at(r.inserted(1, i[0])), type) * normal(r.inserted(1, i[0])); });
    });
  if (l.wants(2))
    l.tensor(l.out(2), [&](const Index& i) {
      return l.sum(others, [&](const Index& r) { return cast(g.at(r.inserted(1, i[0])), type); });
    });
}

// What the mean and the inverse deviation of each group give back: d mean = 1 / n, d rstd = -rstd³ * (x - mean) / n.
Tensor statistics_gradient(const Vjp& v) {
  SymInt n = sym::floor_div(v.integer(4), v.integer(6)) * v.integer(5);
  Sizes rows = {v.integer(3), v.integer(6), n};
  Tensor total;
  if (v.grad(1)) total = expand(unsqueeze(div(v.grad(1), n), -1), rows);
  if (v.grad(2)) {
    Tensor rstd = v.out(2), centered = Tensor(reshape(v[0], rows)) - Tensor(unsqueeze(v.out(1), -1));
    Tensor part = -centered * Tensor(unsqueeze(div(v.grad(2) * (rstd * rstd * rstd), n), -1));
    total = total ? total + part : part;
  }
  return total ? Tensor(reshape(total, v[0].sizes())) : none;
}

double machine_epsilon(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::epsilon()
                             : static_cast<double>(std::numeric_limits<float>::epsilon());
}

// x / sqrt(mean(x²) + eps), in f32 for half precision. Gives the reciprocal root too.
std::pair<Tensor, Tensor> rms_normalized(Build& b, const Tensor& weight) {
  Tensor x = b[0];
  b.require(is_floating(x.dtype()), "expected a floating point tensor, got ", x.meta());
  Rows rows(b, x.sizes(), b.ints(1));
  Tensor wide = to(x, computable(x.dtype()));
  double eps = b.given(3) ? b.number(3) : machine_epsilon(x.dtype());
  Tensor root = rsqrt(Tensor(mean(pow_scalar(wide, 2), dims_argument(rows.over), true)) + eps);
  Tensor y = wide * root;
  if (weight) y = y * weight;
  return {to(y, x.dtype()), root};
}

// norm over every dim but one, or over all for dim -1.
Tensor norm_except(const Tensor& v, double p, int64_t dim) {
  if (dim == -1) return linalg_vector_norm(v, p);
  Sizes others;
  for (size_t i = 0; i < v.rank(); ++i)
    if (i != normal_dim(dim, v.rank())) others.push_back(SymInt(static_cast<int64_t>(i)));
  if (others.empty()) return abs(v);
  return linalg_vector_norm(v, p, others, true);
}

// Slices whose norm is too large are scaled down to it.
Tensor renormed(const Tensor& x, double p, int64_t dim, const CallArg& most) {
  Tensor norms = norm_except(to(x, computable(x.dtype())), p, dim);
  Tensor factor = where(gt(norms, most), mul(reciprocal(norms + 1e-7), most), 1.0);
  return x * to(factor, x.dtype());
}

}  // namespace

void register_norm(Registry& ops) {
  ops.add({
      .schema = "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
                "eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        return one(native_layer_norm(b["input"], b.arg("normalized_shape"), b.arg("weight"), b.arg("bias"), b.arg("eps"))[0]);
      },
  });
  ops.add(native_layer_norm, {
      .schema = "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, "
                "Tensor? bias, float eps) -> (Tensor, Tensor, "
                "Tensor)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta& x = m.meta("input");
        m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
        Rows rows(m, x.sizes, m.ints("normalized_shape"));
        require_parameter(m, 2, m.ints("normalized_shape"));
        require_parameter(m, 3, m.ints("normalized_shape"));
        TensorMeta statistics = like(x, rows.statistics(), statistics_dtype(m, 0, {2, 3}));
        return {like(x, x.sizes), statistics, statistics};
      },
      .lower = lower_layer_norm,
      .vjp = {{"input, normalized_shape, weight, bias, eps", [](Vjp& v) -> Grads {
        if (!v.grad(0)) return {};
        std::vector<bool> mask = {v.needs("input"), v.needs("weight"), v.needs("bias")};
        Results r = layer_norm_backward(v.grad(0), v["input"], v.arg("normalized_shape"), v.out(1), v.out(2),
                                        v.arg("weight"), v.arg("bias"), mask);
        return {r[0], none, r[1], r[2]};
      }}},
  });
  ops.add(layer_norm_backward, {
      .schema = "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor "
                "mean, Tensor rstd, Tensor? "
                "weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta& x = m.meta("input");
        DType weight = m.given("weight") ? m.meta("weight").dtype : x.dtype, bias = m.given("bias") ? m.meta("bias").dtype : weight;
        return masked_metas(m, 7, {like(x, x.sizes), like(x, m.ints("normalized_shape"), weight), like(x, m.ints("normalized_shape"), bias)});
      },
      .lower = lower_layer_norm_gradient,
  });
  ops.add({
      .schema = "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(rms_normalized(b, b["weight"]).first); },
  });
  ops.add({
      .schema = "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        auto [y, root] = rms_normalized(b, b["weight"]);
        return {{CallArg(y), CallArg(root)}};
      },
  });
  ops.add({
      .schema = "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
                "eps=1.0000000000000001e-05, bool "
                "cudnn_enabled=True) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = b["input"];
        b.require(x.rank() >= 2, "expected an input of at least 2 dimensions, got ", x.meta());
        if (normalized_strides(x.meta()) != x.strides()) x = contiguous(x);
        SymInt area = 1;
        for (size_t i = 2; i < x.rank(); ++i) area = area * x.sizes()[i];
        return one(native_group_norm(x, b.arg("weight"), b.arg("bias"), x.size(0), x.size(1), area, b.arg("num_groups"), b.arg("eps"))[0]);
      },
  });
  ops.add(native_group_norm, {
      .schema = "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, "
                "SymInt C, SymInt HxW, int group, float eps) -> "
                "(Tensor, Tensor, Tensor)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta& x = m.meta("input");
        m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
        Groups groups(m, x.sizes, m.integer("group"));
        require_parameter(m, 1, {x.sizes[1]});
        require_parameter(m, 2, {x.sizes[1]});
        TensorMeta out = like(x, x.sizes),
                   statistics = like(x, groups.statistics(), statistics_dtype(m, 0, {1, 2}));
        out.strides = normalized_strides(x);
        return {out, statistics, statistics};
      },
      .lower = lower_group_norm,
      .vjp = {{"input, weight, bias, N, C, HxW, group, eps", [](Vjp& v) -> Grads {
        Tensor through_statistics = v.needs("input") ? statistics_gradient(v) : none;
        if (!v.grad(0)) return {through_statistics};
        std::vector<bool> mask = {v.needs("input"), v.needs("weight"), v.needs("bias")};
        Results r = group_norm_backward(v.grad(0), v["input"], v.out(1), v.out(2), v.arg("weight"),
                                        v.arg("N"), v.arg("C"), v.arg("HxW"), v.arg("group"), mask);
        return {through_statistics ? r[0] + through_statistics : r[0], r[1], r[2]};
      }}},
  });
  ops.add(group_norm_backward, {
      .schema = "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, "
                "Tensor rstd, Tensor? weight, SymInt N, SymInt C, "
                "SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta& x = m.meta("input");
        TensorMeta out = like(x, x.sizes),
                   parameter =
                       like(x, {x.sizes[1]}, m.given("weight") ? m.meta("weight").dtype : x.dtype);
        out.strides = normalized_strides(x);
        return masked_metas(m, 9, {out, parameter, parameter});
      },
      .lower = lower_group_norm_gradient,
  });
  ops.add({
      .schema = "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["self"];
            b.require(x.rank() == 2 && is_floating(x.dtype()), "expected a floating point table of 2 dimensions, got ", x.meta());
            b.require(b["indices"].dtype() == DType::i64 || b["indices"].dtype() == DType::i32, "indices: expected i64 or i32 indices, got ",
                      b["indices"].meta());
            Sizes rows = {x.size(0), SymInt(1)};
            Tensor used = index_fill(full(rows, false, kw("dtype", DType::boolean)), 0, flatten(b["indices"]), true);
            return one(where(used, renormed(x, b.number("norm_type"), 0, b.arg("max_norm")), x));
          },
  });
  ops.add({
      .schema = "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["self"];
            b.require(x.rank() > 1, "expected at least 2 dimensions, got ", x.meta());
            return one(renormed(x, b.number("p"), static_cast<int64_t>(b.dim("dim", x.rank())), b.arg("maxnorm")));
          },
  });
  ops.add({
      .schema = "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(norm_except(b["v"], b.number("pow"), b.constant("dim"))); },
  });
  ops.add({
      .schema = "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(b["v"] * (b["g"] / norm_except(b["v"], 2, b.constant("dim")))); },
  });
  ops.add({
      .schema = "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor norms = norm_except(b["v"], 2, b.constant("dim"));
        return {{CallArg(b["v"] * (b["g"] / norms)), CallArg(norms)}};
      },
  });
}

}  // namespace tenon
