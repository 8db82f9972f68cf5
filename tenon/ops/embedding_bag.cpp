// Rows of a table summed, averaged or maximized by bag. A bag is a run of indices; offsets name where each begins.
#include <cmath>
#include <limits>

#include "tenon/ops/accumulation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/index_select.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/scan.h"
#include "tenon/ops/scatter_gather.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle embedding_bag, embedding_bag_backward, sample_weights_backward;

namespace {

using loop::Compute;
using loop::Expr;

enum Mode { total, average, largest };

bool is_index(DType dtype) { return dtype == DType::i64 || dtype == DType::i32; }

void require_mode(const ArgsView& m) {
  int64_t mode = m.constant("mode");
  m.require(mode >= total && mode <= largest, "mode: expected 0 (sum), 1 (mean) or 2 (max), got ", mode);
}

void require_indices(const ArgsView& m, const char* arg) {
  const TensorMeta& x = m.meta(arg);
  m.require(x.rank() == 1 && is_index(x.dtype), arg, ": expected i64 or i32 indices in 1 dimension, got ", x);
}

// PyTorch's sums over plain tables do not say which bag an index is in: the result is empty.
bool leaves_bags_out(const ArgsView& m) {
  const TensorMeta& w = m.meta("weight");
  bool plain = w.dtype != DType::f64 && w.strides[1] == SymInt(1) &&
               (!m.given("per_sample_weights") || m.meta("per_sample_weights").strides[0] == SymInt(1));
  return m.constant("mode") == total && m.constant("padding_idx") < 0 && plain;
}

Metas bag_meta(MetaCall& m) {
  const TensorMeta &w = m.meta("weight"), &indices = m.meta("indices"), &offsets = m.meta("offsets");
  m.require(w.rank() == 2 && is_floating(w.dtype), "weight: expected a floating point table of 2 dimensions, got ", w);
  require_indices(m, "indices");
  require_indices(m, "offsets");
  require_mode(m);
  int64_t mode = m.constant("mode");
  SymInt n = indices.sizes[0], bags = m.flag("include_last_offset") ? offsets.sizes[0] - 1 : offsets.sizes[0];
  m.require(!bags.is_int() || bags.as_int() >= 0, "expected at least one offset where the last one is included, got ",
            offsets);
  if (m.given("per_sample_weights")) {
    const TensorMeta& s = m.meta("per_sample_weights");
    m.require(mode == total, "per_sample_weights are for sums (mode 0), got mode ", mode);
    m.require(s.dtype == w.dtype && s.sizes == indices.sizes, "per_sample_weights: expected ",
              make_meta(w.dtype, indices.sizes), ", got ", s);
  }
  DType index = promote(indices.dtype, offsets.dtype);
  return {like(w, {bags, w.sizes[1]}), like(w, {leaves_bags_out(m) ? SymInt(0) : n}, index), like(w, {bags}, index),
          like(w, mode == largest ? Sizes{bags, w.sizes[1]} : Sizes{bags}, index)};
}

// Which bag each of n indices is in: as many as begin at it or before, less one.
Ref bag_numbers(Lower& l, Ref offsets, SymInt n) {
  Sizes flat = {n + 1};
  Ref begins = l.temporary(DType::i64, flat), numbers = l.temporary(DType::i64, flat);
  l.fill(begins, l.extent(0));
  l.stage(Sizes(offsets.sizes()),
          [&](const Index& b) { l.store(begins, {offsets.at(b)}, l.extent(1), loop::Mode::add); });
  loop::Scan scan;
  scan.in = begins.operand(flat, {1});
  scan.out = numbers.operand(flat, {1});
  l.anchor(std::move(scan));
  return l.temporary(DType::i64, {n}, [&](const Index& i) { return numbers.at(i) - 1; });
}

void lower_bag(Lower& l) {
  Ref weight = l["weight"], indices = l["indices"], out = l.out(0), out_bags = l.out(1), out_sizes = l.out(2),
      out_largest = l.out(3);
  SymInt n = indices.size(0), bags = out.size(0), width = weight.size(1);
  int64_t mode = l.constant("mode"), padding = l.constant("padding_idx");
  bool weighted = l.given("per_sample_weights");
  Ref bag = bag_numbers(l, l["offsets"], n);
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
    if (weighted) value = value * l["per_sample_weights"].at({i[0]});
    l.store_if(counts(i[0]), target, {bag.at({i[0]}), i[1]}, value,
               mode == largest ? loop::Mode::max : loop::Mode::add);
  });
  l.tensor(out, [&](const Index& i) {
    Expr value = target.at(i), size = sizes.at({i[0]});
    if (mode == total) return value;
    Expr whole = mode == average ? value / cast(size, type) : value;
    return loop::select(size > 0, whole, l.constant(0, type));
  });
  if (mode != largest) return;
  Ref first = l.temporary(DType::i64, Sizes(out.sizes()));  // the first index that reaches it
  l.fill(first, l.extent(n));
  l.stage({n, width}, [&](const Index& i) {
    Expr value = weight.at({indices.at({i[0]}), i[1]});
    Expr best = target.at_if(counts(i[0]), {bag.at({i[0]}), i[1]}, l.constant(0, type));
    Expr reaches = value == best || (is_nan(value) && is_nan(best));
    l.store_if(counts(i[0]) && reaches, first, {bag.at({i[0]}), i[1]}, i[0], loop::Mode::min);
  });
  l.tensor(out_largest,
           [&](const Index& i) { return indices.at_if(first.at(i) < l.extent(n), {first.at(i)}, l.extent(0)); });
}

