#include "tenon/ops/einsum.h"

#include <algorithm>
#include <map>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/diagonal.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/views.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle einsum, tensordot;

namespace {

/// x with `size` for one of its sizes, which must be that. What cannot be decided here, expand checks when it runs.
template <class... Parts>
Tensor with_size(Build& b, const Tensor& x, size_t dim, SymInt size, const Parts&... reason) {
  if (x.sizes()[dim] == size) return x;
  relies_on_equal(b, x.sizes()[dim], size, reason...);
  Sizes sizes = x.sizes();
  sizes[dim] = size;
  return expand(x, sizes);
}
/// Likewise where a size of 1 broadcasts.
template <class... Parts>
Tensor with_size_or_one(Build& b, const Tensor& x, size_t dim, SymInt size, const Parts&... reason) {
  return x.sizes()[dim] == SymInt(1) || size == SymInt(1) ? x : with_size(b, x, dim, size, reason...);
}

// Sums the product of two tensors whose dims are labelled: batch labels stay, shared ones are summed, the rest are
// outer.
struct Labelled {
  Tensor t;
  std::vector<int> labels;
};

Sizes sizes_of(const Labelled& x, const std::vector<int>& labels) {
  Sizes out;
  for (int label : labels) {
    auto at = std::find(x.labels.begin(), x.labels.end(), label);
    out.push_back(x.t.sizes()[static_cast<size_t>(at - x.labels.begin())]);
  }
  return out;
}

Tensor permuted(const Labelled& x, const std::vector<int>& order) {
  Sizes dims;
  bool same = true;
  for (size_t i = 0; i < order.size(); ++i) {
    auto at = std::find(x.labels.begin(), x.labels.end(), order[i]) - x.labels.begin();
    same = same && static_cast<size_t>(at) == i;
    dims.push_back(static_cast<int64_t>(at));
  }
  return same ? x.t : permute(x.t, dims);
}

bool has(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labelled summed_away(Labelled x, const std::vector<int>& keep) {
  Sizes dims;
  std::vector<int> left;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (has(keep, x.labels[i])) left.push_back(x.labels[i]);
    else dims.push_back(static_cast<int64_t>(i));
  }
  if (dims.empty()) return x;
  return {sum(x.t, dims), left};
}

// One product of the chain; `wanted` are the labels that are needed later.
Labelled contracted(Labelled a, Labelled b, const std::vector<int>& wanted) {
  std::vector<int> keep_a = wanted, keep_b = wanted;
  keep_a.insert(keep_a.end(), b.labels.begin(), b.labels.end());
  keep_b.insert(keep_b.end(), a.labels.begin(), a.labels.end());
  a = summed_away(std::move(a), keep_a);
  b = summed_away(std::move(b), keep_b);
  // A label of size 1 on one side broadcasts: it counts as absent there.
  auto drop_units = [](Labelled x, const Labelled& other) {
    std::vector<int> labels;
    Sizes sizes;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      auto at = std::find(other.labels.begin(), other.labels.end(), x.labels[i]);
      bool unit = x.t.sizes()[i] == SymInt(1) && at != other.labels.end() &&
                  !(other.t.sizes()[static_cast<size_t>(at - other.labels.begin())] == SymInt(1));
      if (unit) continue;
      labels.push_back(x.labels[i]);
      sizes.push_back(x.t.sizes()[i]);
    }
    if (labels.size() == x.labels.size()) return x;
    return Labelled{reshape(x.t, sizes), labels};
  };
  Labelled a2 = drop_units(a, b), b2 = drop_units(b, a);
  a = summed_away(a2, keep_a);
  b = summed_away(b2, keep_b);
  std::vector<int> batch, inner, left, right;
  for (int l : a.labels) (!has(b.labels, l) ? left : has(wanted, l) ? batch : inner).push_back(l);
  for (int l : b.labels)
    if (!has(a.labels, l)) right.push_back(l);
  // A label on one side only that is not wanted was summed (by an operand that dropped it): sum it here.
  auto unwanted = [&](const std::vector<int>& labels) {
    return std::any_of(labels.begin(), labels.end(), [&](int l) { return !has(wanted, l); });
  };
  if (unwanted(left)) {
    a = summed_away(a, [&] {
      std::vector<int> k = wanted;
      k.insert(k.end(), b.labels.begin(), b.labels.end());
      return k;
    }());
    std::erase_if(left, [&](int l) { return !has(wanted, l); });
  }
  if (unwanted(right)) {
    b = summed_away(b, [&] {
      std::vector<int> k = wanted;
      k.insert(k.end(), a.labels.begin(), a.labels.end());
      return k;
    }());
    std::erase_if(right, [&](int l) { return !has(wanted, l); });
  }
  std::vector<int> result = batch;
  result.insert(result.end(), left.begin(), left.end());
  result.insert(result.end(), right.begin(), right.end());
  Sizes nb = sizes_of(a, batch), nl = sizes_of(a, left), nk = sizes_of(a, inner), nr = sizes_of(b, right);
  std::vector<int> order_a = batch, order_b = batch;
  order_a.insert(order_a.end(), left.begin(), left.end());
  order_a.insert(order_a.end(), inner.begin(), inner.end());
  order_b.insert(order_b.end(), inner.begin(), inner.end());
  order_b.insert(order_b.end(), right.begin(), right.end());
  Tensor pa = permuted(a, order_a), pb = permuted(b, order_b);
  Sizes out = nb;
  for (SymInt s : nl) out.push_back(s);
  for (SymInt s : nr) out.push_back(s);
  if (inner.empty()) {  // no sum: a product of elements
    Sizes sa = nb, sb = nb;
    for (SymInt s : nl) sa.push_back(s);
    for (size_t i = 0; i < nr.size(); ++i) sa.push_back(1);
    for (size_t i = 0; i < nl.size(); ++i) sb.push_back(1);
    for (SymInt s : nr) sb.push_back(s);
    Tensor x = nr.empty() ? pa : reshape(pa, sa), y = nl.empty() ? pb : reshape(pb, sb);
    return {x * y, result};
  }
  Tensor x = reshape(pa, Sizes{count(nb), count(nl), count(nk)}),
         y = reshape(pb, Sizes{count(nb), count(nk), count(nr)});
  return {reshape(bmm(x, y), out), result};
}

