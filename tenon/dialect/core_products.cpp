// Products of many kinds as PyTorch writes them in the core dialect: permutations, views, mm and bmm, call by call.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <unordered_map>

#include "tenon/dialect/parts.h"
#include "tenon/dialect/rules.h"

namespace tenon::dialect {
namespace {

SymInt product(const Sizes& sizes) {
  SymInt out = 1;
  for (SymInt size : sizes) out = out * size;
  return out;
}

Sizes picked(const Tensor& x, const Sizes& dims) {
  Sizes out;
  for (SymInt dim : dims) out.push_back(x.size(dim.as_int()));
  return out;
}

// Sums over dimensions of two tensors in pairs. Dimensions are written as they were given, also from the end.
Results contracted(const Tensor& x, const Tensor& y, const Sizes& of_x, const Sizes& of_y) {
  auto left_over = [](const Tensor& t, const Sizes& summed) {
    Sizes out;
    for (size_t d = 0; d < t.rank(); ++d) {
      auto is_dim = [&](SymInt s) { return normal_dim(s.as_int(), t.rank()) == d; };
      if (std::none_of(summed.begin(), summed.end(), is_dim)) out.push_back(static_cast<int64_t>(d));
    }
    return out;
  };
  for (size_t i = 0; i < of_x.size(); ++i)
    if (x.size(of_x[i].as_int()) != y.size(of_y[i].as_int())) return {};
  Sizes free_x = left_over(x, of_x), free_y = left_over(y, of_y);
  Sizes sizes = joined(picked(x, free_x), picked(y, free_y));
  SymInt summed = product(picked(x, of_x));
  if (free_x.empty() && free_y.empty()) {
    Tensor left = aten("permute", x, of_x), right = aten("permute", y, of_y);
    if (of_x.size() != 1) {
      right = aten("reshape", right, Sizes{summed});
      left = aten("reshape", left, Sizes{summed});
    }
    return aten("view", aten("dot", left, right), sizes);
  }
  Tensor left = aten("permute", x, joined(free_x, of_x));
  left = aten("reshape", left, Sizes{product(picked(x, free_x)), summed});
  Tensor right = aten("permute", y, joined(of_y, free_y));
  right = aten("reshape", right, Sizes{summed, product(picked(y, free_y))});
  return aten("reshape", aten("mm", left, right), sizes);
}

Results kronecker(Build& b) {
  Tensor x = b["self"], y = b["other"];
  size_t rank = std::max(x.rank(), y.rank());
  Sizes of_x, of_y, sizes;
  auto size = [&](const Tensor& t, size_t d) {
    return d + t.rank() < rank ? SymInt(1) : t.sizes()[d + t.rank() - rank];
  };
  for (size_t d = 0; d < rank; ++d) {
    of_x = joined(of_x, {size(x, d), SymInt(1)});
    of_y = joined(of_y, {SymInt(1), size(y, d)});
    sizes.push_back(size(x, d) * size(y, d));
  }
  Tensor left = aten("reshape", x, of_x), right = aten("reshape", y, of_y);
  return aten("reshape", aten("mul.Tensor", left, right), sizes);
}

// One product of sums: both operands have the same dimensions, those of one element where they lack one. The dimensions
// that are summed stay, with one element.
Tensor product_of_a_pair(Tensor x, Tensor y, const std::vector<bool>& summed) {
  Sizes batch, of_x, of_y, sums;
  for (size_t d = 0; d < summed.size(); ++d) {
    auto dim = static_cast<int64_t>(d);
    bool in_x = x.sizes()[d] != SymInt(1), in_y = y.sizes()[d] != SymInt(1);
    if (summed[d]) {
      if (in_x && in_y) sums.push_back(dim);
      else if (in_x) x = aten("sum.dim_IntList", x, Sizes{dim}, true);
      else if (in_y) y = aten("sum.dim_IntList", y, Sizes{dim}, true);
      continue;
    }
    (in_x && in_y ? batch : in_x ? of_x : of_y).push_back(dim);
  }
  if (sums.empty()) return aten("mul.Tensor", x, y);
  for (size_t d = 0; d < summed.size(); ++d)  // what was summed before goes with the dimensions of one element
    if (auto dim = SymInt(static_cast<int64_t>(d)); summed[d] && std::find(sums.begin(), sums.end(), dim) == sums.end())
      of_y.push_back(dim);
  Sizes out_sizes = joined(picked(x, batch), picked(x, of_x));
  for (size_t i = 0; i < sums.size(); ++i) out_sizes.push_back(1);
  out_sizes = joined(out_sizes, picked(y, of_y));
  SymInt batches = product(picked(x, batch)), total = product(picked(x, sums));
  Tensor left = aten("permute", x, joined(joined(batch, of_x), joined(sums, of_y)));
  left = aten("reshape", left, Sizes{batches, product(picked(x, of_x)), total});
  Tensor right = aten("permute", y, joined(joined(batch, sums), joined(of_y, of_x)));
  right = aten("reshape", right, Sizes{batches, total, product(picked(y, of_y))});
  Tensor made = aten("view", aten("bmm", left, right), out_sizes);
  Sizes order = joined(joined(batch, of_x), joined(sums, of_y)), back(order.size(), SymInt(0));
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i].as_int())] = static_cast<int64_t>(i);
  return aten("permute", made, back);
}