// The gradient has two forms; one knows the offsets, from which bags follow where they were left out.
bool has_offsets(const ArgsView& call) { return call.op.schema.find("offsets") >= 0; }

Metas backward_meta(MetaCall& m) {
  const TensorMeta &g = m.meta("grad"), &indices = m.meta("indices"), &bags = m.meta("offset2bag");
  m.require(g.rank() == 2 && is_floating(g.dtype), "grad: expected a floating point tensor of 2 dimensions, got ", g);
  require_indices(m, "indices");
  if (has_offsets(m)) require_indices(m, "offsets");
  require_indices(m, "offset2bag");
  require_indices(m, "bag_size");
  require_mode(m);
  int64_t mode = m.constant("mode");
  SymInt n = indices.sizes[0], known_bags = bags.sizes[0], rows = m.integer("num_weights");
  m.require(known_bags == n || !n.is_int() || !known_bags.is_int() ||
                (known_bags == SymInt(0) && (has_offsets(m) || mode == largest)),
            "offset2bag: expected one for each of ", n, " indices, got ", bags);
  m.require(m.meta("bag_size").sizes[0] == g.sizes[0], "bag_size: expected one for each row of ", g, ", got ",
            m.meta("bag_size"));
  m.require(!rows.is_int() || rows.as_int() >= 0, "num_weights: expected a number that is not negative, got ", rows);
  const TensorMeta& places = m.meta("maximum_indices");
  m.require(mode != largest || (places.sizes == g.sizes && is_index(places.dtype)),
            "maximum_indices: expected indices of the sizes of ", g, ", got ", places);
  if (m.given("per_sample_weights")) {
    const TensorMeta& s = m.meta("per_sample_weights");
    m.require(mode == total && s.sizes == indices.sizes && s.dtype == g.dtype,
              "per_sample_weights: expected mode 0 and ", make_meta(g.dtype, indices.sizes), ", got ", s);
  }
  return like(g, {rows, g.sizes[1]});
}

void lower_backward(Lower& l) {
  Ref grad = l["grad"], indices = l["indices"], sizes = l["bag_size"];
  SymInt n = indices.size(0), width = grad.size(1), bags = grad.size(0);
  int64_t mode = l.constant("mode"), padding = l.constant("padding_idx");
  WideResult wide(l, l.out());
  Compute type = loop::compute_of(wide.target.dtype());
  l.fill(wide.target, l.constant(0, type));
  if (mode == largest) {
    Ref places = l["maximum_indices"];
    l.stage(Sizes(grad.sizes()), [&](const Index& i) {
      l.store_if(sizes.at({i[0]}) != 0, wide.target, {places.at(i), i[1]}, grad.at(i), loop::Mode::add);
    });
    return wide.finish();
  }
  Ref bag = l["offset2bag"];
  if (bag.size(0) == SymInt(0) && has_offsets(l)) bag = bag_numbers(l, l["offsets"], n);
  bool by_frequency = l.flag("scale_grad_by_freq"), weighted = l.given("per_sample_weights");
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
    if (weighted) value = value * l["per_sample_weights"].at({i[0]});
    if (mode == average) value = value / cast(sizes.at_if(inside, {from}, l.extent(1)), type);
    if (by_frequency) value = value / cast(frequency.at({row}), type);
    l.store_if(inside, wide.target, {row, i[1]}, value, loop::Mode::add);
  });
  wide.finish();
}