// Labels of the dims of an ellipsis: below the letters', counted from the last dim.
constexpr int ellipsis_base = -1000;

struct Equation {
  std::vector<std::vector<int>> inputs;  // ellipsis as one marker
  std::vector<int> output;
  bool has_output = false;
};
constexpr int ellipsis = -1;

std::vector<int> parse_labels(const ArgsView& call, std::string_view part) {
  std::vector<int> out;
  for (size_t i = 0; i < part.size(); ++i) {
    char c = part[i];
    if (c == ' ') continue;
    if (c == '.') {
      call.require(i + 2 < part.size() && part[i + 1] == '.' && part[i + 2] == '.' && !has(out, ellipsis),
                   "a lone '.' in the equation ", quoted(call.string("equation")));
      out.push_back(ellipsis);
      i += 2;
      continue;
    }
    call.require((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'),
                 "expected letters, '...', ',' and '->' in the equation, got ", quoted(call.string("equation")));
    out.push_back(c);
  }
  return out;
}

Equation parse_equation(const ArgsView& call) {
  std::string_view text = call.string("equation");
  Equation e;
  size_t arrow = text.find("->");
  if (arrow != std::string_view::npos) {
    e.has_output = true;
    e.output = parse_labels(call, text.substr(arrow + 2));
    text = text.substr(0, arrow);
  }
  for (const std::string& part : split(text, ',')) e.inputs.push_back(parse_labels(call, part));
  return e;
}

Results contract_all(Build& b) {
  Equation e = parse_equation(b);
  std::vector<Tensor> tensors = b.tensors("tensors");
  b.require(!tensors.empty() && e.inputs.size() == tensors.size(), "the equation has ", e.inputs.size(),
            " operands, got ", tensors.size(), " tensors");
  size_t spread = 0;  // dims of the longest ellipsis
  for (size_t i = 0; i < tensors.size(); ++i) {
    bool open = has(e.inputs[i], ellipsis);
    size_t named = e.inputs[i].size() - open;
    b.require(open ? tensors[i].rank() >= named : tensors[i].rank() == named, "operand ", i, " has ", named, " labels",
              open ? " and '...'" : "", ", got ", tensors[i].meta());
    if (open) spread = std::max(spread, tensors[i].rank() - named);
  }
  auto expanded = [&](const std::vector<int>& labels, size_t dots) {
    std::vector<int> out;
    for (int l : labels) {
      if (l != ellipsis) out.push_back(l);
      else
        for (size_t k = 0; k < dots; ++k) out.push_back(ellipsis_base - static_cast<int>(dots - 1 - k));
    }
    return out;
  };
  std::vector<Labelled> operands;
  std::map<int, int> uses;
  for (size_t i = 0; i < tensors.size(); ++i) {
    size_t dots = has(e.inputs[i], ellipsis) ? tensors[i].rank() - (e.inputs[i].size() - 1) : 0;
    Labelled x{tensors[i], expanded(e.inputs[i], dots)};
    for (int l : x.labels)
      if (l >= 0) ++uses[l];
    for (size_t d = 0; d < x.labels.size(); ++d)  // a label twice is a diagonal
      for (size_t k = d + 1; k < x.labels.size();) {
        if (x.labels[k] != x.labels[d]) {
          ++k;
          continue;
        }
        int label = x.labels[d];
        x.t = with_size(b, x.t, k, x.t.sizes()[d], "label '", std::string(1, static_cast<char>(label)), "' has sizes ",
                        x.t.sizes()[d], " and ", x.t.sizes()[k], " in operand ", i);
        x.t = movedim(diagonal(x.t, 0, d, k), Sizes{-1}, Sizes{SymInt(static_cast<int64_t>(d))});
        x.labels.erase(x.labels.begin() + static_cast<ptrdiff_t>(k));
      }
    operands.push_back(std::move(x));
  }
  std::vector<int> output;
  if (e.has_output) {
    output = expanded(e.output, spread);
    for (size_t i = 0; i < output.size(); ++i) {
      b.require(std::find(output.begin() + static_cast<ptrdiff_t>(i) + 1, output.end(), output[i]) == output.end(),
                "a label appears twice in the output of ", quoted(b.string("equation")));
      b.require(output[i] < 0 || uses.count(output[i]), "the output label '",
                std::string(1, static_cast<char>(output[i])), "' is in no operand");
    }
  } else {
    output = expanded({ellipsis}, spread);
    // Upper case before lower case, as the letters are numbered; those used once.
    for (auto [label, n] : uses)
      if (n == 1) output.push_back(label);
  }
  std::map<int, SymInt> sizes;
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t d = 0; d < operands[i].labels.size(); ++d) {
      SymInt s = operands[i].t.sizes()[d];
      auto [it, fresh] = sizes.emplace(operands[i].labels[d], s);
      if (fresh) continue;
      operands[i].t = with_size_or_one(b, operands[i].t, d, it->second, "sizes ", it->second, " and ", s,
                                       " of one label do not fit in ", quoted(b.string("equation")));
      if (it->second == SymInt(1)) it->second = s;
    }
  Labelled result = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    std::vector<int> wanted = output;
    for (size_t k = i + 1; k < operands.size(); ++k)
      wanted.insert(wanted.end(), operands[k].labels.begin(), operands[k].labels.end());
    result = contracted(std::move(result), operands[i], wanted);
  }
  result = summed_away(std::move(result), output);
  // Labels of an ellipsis that no operand has left are dims of size 1.
  for (int l : output)
    if (!has(result.labels, l)) {
      result.t = unsqueeze(result.t, 0);
      result.labels.insert(result.labels.begin(), l);
    }
  return one(permuted(result, output));
}