// Subscripts without dots: each label a dimension, those of the result first, the others in alphabetical order.
Results subscripts(Build& b) {
  auto* equation = b.arg("equation").get<std::string>();
  std::vector<Tensor> operands = b.tensors("tensors");
  if (!equation || b.given("path") || operands.empty() || operands.size() > 2) return {};
  std::string text;
  for (char c : *equation)
    if (c != ' ') text += c;
  size_t arrow = text.find("->");
  if (text.find('.') != text.npos || arrow == text.npos) return {};
  std::string result = text.substr(arrow + 2), order = result, all;
  std::vector<std::string> labels = split(text.substr(0, arrow), ',');
  if (labels.size() != operands.size()) return {};
  for (const std::string& each : labels) all += each;
  std::sort(all.begin(), all.end());
  for (char c : all)
    if (order.find(c) == order.npos) order += c;
  for (size_t i = 0; i < operands.size(); ++i) {
    Tensor x = operands[i];
    std::string mine = labels[i];
    std::string sorted = mine;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return {};  // a diagonal
    Sizes dims;
    for (char c : order) {
      size_t at = mine.find(c);
      if (at == mine.npos) {
        x = aten("unsqueeze", x, static_cast<int64_t>(mine.size()));
        at = mine.size();
        mine += '\0';
      }
      dims.push_back(static_cast<int64_t>(at));
    }
    operands[i] = aten("permute", x, dims);
  }
  Sizes summed_dims;
  for (size_t d = result.size(); d < order.size(); ++d) summed_dims.push_back(static_cast<int64_t>(d));
  if (operands.size() == 1)
    return summed_dims.empty() ? one(operands[0]) : aten("sum.dim_IntList", operands[0], summed_dims);
  std::vector<bool> summed(order.size());
  for (SymInt d : summed_dims) summed[static_cast<size_t>(d.as_int())] = true;
  Tensor made = product_of_a_pair(operands[0], operands[1], summed);
  if (summed_dims.empty()) return one(made);
  return aten("view", made, first_of(made.sizes(), result.size()));
}

Results softmax_of_masked(const Tensor& x, int64_t dim) {
  Tensor soft = aten("_softmax", x, dim, false);
  Tensor masked = aten("eq.Scalar", x, -std::numeric_limits<double>::infinity());
  Tensor open = aten("any.dim", aten("logical_not", masked), dim, true);
  Tensor closed = aten("logical_not", open);
  return aten("where.self", closed, aten("zeros_like", soft), soft);
}

