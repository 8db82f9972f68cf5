// Differences, sums and statistics as PyTorch writes them in the core dialect, call by call.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <unordered_map>

#include "tenon/dialect/parts.h"
#include "tenon/dialect/rules.h"

namespace tenon::dialect {
namespace {

Tensor all_but_last(const Tensor& x, int64_t dim) { return aten("slice.Tensor", x, dim, 0, -1); }
Tensor all_but_first(const Tensor& x, int64_t dim) { return aten("slice.Tensor", x, dim, 1); }

// The means of neighbours, times how far they are apart; twice that.
Results trapezoids(Build& b, std::string_view sum) {
  Tensor y = b["y"], x = b["x"];
  if (x.rank() > y.rank() || y.rank() == 0 || x.rank() == 0) return {};
  size_t rank = y.rank(), dim = b.dim("dim", rank);
  auto d = static_cast<int64_t>(dim);
  if (x.rank() < rank) {
    Sizes sizes(rank, SymInt(1));
    if (x.rank() == 1) sizes[dim] = x.sizes()[0];
    else std::copy(x.sizes().begin(), x.sizes().end(), sizes.begin() + (rank - x.rank()));
    x = aten("view", x, sizes);
  }
  Tensor from = all_but_last(x, d), to = all_but_first(x, d);
  Tensor width = aten("sub.Tensor", to, from);
  Tensor left = all_but_last(y, d), right = all_but_first(y, d);
  Tensor areas = aten("mul.Tensor", aten("add.Tensor", left, right), width);
  Tensor total = sum == "cumsum" ? aten("cumsum", areas, d) : aten("sum.dim_IntList", areas, Sizes{d});
  return aten("div.Scalar", total, 2.0);
}

Results central_differences(Build& b) {
  Tensor x = b["self"];
  if (b.constant("edge_order") != 1) return {};
  double spacing = b.given("spacing") ? b.number("spacing") : 1.0;
  std::vector<size_t> dims;
  if (b.given("dim")) dims.push_back(b.dim("dim", x.rank()));
  else
    for (size_t d = 0; d < x.rank(); ++d) dims.push_back(d);
  std::vector<Tensor> out;
  for (size_t each : dims) {
    auto dim = static_cast<int64_t>(each);
    auto change = [&](auto... bounds) {  // from the first piece to the second
      Sizes at = {SymInt(bounds)...};
      auto piece = [&](size_t i) {
        return Tensor(at[i + 1] == SymInt(0) ? aten("slice.Tensor", x, dim, at[i])
                                             : aten("slice.Tensor", x, dim, at[i], at[i + 1]));
      };
      Tensor first = piece(0), second = piece(2);
      return Tensor(aten("div.Scalar", aten("sub.Tensor", second, first), spacing));
    };
    Tensor middle = change(0, -2, 2, 0), front = change(0, 1, 1, 2), back = change(-2, -1, -1, 0);
    middle = aten("div.Scalar", middle, 2);
    out.push_back(aten("cat", std::vector{front, middle, back}, dim));
  }
  return many(std::move(out));
}

Results near(Build& b) {
  Tensor x = b["self"], y = b["other"];
  if (!is_floating(x.dtype()) || !is_floating(y.dtype()) || b.flag("equal_nan")) return {};
  Tensor equal = aten("eq.Tensor", x, y);
  if (b.number("rtol") == 0 && b.number("atol") == 0) return one(equal);
  Tensor allowed = aten("add.Scalar", aten("abs", aten("mul.Scalar", y, b.arg("rtol"))), b.arg("atol"));
  Tensor away = aten("abs", aten("sub.Tensor", x, y));
  Tensor finite = aten("isfinite", away);
  Tensor within = aten("bitwise_and.Tensor", finite, aten("le.Tensor", away, allowed));
  return aten("bitwise_or.Tensor", equal, within);
}

Results mean_of_numbers(Build& b) {
  Tensor x = b["self"];
  if (!is_floating(x.dtype()) || b.given("dtype")) return {};
  Tensor bare = aten("detach", x);
  Tensor known = aten("logical_not", aten("ne.Tensor", bare, bare));
  Tensor count = aten("sum.dim_IntList", known, b.arg("dim"), b.arg("keepdim"));
  return aten("div.Tensor", aten("nansum", x, b.arg("dim"), b.arg("keepdim")), count);
}

// The form with one number is the form with a tensor of it.
Results at_one_quantile(Build& b, std::string_view op) {
  Tensor x = b["self"];
  return aten(op, x, scalar_of(b.arg("q"), x), b.arg("dim"), b.arg("keepdim"),
              kw("interpolation", b.arg("interpolation")));
}

Results by_root_mean_square(Build& b) {
  Tensor x = b["input"];
  bool low = is_half(x.dtype());
  if (!is_full_float(x) && !low) return {};
  Tensor wide = low ? Tensor(aten("_to_copy", x, kw("dtype", DType::f32))) : x;
  Sizes dims;
  for (size_t i = 0; i < b.ints("normalized_shape").size(); ++i) dims.push_back(static_cast<int64_t>(x.rank() - 1 - i));
  double eps = b.given("eps")            ? b.number("eps")
               : x.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                         : static_cast<double>(std::numeric_limits<float>::epsilon());
  Tensor mean = aten("mean.dim", aten("pow.Tensor_Scalar", wide, 2), dims, true);
  Tensor out = aten("mul.Tensor", wide, aten("rsqrt", aten("add.Scalar", mean, eps)));
  if (b.given("weight")) out = aten("mul.Tensor", out, b["weight"]);
  return low ? aten("_to_copy", out, kw("dtype", x.dtype()), layout(), device(x)) : one(out);
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::trapezoid.x", [](Build& b) { return trapezoids(b, "sum"); }},
      {"aten::trapz.x", [](Build& b) { return trapezoids(b, "sum"); }},
      {"aten::cumulative_trapezoid.x", [](Build& b) { return trapezoids(b, "cumsum"); }},
      {"aten::gradient.scalarint", central_differences},
      {"aten::diff",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (b.constant("n") != 0) return {};
         return aten("copy", aten("zeros_like", x), x);
       }},
      {"aten::isclose", near},
      {"aten::nanmean", mean_of_numbers},
      {"aten::quantile.scalar", [](Build& b) { return at_one_quantile(b, "quantile"); }},
      {"aten::nanquantile.scalar", [](Build& b) { return at_one_quantile(b, "nanquantile"); }},
      {"aten::rms_norm", by_root_mean_square},
      {"aten::renorm",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (!is_full_float(x)) return {};
         Sizes others;
         size_t dim = b.dim("dim", x.rank());
         for (size_t d = 0; d < x.rank(); ++d)
           if (d != dim) others.push_back(static_cast<int64_t>(d));
         Tensor length = aten("linalg_vector_norm", x, b.arg("p"), others, true);
         Tensor long_ones = aten("gt.Scalar", length, b.arg("maxnorm"));
         Tensor shorter = aten("mul.Tensor", aten("reciprocal", aten("add.Tensor", length, 1e-7)), b.arg("maxnorm"));
         return aten("mul.Tensor", x, aten("where.self", long_ones, shorter, scalar_of(1.0, x)));
       }},
      {"aten::mvlgamma",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (!is_full_float(x)) return {};
         int64_t p = b.constant("p");
         Tensor shifts = aten("arange.start_step", 1 - p, 1, kw("dtype", x.dtype()), device(x), unpinned());
         Tensor halves = aten("mul.Tensor", shifts, 0.5), rows = aten("unsqueeze", x, -1);
         Tensor at = aten("add.Tensor", rows, halves);
         Tensor sum = aten("sum.dim_IntList", aten("lgamma", at), Sizes{-1});
         double count = static_cast<double>(p * (p - 1));
         return aten("add.Tensor", sum, count * std::log(std::numbers::pi) / 4);
       }},
      {"aten::logdet",
       [](Build& b) {
         Results both = aten("_linalg_slogdet", b["self"]);
         Tensor negative = aten("eq.Scalar", both[0], -1.0);
         return aten("where.ScalarSelf", negative, std::numeric_limits<double>::quiet_NaN(), both[1]);
       }},
      {"aten::linalg_svdvals", [](Build& b) { return one(aten("_linalg_svd", b["A"], false, true)[1]); }},
      {"aten::pinverse",
       [](Build& b) {
         Tensor x = b["self"];
         auto number = [&](double value) {
           return Tensor(aten("full", Sizes{}, value, kw("dtype", DType::f64), layout(), device(x)));
         };
         Tensor least = number(0.0), ratio = number(b.number("rcond"));
         return aten("linalg_pinv.atol_rtol_tensor", x, kw("atol", least), kw("rtol", ratio));
       }},
      {"aten::histogramdd",
       [](Build& b) -> Results {
         if (b.flag("density")) return {};
         Results edges = aten("_histogramdd_bin_edges", b["self"], b.arg("bins"), kw("range", b.arg("range")),
                              kw("weight", b.arg("weight")));
         Tensor counts = aten("_histogramdd_from_bin_cts", b["self"], b.arg("bins"), kw("range", b.arg("range")),
                              kw("weight", b.arg("weight")));
         return {{CallArg(counts), edges.values[0]}};
       }},
  };
  return all;
}

}  // namespace

Rule calculus_rule(std::string_view op) {
  auto at = rules().find(op);
  return at == rules().end() ? nullptr : at->second;
}

}  // namespace tenon::dialect