// Which bag each index is in, where bags are numbered one after the other.
Tensor bags_of(Build& b) {
  Tensor bags = b["offset2bag"], indices = b["indices"];
  if (bags.size(0) == indices.size(0)) return bags;
  b.supports(has_offsets(b), "second gradients for indices whose bags are not given");
  Tensor places = sub(cumsum(ones_like(indices), 0), 1);
  return sub(sum(to(ge(unsqueeze(places, 1), unsqueeze(b["offsets"], 0)), DType::i64), Sizes{1}), 1);
}

// 1 for each index that counts.
Tensor counted(Build& b, const Tensor& like) {
  int64_t padding = b.constant("padding_idx");
  Tensor ones = new_full(like, Sizes{b["indices"].size(0)}, 1.0);
  return padding < 0 ? ones : Tensor(where(ne(b["indices"], padding), ones, 0.0));
}

// The gradient of the table as a sum over indices, which has gradients itself.
Results table_gradient(Build& b) {
  Tensor grad = b["grad"], indices = b["indices"];
  int64_t mode = b.constant("mode");
  Tensor table = new_zeros(grad, Sizes{b.integer("num_weights"), grad.size(1)});
  if (mode == largest) {
    Tensor filled = unsqueeze(ne(b["bag_size"], 0), 1);
    return scatter_add(table, 0, clamp_min(b["maximum_indices"], 0), where(filled, grad, 0.0));
  }
  Tensor bags = bags_of(b), weight = counted(b, grad);
  if (b.given("per_sample_weights")) weight = weight * b["per_sample_weights"];
  if (mode == average) weight = weight / to(index_select(clamp_min(b["bag_size"], 1), 0, bags), grad.dtype());
  if (b.flag("scale_grad_by_freq")) {
    Tensor once = new_full(grad, Sizes{indices.size(0)}, 1.0);
    Tensor often = index_add(new_zeros(grad, Sizes{b.integer("num_weights")}), 0, indices, once);
    weight = weight / index_select(often, 0, indices);
  }
  return index_add(table, 0, indices, index_select(grad, 0, bags) * unsqueeze(weight, 1));
}

Results weights_gradient(Build& b) {
  Tensor rows = index_select(b["weight"], 0, b["indices"]), grads = index_select(b["grad"], 0, bags_of(b));
  return {{Tensor(sum(rows * grads, Sizes{1})) * counted(b, b["grad"])}};
}

Results any_bag(Build& b, CallArg padding) {
  return embedding_bag(b["weight"], b["indices"], b["offsets"], b.arg("scale_grad_by_freq"), b.arg("mode"),
                       b.arg("sparse"), b["per_sample_weights"], b.arg("include_last_offset"), padding);
}

}  // namespace