Results attention(Build& b) {
  Tensor q = b["query"], k = b["key"], v = b["value"];
  if (!is_full_float(q) || b.number("dropout_p") != 0 || !q.sizes().back().is_int()) return {};
  double scale = b.given("scale") ? b.number("scale") : 1 / std::sqrt(static_cast<double>(q.sizes().back().as_int()));
  double factor = std::sqrt(scale);
  Tensor mask;
  auto additive = [&](const Tensor& open) {
    Tensor lowest = aten("scalar_tensor", -std::numeric_limits<double>::infinity(), kw("dtype", q.dtype()), device(q));
    return Tensor(aten("where.self", open, scalar_of(0.0, q), lowest));
  };
  if (b.given("attn_mask")) {
    mask = b["attn_mask"];
    if (mask.dtype() == DType::boolean) mask = additive(mask);
  }
  Tensor queries = aten("mul.Scalar", q, factor);
  if (b.flag("is_causal")) {
    Tensor all =
        aten("full", Sizes{q.size(-2), k.size(-2)}, true, kw("dtype", DType::boolean), layout(), device(q), unpinned());
    mask = additive(aten("tril", all));
  }
  Tensor keys = aten("mul.Scalar", aten("transpose.int", k, -2, -1), factor);
  Tensor scores = aten("matmul", queries, keys);
  if (mask) scores = aten("add.Tensor", scores, mask);
  Tensor weights = softmax_of_masked(scores, -1);
  Tensor out = aten("matmul", weights, v);
  Tensor rows_first = aten("clone", aten("permute", out, Sizes{2, 0, 1, 3}), contiguous_format());
  return {{CallArg(Tensor(aten("permute", rows_first, Sizes{1, 2, 0, 3}))), CallArg(weights)}};
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::tensordot",
       [](Build& b) { return contracted(b["self"], b["other"], b.ints("dims_self"), b.ints("dims_other")); }},
      {"aten::inner",
       [](Build& b) {
         Tensor x = b["self"], y = b["other"];
         if (x.rank() == 0 || y.rank() == 0) return aten("mul.Tensor", x, y);
         return contracted(x, y, {-1}, {-1});
       }},
      {"aten::kron", kronecker},
      {"aten::einsum", subscripts},
      {"aten::addr",
       [](Build& b) -> Results {
         Tensor x = b["self"], column = b["vec1"], row = b["vec2"];
         if (!is_floating(x.dtype()) || b.number("beta") == 0) return {};
         Tensor wide = aten("expand", x, Sizes{column.size(0), row.size(0)});
         Tensor kept = aten("mul.Tensor", wide, b.arg("beta"));
         Tensor added = aten("mul.Tensor", aten("outer", column, row), b.arg("alpha"));
         return aten("add.Tensor", kept, added);
       }},
      {"aten::bilinear",
       [](Build& b) -> Results {
         Tensor x = b["input1"], y = b["input2"], weight = b["weight"];
         if (!is_contiguous(x.meta()) || !is_contiguous(y.meta())) return {};
         Sizes sizes = x.sizes();
         sizes.back() = weight.sizes()[0];
         Tensor left = aten("view", x, Sizes{-1, x.sizes().back()}),
                right = aten("view", y, Sizes{-1, y.sizes().back()});
         Tensor made = aten("_trilinear", left, weight, right, Sizes{1, 3}, Sizes{0}, Sizes{1, 2}, Sizes{2, 3});
         made = aten("view", made, sizes);
         return b.given("bias") ? aten("add.Tensor", made, b["bias"]) : one(made);
       }},
      {"aten::_safe_softmax",
       [](Build& b) -> Results {
         if (b.given("dtype") || !is_full_float(b["self"])) return {};
         return softmax_of_masked(b["self"], b.constant("dim"));
       }},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
  };
  return all;
}

}  // namespace

Rule product_rule(std::string_view op) {
  auto at = rules().find(op);
  return at == rules().end() ? nullptr : at->second;
}

}  // namespace tenon::dialect
