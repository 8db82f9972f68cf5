// Rows of a table summed, averaged or maximized by bag. A bag is a run of indices; offsets name where each begins.
#include <cmath>
#include <limits>

#include "tenon/ops/index.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle embedding_bag, embedding_bag_backward, sample_weights_backward;

namespace {

using loop::Compute;
using loop::Expr;

enum Mode { total, average, largest };

bool is_index(DType dtype) { return dtype == DType::i64 || dtype == DType::i32; }

// Arguments 0 to 8 as _embedding_bag has them: weight, indices, offsets, scale_grad_by_freq, mode, sparse,
// per_sample_weights, include_last_offset, padding_idx.
SymInt bags_of(const ArgsView& m) {
  SymInt n = m.meta(2).sizes[0];
  return m.flag(7) ? n - 1 : n;
}

void require_indices(const ArgsView& m, size_t at) {
  m.require(m.meta(at).rank() == 1 && is_index(m.meta(at).dtype), m.op.schema.args[at].name, ": expected i64 or i32 indices in 1 dimension, got ",
            m.meta(at));
}

// PyTorch's sums over plain tables do not say which bag an index is in: the result is empty.
bool leaves_bags_out(const ArgsView& m) {
  const TensorMeta& w = m.meta(0);
  bool plain = w.dtype != DType::f64 && w.strides[1] == SymInt(1) && (!m.given(6) || m.meta(6).strides[0] == SymInt(1));
  return m.constant(4) == total && m.constant(8) < 0 && plain;
}

Metas bag_meta(MetaCall& m) {
  const TensorMeta& w = m.meta(0);
  m.require(w.rank() == 2 && is_floating(w.dtype), "weight: expected a floating point table of 2 dimensions, got ", w);
  require_indices(m, 1);
  require_indices(m, 2);
  int64_t mode = m.constant(4);
  m.require(mode >= total && mode <= largest, "mode: expected 0 (sum), 1 (mean) or 2 (max), got ", mode);
  SymInt n = m.meta(1).sizes[0], bags = bags_of(m);
  m.require(!bags.is_int() || bags.as_int() >= 0, "expected at least one offset where the last one is included, got ", m.meta(2));
  if (m.given(6)) {
    m.require(mode == total, "per_sample_weights are for sums (mode 0), got mode ", mode);
    m.require(m.meta(6).dtype == w.dtype && m.meta(6).sizes == m.meta(1).sizes, "per_sample_weights: expected ", make_meta(w.dtype, m.meta(1).sizes),
              ", got ", m.meta(6));
  }
  DType index = promote(m.meta(1).dtype, m.meta(2).dtype);
  return {like(w, {bags, w.sizes[1]}), like(w, {leaves_bags_out(m) ? SymInt(0) : n}, index), like(w, {bags}, index),
          like(w, mode == largest ? Sizes{bags, w.sizes[1]} : Sizes{bags}, index)};
}

// Which bag each of n indices is in: as many as begin at it or before, less one.
Ref bag_numbers(Lower& l, Ref offsets, SymInt n) {
  Sizes flat = {n + 1};
  Ref begins = l.temporary(DType::i64, flat), numbers = l.temporary(DType::i64, flat);
  l.fill(begins, l.extent(0));
  l.stage(Sizes(offsets.sizes()), [&](const Index& b) { l.store(begins, {offsets.at(b)}, l.extent(1), loop::Mode::add); });
  loop::Scan scan;
  scan.in = begins.operand(flat, {1});
  scan.out = numbers.operand(flat, {1});
  l.anchor(std::move(scan));
  return l.temporary(DType::i64, {n}, [&](const Index& i) { return numbers.at(i) - 1; });
}

void lower_bag(Lower& l) {
  Ref weight = l[0], indices = l[1], out = l.out(0), out_bags = l.out(1), out_sizes = l.out(2), out_largest = l.out(3);
  SymInt n = indices.size(0), bags = out.size(0), width = weight.size(1);
  int64_t mode = l.constant(4), padding = l.constant(8);
  bool weighted = l.given(6);
  Ref bag = bag_numbers(l, l[2], n);
  // Indices after an included last offset are in no bag.
  auto counts = [&](Expr i) {
    Expr inside = bag.at({i}) < l.extent(bags);
    return padding < 0 ? inside : inside && indices.at({i}) != l.extent(padding);
  };
  if (!(out_bags.size(0) == SymInt(0))) l.tensor(out_bags, [&](const Index& i) { return bag.at(i); });
  Ref sizes = l.temporary(DType::i64, {bags});
  l.fill(sizes, l.extent(0));
  l.stage({n}, [&](const Index& i) { l.store_if(counts(i[0]), sizes, {bag.at(i)}, l.extent(1), loop::Mode::add); });
  l.tensor(out_sizes, [&](const Index& i) { return mode == total ? l.extent(0) : sizes.at(i); });
  if (mode != largest) l.tensor(out_largest, [&](const Index& i) { return mode == total ? l.extent(0) : sizes.at(i); });

  DType compute = computable(out.dtype());
  Compute type = loop::compute_of(compute);
  Ref target = l.temporary(compute, Sizes(out.sizes()));
  l.fill(target, l.constant(mode == largest ? -std::numeric_limits<double>::infinity() : 0, type));
  l.stage({n, width}, [&](const Index& i) {
    Expr value = weight.at({indices.at({i[0]}), i[1]});
    if (weighted) value = value * l[6].at({i[0]});
    l.store_if(counts(i[0]), target, {bag.at({i[0]}), i[1]}, value, mode == largest ? loop::Mode::max : loop::Mode::add);
  });
  l.tensor(out, [&](const Index& i) {
    Expr value = target.at(i), size = sizes.at({i[0]});
    if (mode == total) return value;
    Expr whole = mode == average ? value / cast(size, type) : value;
    return loop::select(size > 0, whole, l.constant(0, type));
  });
  if (mode != largest) return;
  Ref first = l.temporary(DType::i64, Sizes(out.sizes()));   // the first index that reaches it
  l.fill(first, l.extent(n));
  l.stage({n, width}, [&](const Index& i) {
    Expr value = weight.at({indices.at({i[0]}), i[1]});
    Expr best = target.at_if(counts(i[0]), {bag.at({i[0]}), i[1]}, l.constant(0, type));
    Expr reaches = value == best || (is_nan(value) && is_nan(best));
    l.store_if(counts(i[0]) && reaches, first, {bag.at({i[0]}), i[1]}, i[0], loop::Mode::min);
  });
  l.tensor(out_largest, [&](const Index& i) {
    return indices.at_if(first.at(i) < l.extent(n), {first.at(i)}, l.extent(0));
  });
}

// Where the arguments of the two forms of the gradient are; -1: absent.
struct Backward {
  int offsets, bags, sizes, largest, rows, by_frequency, mode, samples, padding;
};
constexpr Backward with_offsets{2, 3, 4, 5, 6, 7, 8, 10, 11}, without_offsets{-1, 2, 3, 4, 5, 6, 7, 8, 9};

Metas backward_meta(const ArgsView& m, const Backward& at) {
  const TensorMeta& g = m.meta(0);
  auto position = [](int i) { return static_cast<size_t>(i); };
  m.require(g.rank() == 2 && is_floating(g.dtype), "grad: expected a floating point tensor of 2 dimensions, got ", g);
  require_indices(m, 1);
  for (int i : {at.offsets, at.bags, at.sizes})
    if (i >= 0) require_indices(m, position(i));
  int64_t mode = m.constant(position(at.mode));
  m.require(mode >= total && mode <= largest, "mode: expected 0 (sum), 1 (mean) or 2 (max), got ", mode);
  SymInt n = m.meta(1).sizes[0], known_bags = m.meta(position(at.bags)).sizes[0], rows = m.integer(position(at.rows));
  m.require(known_bags == n || !n.is_int() || !known_bags.is_int() || (known_bags == SymInt(0) && (at.offsets >= 0 || mode == largest)),
            "offset2bag: expected one for each of ", n, " indices, got ", m.meta(position(at.bags)));
  m.require(m.meta(position(at.sizes)).sizes[0] == g.sizes[0], "bag_size: expected one for each row of ", g, ", got ", m.meta(position(at.sizes)));
  m.require(!rows.is_int() || rows.as_int() >= 0, "num_weights: expected a number that is not negative, got ", rows);
  const TensorMeta& places = m.meta(position(at.largest));
  m.require(mode != largest || (places.sizes == g.sizes && is_index(places.dtype)), "maximum_indices: expected indices of the sizes of ", g, ", got ", places);
  if (m.given(position(at.samples))) {
    const TensorMeta& s = m.meta(position(at.samples));
    m.require(mode == total && s.sizes == m.meta(1).sizes && s.dtype == g.dtype, "per_sample_weights: expected mode 0 and ",
              make_meta(g.dtype, m.meta(1).sizes), ", got ", s);
  }
  return like(g, {rows, g.sizes[1]});
}

void lower_backward(Lower& l, const Backward& at) {
  auto ref = [&](int i) { return l[static_cast<size_t>(i)]; };
  Ref grad = l[0], indices = l[1], sizes = ref(at.sizes);
  SymInt n = indices.size(0), width = grad.size(1), bags = grad.size(0);
  int64_t mode = l.constant(static_cast<size_t>(at.mode)), padding = l.constant(static_cast<size_t>(at.padding));
  WideResult wide(l, l.out());
  Compute type = loop::compute_of(wide.target.dtype());
  l.fill(wide.target, l.constant(0, type));
  if (mode == largest) {
    Ref places = ref(at.largest);
    l.stage(Sizes(grad.sizes()), [&](const Index& i) {
      l.store_if(sizes.at({i[0]}) != 0, wide.target, {places.at(i), i[1]}, grad.at(i), loop::Mode::add);
    });
    return wide.finish();
  }
  Ref bag = ref(at.bags).size(0) == SymInt(0) && at.offsets >= 0 ? bag_numbers(l, ref(at.offsets), n) : ref(at.bags);
  bool by_frequency = l.flag(static_cast<size_t>(at.by_frequency)), weighted = l.given(static_cast<size_t>(at.samples));
  Ref frequency;
  if (by_frequency) {
    frequency = l.temporary(DType::i64, {l.out().size(0)});
    l.fill(frequency, l.extent(0));
    l.stage({n}, [&](const Index& i) { l.store(frequency, {indices.at(i)}, l.extent(1), loop::Mode::add); });
  }
  l.stage({n, width}, [&](const Index& i) {
    Expr row = indices.at({i[0]}), from = bag.at({i[0]}), inside = from < l.extent(bags);
    if (padding >= 0) inside = inside && row != l.extent(padding);
    Expr value = grad.at_if(inside, {from, i[1]}, l.constant(0, type));
    if (weighted) value = value * ref(at.samples).at({i[0]});
    if (mode == average) value = value / cast(sizes.at_if(inside, {from}, l.extent(1)), type);
    if (by_frequency) value = value / cast(frequency.at({row}), type);
    l.store_if(inside, wide.target, {row, i[1]}, value, loop::Mode::add);
  });
  wide.finish();
}

Results any_bag(Build& b, CallArg padding) {
  return embedding_bag(b[0], b[1], b[2], b.arg(3), b.arg(4), b.arg(5), b[6], b.arg(7), padding);
}

}  // namespace