void register_embedding_bag(Registry& ops) {
  ops.add(embedding_bag, {
                             .schema = "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "
                                       "scale_grad_by_freq=False, int mode=0, bool sparse=False, "
                                       "Tensor? per_sample_weights=None, bool include_last_offset=False, int "
                                       "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
                             .meta = bag_meta,
                             .lower = lower_bag,
                             .vjp = {{"weight",
                                      [](Vjp& v) {
                                        return embedding_bag_backward(v.grad(), v["indices"], v["offsets"], v.out(1),
                                                                      v.out(2), v.out(3), v["weight"].size(0),
                                                                      v.arg("scale_grad_by_freq"), v.arg("mode"), false,
                                                                      v["per_sample_weights"], v.arg("padding_idx"));
                                      }},
                                     {"per_sample_weights",
                                      [](Vjp& v) {
                                        return sample_weights_backward(v.grad(), v["weight"], v["indices"],
                                                                       v["offsets"], v.out(1), v.arg("mode"),
                                                                       v.arg("padding_idx"));
                                      }}},
                         });
  ops.add({
      .schema = "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool "
                "scale_grad_by_freq=False, int mode=0, bool "
                "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> "
                "(Tensor, Tensor, Tensor, Tensor)",
      .meta = bag_meta,
      .lower = lower_bag,
  });
  ops.add({
      .schema = "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
                "mode=0, bool sparse=False, "
                "Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return any_bag(b, -1); },
  });
  ops.add({
      .schema = "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int "
                "mode, bool sparse, Tensor? "
                "per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        if (!b.given("padding_idx")) return any_bag(b, -1);
        b.require(b["weight"].rank() == 2, "weight: expected a table of 2 dimensions, got ", b["weight"].meta());
        SymInt rows = b["weight"].size(0), padding = b.integer("padding_idx");
        b.require(padding.is_int() &&
                      (!rows.is_int() || (padding.as_int() >= -rows.as_int() && padding.as_int() < rows.as_int())),
                  "padding_idx: expected a row of ", b["weight"].meta(), ", got ", padding);
        if (padding.as_int() >= 0) return any_bag(b, padding);
        b.require(rows.is_int(),
                  "padding_idx: expected a number that is not negative for a table of unknown size, got ", padding);
        return any_bag(b, padding + rows);
      },
  });
  ops.add(embedding_bag_backward,
          {
              .schema = "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, "
                        "Tensor bag_size, Tensor maximum_indices, "
                        "SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? "
                        "per_sample_weights, int padding_idx=-1) -> Tensor",
              .meta =
                  [](MetaCall& m) {
                    m.supports(!m.flag("sparse"),
                               "sparse gradients are not supported; the dense one has the same values");
                    return backward_meta(m);
                  },
              .lower = lower_backward,
              .for_grad = table_gradient,
          });
  ops.add({
      .schema =
          "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor "
          "maximum_indices, SymInt "
          "num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
      .meta = backward_meta,
      .lower = lower_backward,
      .for_grad = table_gradient,
  });
  ops.add(sample_weights_backward,
          {
              .schema = "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor "
                        "offsets, Tensor offset2bag, int "
                        "mode, int padding_idx=-1) -> Tensor",
              .meta = [](MetaCall& m) -> Metas {
                const TensorMeta &g = m.meta("grad"), &w = m.meta("weight");
                m.require(m.constant("mode") == total, "per_sample_weights are for sums (mode 0), got mode ",
                          m.constant("mode"));
                m.require(g.rank() == 2 && w.rank() == 2 && g.dtype == w.dtype && is_floating(g.dtype) &&
                              g.sizes[1] == w.sizes[1],
                          "expected a gradient and a table of equally long rows, got ", g, " and ", w);
                for (const char* arg : {"indices", "offsets", "offset2bag"}) require_indices(m, arg);
                SymInt n = m.meta("indices").sizes[0], bags = m.meta("offset2bag").sizes[0];
                m.require(bags == n || bags == SymInt(0) || !n.is_int() || !bags.is_int(),
                          "offset2bag: expected one for each of ", n, " indices, got ", m.meta("offset2bag"));
                return like(g, {n});
              },
              .lower =
                  [](Lower& l) {
                    Ref grad = l["grad"], weight = l["weight"], indices = l["indices"];
                    int64_t padding = l.constant("padding_idx");
                    Ref bag = l["offset2bag"];
                    if (bag.size(0) == SymInt(0)) bag = bag_numbers(l, l["offsets"], indices.size(0));
                    Compute type = loop::compute_of(grad.dtype());
                    l.tensor([&](const Index& i) {
                      Expr row = indices.at(i), from = bag.at(i), inside = from < l.extent(grad.size(0));
                      if (padding >= 0) inside = inside && row != l.extent(padding);
                      return l.sum({grad.size(1)}, [&](const Index& d) {
                        return grad.at_if(inside, {from, d[0]}, l.constant(0, type)) * weight.at({row, d[0]});
                      });
                    });
                  },
              .for_grad = weights_gradient,
          });
}

}  // namespace tenon