Results tensordotted(Build& b) {
  Tensor x = b["self"], y = b["other"];
  Sizes dx = b.ints("dims_self"), dy = b.ints("dims_other");
  b.require(dx.size() == dy.size(), "expected as many dims on both sides, got ", dx, " and ", dy);
  Labelled a{x, {}}, c{y, {}};
  for (size_t i = 0; i < x.rank(); ++i) a.labels.push_back(static_cast<int>(i));
  for (size_t i = 0; i < y.rank(); ++i) c.labels.push_back(static_cast<int>(1000 + i));
  std::vector<int> wanted;
  for (size_t i = 0; i < dx.size(); ++i) {
    size_t p = normal_dim(dx[i].as_int(), x.rank()), q = normal_dim(dy[i].as_int(), y.rank());
    c.t = with_size_or_one(b, c.t, q, x.sizes()[p], "dimension ", p, " of ", x.meta(), " and ", q, " of ", y.meta(),
                           " differ");
    c.labels[q] = a.labels[p];
  }
  for (int l : a.labels)
    if (!has(c.labels, l)) wanted.push_back(l);
  for (int l : c.labels)
    if (!has(a.labels, l)) wanted.push_back(l);
  Labelled r = contracted(a, c, wanted);
  return one(permuted(r, wanted));
}

