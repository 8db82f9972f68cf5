// Losses and distances as PyTorch writes them in the core dialect, call by call.
#include <numbers>
#include <unordered_map>

#include "tenon/dialect/parts.h"
#include "tenon/dialect/rules.h"

namespace tenon::dialect {
namespace {

Tensor filled_like(const Tensor& x, const CallArg& value) { return aten("fill.Scalar", aten("empty_like", x), value); }

Tensor chosen(std::string_view compare, const Tensor& target, int64_t number, const Tensor& value,
              const Tensor& zeros) {
  Tensor here = aten(compare, target, number);
  return aten("where.self", here, value, zeros);
}

Results cosine_loss(Build& b) {
  constexpr double least = 9.999999960041972e-13;  // 1e-12 of float
  Tensor x = b["input1"], y = b["input2"], target = b["target"];
  auto dim = static_cast<int64_t>(target.rank());
  auto summed = [&](const Tensor& t) { return Tensor(aten("sum.dim_IntList", t, Sizes{dim})); };
  Tensor both = summed(aten("mul.Tensor", x, y));
  Tensor of_x = aten("add.Scalar", summed(aten("mul.Tensor", x, x)), least);
  Tensor of_y = aten("add.Scalar", summed(aten("mul.Tensor", y, y)), least);
  Tensor cosine = aten("div.Tensor", both, aten("sqrt", aten("mul.Tensor", of_x, of_y)));
  Tensor zeros = aten("zeros_like", cosine, contiguous_format());
  Tensor equal = aten("sub.Tensor", filled_like(cosine, 1), cosine);
  Tensor other = aten("clamp_min", aten("sub.Scalar", cosine, b.arg("margin")), 0);
  Tensor left = chosen("eq.Scalar", target, 1, equal, zeros), right = chosen("eq.Scalar", target, -1, other, zeros);
  return reduced(aten("add.Tensor", left, right), b.constant("reduction"));
}

Results hinge_loss(Build& b) {
  Tensor x = b["self"], target = b["target"];
  Tensor zeros = aten("zeros_like", x, contiguous_format());
  Tensor away = aten("clamp_min", aten("sub.Tensor", filled_like(x, b.arg("margin")), x), 0);
  Tensor left = chosen("ne.Scalar", target, 1, away, zeros), right = chosen("ne.Scalar", target, -1, x, zeros);
  return reduced(aten("add.Tensor", left, right), b.constant("reduction"));
}

Results cosine_of(Build& b) {
  Tensor x = b["x1"], y = b["x2"];
  if (x.sizes() != y.sizes() || x.dtype() != y.dtype() || !is_full_float(x)) return {};
  Sizes dims = {b.integer("dim")};
  auto length = [&](const Tensor& t) { return Tensor(aten("clone", aten("linalg_vector_norm", t, 2, dims, true))); };
  Tensor of_x = length(x), of_y = length(y);
  Tensor least = aten("scalar_tensor", b.arg("eps"), kw("dtype", x.dtype()), device(x));
  of_x = aten("clamp_min.Tensor", of_x, least);
  of_y = aten("clamp_min.Tensor", of_y, least);
  Tensor right = aten("div.Tensor", y, of_y), left = aten("div.Tensor", x, of_x);
  return aten("sum.dim_IntList", aten("mul.Tensor", left, right), dims);
}

Results distance(Build& b) {
  Tensor x = b["x1"], y = b["x2"];
  auto last = static_cast<int64_t>(std::max(x.rank(), y.rank())) - 1;
  if (last < 0) return {};
  Tensor away = aten("add.Scalar", aten("sub.Tensor", x, y), b.arg("eps"));
  return aten("linalg_vector_norm", away, b.number("p"), Sizes{last}, b.arg("keepdim"));
}

Results triplet_loss(Build& b) {
  if (b.flag("swap")) return {};
  auto between = [&](const char* other) {
    return Tensor(aten("pairwise_distance", b["anchor"], b[other], b.arg("p"), b.arg("eps")));
  };
  Tensor near = between("positive"), far = between("negative");
  Tensor loss = aten("sub.Tensor", aten("add.Scalar", near, b.arg("margin")), far);
  return reduced(aten("clamp_min", loss, 0), b.constant("reduction"));
}

Results poisson_loss(Build& b) {
  Tensor x = b["input"], target = b["target"], loss;
  if (b.flag("log_input")) {
    Tensor product = aten("mul.Tensor", target, x);
    loss = aten("sub.Tensor", aten("exp", x), product);
  } else {
    Tensor log = aten("log", aten("add.Scalar", x, b.arg("eps")));
    loss = aten("sub.Tensor", x, aten("mul.Tensor", target, log));
  }
  if (b.flag("full")) {
    Tensor half = aten("mul.Scalar", aten("log", aten("mul.Scalar", target, 2 * std::numbers::pi)), 0.5);
    Tensor most = aten("sub.Tensor", aten("mul.Tensor", target, aten("log", target)), target);
    Tensor stirling = aten("add.Tensor", most, half);
    Tensor small = aten("le.Scalar", target, 1);
    loss = aten("add.Tensor", loss, aten("masked_fill.Scalar", stirling, small, 0));
  }
  return reduced(loss, b.constant("reduction"));
}

Results margin_of_classes(Build& b) {
  Tensor x = b["self"], target = b["target"];
  if (b.given("weight") || (b.number("p") != 1 && b.number("p") != 2)) return {};
  x = aten("atleast_2d", x);
  target = aten("atleast_1d", target);
  Tensor column = aten("unsqueeze", target, 1);
  Tensor right = aten("gather", x, 1, column);
  Tensor away = aten("clamp_min", aten("add.Tensor", aten("rsub.Scalar", right, b.arg("margin")), x), 0);
  if (b.number("p") == 2) away = aten("mul.Tensor", away, away);
  Tensor classes = aten("arange", x.size(1), device(x), unpinned());
  Tensor other = aten("ne.Tensor", classes, column);
  Tensor loss = aten("where.ScalarOther", other, away, 0);
  if (b.constant("reduction") == 1) return aten("mean", loss);
  Tensor each = b.constant("reduction") == 2 ? aten("sum", loss) : aten("sum.dim_IntList", loss, Sizes{1});
  return aten("div.Tensor", each, loss.size(1));
}

Results margin_of_labels(Build& b) {
  Tensor x = aten("atleast_2d", b["self"]), target = aten("atleast_2d", b["target"]);
  SymInt classes = x.size(1);
  Tensor numbers = range_of(classes, x);
  auto where = [](const Tensor& here, const Tensor& value, const CallArg& other) {
    return Tensor(aten("where.self", here, value, scalar_of(other, value)));
  };
  Tensor ends = aten("amin", where(aten("eq.Scalar", target, -1), numbers, classes), Sizes{-1}, true);
  Tensor named = aten("lt.Tensor", numbers, ends);
  Tensor picked = aten("gather", x, -1, where(named, target, 0));
  Tensor labels = aten("unsqueeze", where(named, target, -1), -1);
  Tensor is_target = aten("any.dim", aten("eq.Tensor", numbers, labels), 1);
  Tensor scores = aten("unsqueeze", aten("t", picked), -1);
  Tensor away = aten("clamp_min", aten("add.Tensor", aten("sub.Tensor", 1.0, scores), x), 0);
  away = aten("div.Tensor", away, classes);
  away = aten("where.self", is_target, scalar_of(0, away), away);
  Tensor counted = aten("unsqueeze", aten("t", named), -1);
  Tensor loss = where(counted, away, 0);
  int64_t how = b.constant("reduction");
  Tensor out = how == 2 ? aten("sum", loss) : aten("sum.dim_IntList", loss, Sizes{0, -1});
  if (how == 1) out = aten("mean", out);
  // Of one sample it is a number, as PyTorch's kernel has it and its decomposition has not.
  if (how == 0 && b["self"].rank() == 1) out = aten("squeeze.dims", out, Sizes{0});
  Tensor marks = aten("_to_copy", is_target, kw("dtype", x.dtype()));
  marks = aten("view", marks, b["target"].sizes());
  return {{CallArg(out), CallArg(marks)}};
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::cosine_embedding_loss", cosine_loss},
      {"aten::hinge_embedding_loss", hinge_loss},
      {"aten::cosine_similarity", cosine_of},
      {"aten::pairwise_distance", distance},
      {"aten::triplet_margin_loss", triplet_loss},
      {"aten::poisson_nll_loss", poisson_loss},
      {"aten::margin_ranking_loss",
       [](Build& b) {
         Tensor away = aten("sub.Tensor", b["input1"], b["input2"]);
         Tensor signed_away = aten("mul.Tensor", aten("neg", b["target"]), away);
         Tensor loss = aten("clamp_min", aten("add.Scalar", signed_away, b.arg("margin")), 0);
         return reduced(loss, b.constant("reduction"));
       }},
      {"aten::multi_margin_loss", margin_of_classes},
      {"aten::multilabel_margin_loss",
       [](Build& b) {
         return one(aten("multilabel_margin_loss_forward", b["self"], b["target"], b.arg("reduction"))[0]);
       }},
      {"aten::multilabel_margin_loss_forward", margin_of_labels},
  };
  return all;
}

}  // namespace

Rule loss_rule(std::string_view op) {
  auto at = rules().find(op);
  return at == rules().end() ? nullptr : at->second;
}

}  // namespace tenon::dialect