void register_embedding_bag(Registry& ops) {
  ops.add(embedding_bag, {
      .schema = "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
                "Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
      .meta = bag_meta,
      .lower = lower_bag,
      .vjp = {{"weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx", [](Vjp& v) -> Grads {
        Grads out(7);
        if (v.needs("weight"))
          out[0] = embedding_bag_backward(v.grad(0), v["indices"], v["offsets"], v.out(1), v.out(2), v.out(3), v["weight"].size(0), v.arg("scale_grad_by_freq"), v.arg("mode"), false, v["per_sample_weights"], v.arg("padding_idx"));
        if (v.given("per_sample_weights") && v.needs("per_sample_weights")) out[6] = sample_weights_backward(v.grad(0), v["weight"], v["indices"], v["offsets"], v.out(1), v.arg("mode"), v.arg("padding_idx"));
        return out;
      }}},
  });
  ops.add({
      .schema = "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
                "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
      .meta = bag_meta,
      .lower = lower_bag,
  });
  ops.add({
      .schema = "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
                "Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return any_bag(b, -1); },
  });
  ops.add({
      .schema = "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? "
                "per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        if (!b.given("padding_idx")) return any_bag(b, -1);
        b.require(b["weight"].rank() == 2, "weight: expected a table of 2 dimensions, got ", b["weight"].meta());
        SymInt rows = b["weight"].size(0), padding = b.integer("padding_idx");
        b.require(padding.is_int() && (!rows.is_int() || (padding.as_int() >= -rows.as_int() && padding.as_int() < rows.as_int())),
                  "padding_idx: expected a row of ", b["weight"].meta(), ", got ", padding);
        if (padding.as_int() >= 0) return any_bag(b, padding);
        b.require(rows.is_int(), "padding_idx: expected a number that is not negative for a table of unknown size, got ", padding);
        return any_bag(b, padding + rows);
      },
  });
  ops.add(embedding_bag_backward, {
      .schema = "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, "
                "SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
      .meta = [](MetaCall& m) {
        m.supports(!m.flag("sparse"), "sparse gradients are not supported; the dense one has the same values");
        return backward_meta(m, with_offsets);
      },
      .lower = [](Lower& l) { lower_backward(l, with_offsets); },
  });
  ops.add({
      .schema = "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt "
                "num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
      .meta = [](MetaCall& m) { return backward_meta(m, without_offsets); },
      .lower = [](Lower& l) { lower_backward(l, without_offsets); },
  });
  ops.add(sample_weights_backward, {
      .schema = "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor offset2bag, int "
                "mode, int padding_idx=-1) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta &g = m.meta("grad"), &w = m.meta("weight");
        m.require(m.constant("mode") == total, "per_sample_weights are for sums (mode 0), got mode ", m.constant("mode"));
        m.require(g.rank() == 2 && w.rank() == 2 && g.dtype == w.dtype && is_floating(g.dtype) && g.sizes[1] == w.sizes[1],
                  "expected a gradient and a table of equally long rows, got ", g, " and ", w);
        for (size_t i = 2; i <= 4; ++i) require_indices(m, i);
        SymInt n = m.meta("indices").sizes[0], bags = m.meta("offset2bag").sizes[0];
        m.require(bags == n || bags == SymInt(0) || !n.is_int() || !bags.is_int(), "offset2bag: expected one for each of ", n, " indices, got ", m.meta("offset2bag"));
        return like(g, {n});
      },
      .lower = [](Lower& l) {
        Ref grad = l["grad"], weight = l["weight"], indices = l["indices"];
        int64_t padding = l.constant("padding_idx");
        Ref bag = l["offset2bag"].size(0) == SymInt(0) ? bag_numbers(l, l["offsets"], indices.size(0)) : l["offset2bag"];
        Compute type = loop::compute_of(grad.dtype());
        l.tensor([&](const Index& i) {
          Expr row = indices.at(i), from = bag.at(i), inside = from < l.extent(grad.size(0));
          if (padding >= 0) inside = inside && row != l.extent(padding);
          return l.sum({grad.size(1)}, [&](const Index& d) {
            return grad.at_if(inside, {from, d[0]}, l.constant(0, type)) * weight.at({row, d[0]});
          });
        });
      },
  });
}

}  // namespace tenon