Results kron(Build& b) {
  Tensor x = b["self"], y = b["other"];
  size_t rank = std::max(x.rank(), y.rank());
  Sizes sx, sy, out;
  for (size_t i = 0; i < rank; ++i) {
    SymInt p = i + x.rank() < rank ? SymInt(1) : x.sizes()[i + x.rank() - rank],
           q = i + y.rank() < rank ? SymInt(1) : y.sizes()[i + y.rank() - rank];
    sx.push_back(p);
    sx.push_back(1);
    sy.push_back(1);
    sy.push_back(q);
    out.push_back(p * q);
  }
  Tensor left = reshape(x, sx), right = reshape(y, sy);
  return view(left * right, out);
}

}  // namespace

void register_einsum(Registry& ops) {
  ops.add(tensordot, {
                         .schema = "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
                         .kind = OpKind::composite,
                         .decompose = tensordotted,
                     });
  ops.add(einsum, {
                      .schema = "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
                      .kind = OpKind::composite,
                      .traits = {.may_alias = true},
                      .decompose = contract_all,
                  });
  ops.add({
      .schema = "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {  // out[n, o] = sum_ij x[n, i] w[o, i, j] y[n, j]
            Tensor x = b["input1"], y = b["input2"], w = b["weight"];
            b.require(w.rank() == 3 && x.rank() == y.rank() && x.rank() >= 1,
                      "expected a weight of 3 dimensions and inputs of equal ranks, got ", w.meta(), ", ", x.meta(),
                      " and ", y.meta());
            for (auto [size, wanted] : {std::pair(x.size(-1), w.size(1)), {y.size(-1), w.size(2)}})
              relies_on_equal(b, size, wanted, "the inputs ", x.meta(), " and ", y.meta(), " do not fit the weight ",
                              w.meta());
            Sizes sizes = x.sizes();
            sizes.back() = w.size(0);
            SymInt n = count(Sizes(std::span<const SymInt>(x.sizes().begin(), x.rank() - 1)));
            Tensor flat_x = reshape(x, Sizes{n, x.size(-1)}), flat_y = reshape(y, Sizes{n, y.size(-1)});
            Tensor inner =
                reshape(mm(flat_x, reshape(permute(w, Sizes{1, 0, 2}), Sizes{w.size(1), w.size(0) * w.size(2)})),
                        Sizes{n, w.size(0), w.size(2)});
            Tensor out = reshape(bmm(inner, unsqueeze(flat_y, 2)), sizes);
            return one(b.given("bias") ? out + b["bias"] : out);
          },
  });
  ops.add({
      .schema =
          "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, "
          "int unroll_dim=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {  // the product of three tensors with dimensions inserted, summed over some
            size_t rank = b["i1"].rank() + b.ints("expand1").size();
            b.require(rank <= 26, "expected at most 26 dimensions, got ", rank);
            b.dim("unroll_dim", rank);
            auto marked = [&](const char* list) {
              std::vector<bool> out(rank);
              if (!b.ints(list).empty())
                for (size_t dim : b.dims(list, rank)) out[dim] = true;
              return out;
            };
            auto letters = [&](const std::vector<bool>& without) {
              std::string out;
              for (size_t d = 0; d < rank; ++d)
                if (!without[d]) out += static_cast<char>('a' + d);
              return out;
            };
            std::vector<Tensor> tensors = {b["i1"], b["i2"], b["i3"]};
            const char* inserted[] = {"expand1", "expand2", "expand3"};
            std::string equation;
            for (size_t i = 0; i < 3; ++i) {
              b.require(tensors[i].dtype() != DType::boolean && tensors[i].rank() + b.ints(inserted[i]).size() == rank,
                        "expected tensors of numbers of ", rank, " dimensions with those added, got ",
                        tensors[i].meta(), " and ", b.ints(inserted[i]));
              equation += (i ? "," : "") + letters(marked(inserted[i]));
            }
            equation += "->" + letters(marked("sumdim"));
            return one(contiguous(einsum(equation, tensors)));
          },
  });
  ops.add({
      .schema = "kron(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::composite,
      .decompose = kron,
  });
}

}  // namespace tenon
