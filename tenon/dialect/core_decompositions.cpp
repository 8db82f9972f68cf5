// PyTorch's default decomposition table, as far as it is known here: operators in terms of core ATen ones, call by
// call.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "tenon/dialect/parts.h"
#include "tenon/dialect/rules.h"

namespace tenon::dialect {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Results permuted(const Tensor& x, size_t a, size_t b) {
  if (x.rank() <= 1 || a == b) return aten("alias", x);
  Sizes dims;
  for (size_t d = 0; d < x.rank(); ++d) dims.push_back(static_cast<int64_t>(d == a ? b : d == b ? a : d));
  return aten("permute", x, dims);
}

// A number as a tensor of the dtype it will meet.
Tensor number_like(const CallArg& number, const Tensor& x) {
  CallArg value = number;
  if (is_floating(x.dtype())) {
    if (auto* i = number.get<SymInt>(); i && i->is_int()) value = static_cast<double>(i->as_int());
    if (auto* flag = number.get<bool>()) value = *flag ? 1.0 : 0.0;
  }
  return aten("scalar_tensor", value, kw("dtype", x.dtype()), layout(), device(x));
}

// Half precision is computed in float and rounded once.
template <class F>
Results in_float(const Tensor& x, F&& f) {
  bool low = is_half(x.dtype());
  if (!low) return f(x);
  Tensor wide = aten("_to_copy", x, kw("dtype", DType::f32));
  Tensor made = f(wide);
  return aten("_to_copy", made, kw("dtype", x.dtype()));
}

Results split_evenly(Build& b) {
  Tensor x = b["self"];
  SymInt split = b.integer("split_size"), whole = x.size(b.constant("dim"));
  if (!split.is_int() || !whole.is_int() || split == SymInt(0)) return {};
  int64_t each = split.as_int(), size = whole.as_int();
  Sizes sizes;
  for (int64_t at = 0; at < size; at += each) sizes.push_back(std::min(each, size - at));
  if (sizes.empty()) sizes.push_back(0);
  return aten("split_with_sizes", x, sizes, b.arg("dim"));
}

Results selected_in(Build& b) {
  Tensor x = b["self"], src = b["src"];
  size_t dim = b.dim("dim", x.rank());
  SymInt index = b.integer("index");
  if (index.is_int() && index.as_int() < 0) index = index + x.sizes()[dim];
  Sizes ones(x.rank(), SymInt(1));
  ones[dim] = -1;
  Tensor places = aten("view", range_of(x.sizes()[dim], x), ones);
  Tensor here = aten("eq.Scalar", places, index);
  Tensor wide = aten("expand", aten("unsqueeze", src, static_cast<int64_t>(dim)), x.sizes());
  return aten("where.self", here, wide, x);
}

// 0 and 1 of booleans are False and True.
CallArg as_shown(const CallArg& value, DType dtype) {
  auto* number = value.get<SymInt>();
  return dtype == DType::boolean && number && number->is_int() ? CallArg(number->as_int() != 0) : value;
}

Results made_full(Build& b, const Sizes& sizes, const CallArg& value, std::optional<DType> dtype, const CallArg& on) {
  DType of = b.dtype("dtype").value_or(dtype.value_or(DType::f32));
  CallArg number = as_shown(value, of);
  CallArg place = b.given("device") ? b.arg("device") : on;
  if (place.is_none()) place = Device{};
  return aten("full", sizes, number, kw("dtype", of), layout(), kw("device", place), unpinned());
}

Results like_full(Build& b, const CallArg& value) {
  std::vector<Given> given = {Given(b["self"]), Given(as_shown(value, b.dtype("dtype").value_or(b["self"].dtype())))};
  if (b.given("dtype")) given.push_back(kw("dtype", b.arg("dtype")));
  given.push_back(unpinned());
  given.push_back(
      kw("memory_format", b.given("memory_format") ? b.arg("memory_format") : CallArg(MemoryFormat::preserve)));
  return call_bound(aten_op("full_like"), given);
}

Results counted(Build& b, const CallArg& start, const CallArg& step) {
  std::vector<Given> given = {Given(start), Given(b.arg("end"))};
  bool unit = step.is<SymInt>() && *step.get<SymInt>() == SymInt(1);
  if (!unit) given.emplace_back(step);
  if (b.given("dtype")) given.push_back(kw("dtype", b.arg("dtype")));
  given.push_back(layout());
  given.push_back(kw("device", b.given("device") ? b.arg("device") : CallArg(Device{})));
  given.push_back(unpinned());
  return call_bound(aten_op("arange.start_step"), given);
}

struct LogOfSigmoid {
  Tensor value, exponential;
};
LogOfSigmoid log_of_sigmoid(const Tensor& x) {
  Tensor zero = aten("full", Sizes{}, 0, kw("dtype", x.dtype()), layout(), device(x), unpinned());
  Tensor least = aten("minimum", zero, x);
  Tensor z = aten("exp", aten("neg", aten("abs", x)));
  return {aten("sub.Tensor", least, aten("log1p", z)), z};
}

Results negative_log_likelihood(Build& b) {
  Tensor x = b["self"], target = b["target"];
  if (b.given("weight")) return {};
  int64_t channels = x.rank() < 2 ? 0 : 1, how = b.constant("reduction");
  SymInt ignored = b.integer("ignore_index");
  Tensor counts = aten("ne.Scalar", target, ignored);
  Tensor safe = aten("where.self", counts, target, number_like(0, target));
  Tensor picked = aten("gather", x, channels, aten("unsqueeze", safe, channels));
  Tensor loss = aten("neg", aten("squeeze.dim", picked, channels));
  Tensor again = aten("ne.Scalar", target, ignored);
  Tensor zero = aten("scalar_tensor", 0, kw("dtype", x.dtype()), layout(), device(x));
  loss = aten("where.self", again, loss, zero);
  if (how == 0 && x.rank() > 1) {
    Tensor none = aten("full", Sizes{}, 0.0, kw("dtype", x.dtype()), layout(), device(x), unpinned());
    return {{CallArg(loss), CallArg(none)}};
  }
  Tensor total = aten("_to_copy", aten("sum", aten("ne.Scalar", target, ignored)), kw("dtype", x.dtype()), device(x));
  if (how == 0) return {{CallArg(loss), CallArg(total)}};
  Tensor sum = aten("sum", loss);
  if (how == 2) return {{CallArg(sum), CallArg(total)}};
  return {{CallArg(Tensor(aten("div.Tensor", sum, total))), CallArg(total)}};
}

Results normed(Build& b) {
  Tensor x = b["self"];
  if (b.given("dtype")) return {};
  double order = b.number("ord");
  CallArg dims = b.arg("dim");
  if (order == 0) return {};
  if (std::isinf(order))
    return aten(order > 0 ? "amax" : "amin", aten("abs", x), dims.is_none() ? CallArg(Sizes{}) : dims,
                b.arg("keepdim"));
  const bool real = !is_complex(x.dtype());
  return in_float(x, [&](const Tensor& wide) {
    Tensor base = order == 2 && real ? wide : Tensor(aten("abs", wide));  // squares need no absolute values
    Tensor sum = aten("sum.dim_IntList", aten("pow.Tensor_Scalar", base, b.arg("ord")), dims, b.arg("keepdim"));
    return aten("pow.Tensor_Scalar", sum, 1.0 / order);
  });
}

// A view that is copied at once.
Results copied(Build& b, std::string_view view) {
  const Op& op = aten_op(view);
  CallArgs args(b.args.begin(), b.args.end());
  Results seen = call_op(op, std::move(args));
  auto copy = [](const Tensor& t) { return Tensor(aten("clone", t, kw("memory_format", MemoryFormat::contiguous))); };
  if (!op.schema.returns[0].type.list) return one(copy(seen));
  std::vector<Tensor> out;
  for (const Tensor& t : seen.list()) out.push_back(copy(t));
  return many(std::move(out));
}

// What stands on or below a diagonal, or on or above it.
Results triangle(Build& b, std::string_view compare) {
  Tensor x = b["self"];
  SymInt rows = x.size(-2), columns = x.size(-1);
  Tensor across = aten("unsqueeze", range_of(columns, x), -2);
  Tensor down = aten("unsqueeze", range_of(rows, x), -1);
  Tensor inside = aten(compare, aten("sub.Tensor", across, down), b.arg("diagonal"));
  if (x.dtype() == DType::boolean) return aten("logical_and", inside, x);
  return aten("where.self", inside, x, scalar_of(0, x));
}

Results log_of_summed_exponentials(Build& b) {
  Tensor x = b["self"];
  Sizes dims = b.ints("dim");
  if (!is_floating(x.dtype()) || dims.empty() || x.numel() == SymInt(0)) return {};
  Tensor most = aten("amax", x, dims, true);
  Tensor endless = aten("eq.Scalar", aten("abs", most), infinity);
  most = aten("where.self", endless, scalar_of(0.0, x), most);
  Tensor shown = b.flag("keepdim") ? most : Tensor(aten("squeeze.dims", most, dims));
  Tensor sum = aten("sum.dim_IntList", aten("exp", aten("sub.Tensor", x, most)), dims, b.arg("keepdim"));
  return aten("add.Tensor", aten("log", sum), shown);
}

Results sum_of_logarithms(Build& b, bool binary) {
  Tensor x = b["self"], y = b["other"];
  if (!is_floating(x.dtype()) || x.dtype() != y.dtype()) return {};
  Tensor larger = aten("ge.Tensor", x, y);
  Tensor most = aten("where.self", larger, x, y);
  Tensor least = aten("where.self", larger, y, x);
  Tensor endless = binary ? aten("isinf", x) : aten("logical_not", aten("isfinite", x));
  Tensor both = aten("logical_and", endless, aten("eq.Tensor", x, y));
  Tensor away = aten(binary ? "exp2" : "exp", aten("sub.Tensor", least, most));
  Tensor more = aten("log1p", away);
  if (binary) more = aten("mul.Tensor", more, 1.4426950408889634);
  return aten("where.self", both, x, aten("add.Tensor", most, more));
}

// Where a tensor is one of the two infinities.
Results equals_infinity(Tensor x, double which) {
  if (!is_floating(x.dtype())) return {};
  if (is_half(x.dtype())) x = aten("_to_copy", x, kw("dtype", DType::f32));
  return aten("eq.Scalar", x, which);
}

Results without_nans(Build& b) {
  Tensor x = b["self"];
  double most = 0;
  switch (x.dtype()) {
    case DType::f64: most = std::numeric_limits<double>::max(); break;
    case DType::f32: most = std::numeric_limits<float>::max(); break;
    case DType::f16: most = 0x1.ffcp15; break;
    case DType::bf16: most = 0x1.fep127; break;
    default: return {};
  }
  Tensor unknown = aten("isnan", x);
  Tensor out = aten("where.self", unknown, scalar_of(b.given("nan") ? b.arg("nan") : CallArg(0.0), x), x);
  Tensor low = equals_infinity(x, -infinity);
  out = aten("where.self", low, scalar_of(b.given("neginf") ? b.arg("neginf") : CallArg(-most), x), out);
  Tensor high = equals_infinity(x, infinity);
  return aten("where.self", high, scalar_of(b.given("posinf") ? b.arg("posinf") : CallArg(most), x), out);
}

Results interpolated(const Tensor& from, const Tensor& to, const Tensor& weight) {
  Tensor far = aten("ge.Scalar", aten("abs", weight), 0.5);
  Tensor share = aten("where.self", far, aten("sub.Tensor", weight, 1), weight);
  Tensor base = aten("where.self", far, to, from);
  Tensor way = aten("mul.Tensor", share, aten("sub.Tensor", to, from));
  return aten("add.Tensor", way, base);
}

Results cross_entropy_of_two(Build& b) {
  Tensor x = b["self"], target = b["target"];
  auto least = [&] { return aten("full", Sizes{}, -100, kw("dtype", x.dtype()), layout(), device(x), unpinned()); };
  Tensor absent = aten("sub.Tensor", target, 1);
  Tensor of_absent = aten("log1p", aten("neg", x));
  Tensor left = aten("mul.Tensor", absent, aten("maximum", of_absent, least()));
  Tensor of_present = aten("log", x);
  Tensor right = aten("mul.Tensor", target, aten("maximum", of_present, least()));
  Tensor loss = aten("sub.Tensor", left, right);
  if (b.given("weight")) loss = aten("mul.Tensor", loss, b["weight"]);
  return reduced(loss, b.constant("reduction"));
}

Results turned_in_a_plane(Build& b) {
  Tensor x = b["self"];
  Sizes dims = b.ints("dims");
  int64_t quarters = ((b.constant("k") % 4) + 4) % 4;
  if (quarters == 0) return aten("clone", x, kw("memory_format", MemoryFormat::contiguous));
  if (quarters == 2) return aten("flip", x, dims);
  return aten("transpose.int", aten("flip", x, Sizes{dims[quarters == 1 ? 1 : 0]}), dims[0], dims[1]);
}

Results items_along(Build& b) {
  Tensor x = b["self"];
  auto dim = static_cast<int64_t>(b.dim("dim", x.rank()));
  if (!x.size(dim).is_int() || x.size(dim).as_int() == 0) return {};
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < x.size(dim).as_int(); ++i) parts.push_back(aten("slice.Tensor", x, dim, i, i + 1));
  for (Tensor& part : parts) part = aten("squeeze.dim", part, dim);
  return many(std::move(parts));
}

// The sum over all dimensions, or over those that are given.
Results count_of_nonzeros(Build& b, const CallArg& dims) {
  return aten("sum.dim_IntList", aten("ne.Scalar", b["self"], 0), dims);
}

Results shifted_and_cut(const Tensor& x, bool times) {
  Tensor high = aten("clamp", aten("clamp", aten("add.Tensor", x, 3), 0), CallArg(), 6);
  return aten("div.Tensor", times ? Tensor(aten("mul.Tensor", x, high)) : high, 6);
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::t", [](Build& b) { return permuted(b["self"], 0, b["self"].rank() < 2 ? 0 : 1); }},
      {"aten::transpose.int",
       [](Build& b) {
         Tensor x = b["self"];
         return permuted(x, b.dim("dim0", x.rank()), b.dim("dim1", x.rank()));
       }},
      {"aten::detach", [](Build& b) { return aten("alias", b["self"]); }},
      {"aten::sum", [](Build& b) { return aten("sum.dim_IntList", b["self"], Sizes{}, kw("dtype", b.arg("dtype"))); }},
      {"aten::split.Tensor", split_evenly},
      {"aten::unsafe_split.Tensor", split_evenly},
      {"aten::unsafe_split_with_sizes",
       [](Build& b) { return aten("split_with_sizes", b["self"], b.arg("split_sizes"), b.arg("dim")); }},
      {"aten::squeeze.dim",
       [](Build& b) -> Results { return aten("squeeze.dims", b["self"], Sizes{b.integer("dim")}); }},
      {"aten::squeeze",
       [](Build& b) -> Results {
         Sizes dims;
         for (size_t d = 0; d < b["self"].rank(); ++d) dims.push_back(static_cast<int64_t>(d));
         return aten("squeeze.dims", b["self"], dims);
       }},
      {"aten::fill.Scalar", [](Build& b) { return aten("full_like", b["self"], b.arg("value"), unpinned()); }},
      {"aten::zero",
       [](Build& b) {
         return aten("full_like", b["self"], 0, unpinned(), kw("memory_format", MemoryFormat::preserve));
       }},
      {"aten::select_scatter", selected_in},
      {"aten::masked_fill.Scalar",
       [](Build& b) {
         Tensor x = b["self"];
         return aten("where.self", b["mask"], number_like(b.arg("value"), x), x);
       }},
      {"aten::masked_fill.Tensor",
       [](Build& b) {
         Tensor x = b["self"], value = b["value"];
         if (value.dtype() != x.dtype()) value = aten("_to_copy", value, kw("dtype", x.dtype()));
         return aten("where.self", b["mask"], value, x);
       }},
      {"aten::clamp_min", [](Build& b) { return aten("clamp", b["self"], b.arg("min")); }},
      {"aten::clamp_max", [](Build& b) { return aten("clamp", b["self"], CallArg(), b.arg("max")); }},
      {"aten::clamp_min.Tensor", [](Build& b) { return aten("clamp.Tensor", b["self"], b.arg("min")); }},
      {"aten::clamp_max.Tensor", [](Build& b) { return aten("clamp.Tensor", b["self"], CallArg(), b.arg("max")); }},
      {"aten::floor_divide",
       [](Build& b) { return aten("div.Tensor_mode", b["self"], b.arg("other"), kw("rounding_mode", "floor")); }},
      {"aten::rsub.Scalar",
       [](Build& b) { return aten("sub.Tensor", b.arg("other"), b["self"], kw("alpha", b.arg("alpha"))); }},
      {"aten::rsub.Tensor",
       [](Build& b) { return aten("sub.Tensor", b["other"], b["self"], kw("alpha", b.arg("alpha"))); }},
      {"aten::dot", [](Build& b) { return aten("sum", aten("mul.Tensor", b["self"], b["tensor"])); }},
      {"aten::vdot",
       [](Build& b) {
         Tensor self = b["self"];
         if (is_complex(self.dtype())) self = aten("_conj_physical", self);
         return aten("sum", aten("mul.Tensor", self, b["other"]));
       }},
      {"aten::mv",
       [](Build& b) -> Results { return aten("sum.dim_IntList", aten("mul.Tensor", b["self"], b["vec"]), Sizes{1}); }},
      {"aten::addcmul",
       [](Build& b) {
         Tensor scaled = aten("mul.Tensor", b["tensor1"], b.arg("value"));
         return aten("add.Tensor", b["self"], aten("mul.Tensor", scaled, b["tensor2"]));
       }},
      {"aten::addcdiv",
       [](Build& b) {
         Tensor scaled = aten("mul.Tensor", b["tensor1"], b.arg("value"));
         return aten("add.Tensor", b["self"], aten("div.Tensor", scaled, b["tensor2"]));
       }},
      {"aten::deg2rad", [](Build& b) { return aten("mul.Tensor", b["self"], 0.017453292519943295); }},
      {"aten::rad2deg", [](Build& b) { return aten("mul.Tensor", b["self"], 57.29577951308232); }},
      {"aten::frac", [](Build& b) { return aten("sub.Tensor", b["self"], aten("trunc", b["self"])); }},
      {"aten::silu",
       [](Build& b) {
         return in_float(b["self"], [](const Tensor& x) { return aten("mul.Tensor", x, aten("sigmoid", x)); });
       }},
      {"aten::hardswish",
       [](Build& b) { return in_float(b["self"], [](const Tensor& x) { return shifted_and_cut(x, true); }); }},
      {"aten::hardsigmoid",
       [](Build& b) { return in_float(b["self"], [](const Tensor& x) { return shifted_and_cut(x, false); }); }},
      {"aten::softplus",
       [](Build& b) {
         bool unit = b.arg("beta").is<SymInt>() && b.number("beta") == 1;
         CallArg beta = b.arg("beta"), threshold = b.arg("threshold");
         return in_float(b["self"], [&](const Tensor& x) {
           Tensor scaled = unit ? x : Tensor(aten("mul.Tensor", x, beta));
           Tensor log = aten("log1p", aten("exp", scaled));
           if (!unit) log = aten("div.Tensor", log, beta);
           return aten("where.self", aten("gt.Scalar", scaled, threshold), x, log);
         });
       }},
      {"aten::mish",
       [](Build& b) {
         return in_float(b["self"], [](const Tensor& x) {
           Tensor log = aten("log1p", aten("exp", x));
           Tensor plus = aten("where.self", aten("gt.Scalar", x, 20), x, log);
           return aten("mul.Tensor", x, aten("tanh", plus));
         });
       }},
      {"aten::threshold",
       [](Build& b) {
         Tensor x = b["self"], below = aten("le.Scalar", x, b.arg("threshold"));
         return aten("where.self", below, number_like(b.arg("value"), x), x);
       }},
      {"aten::glu",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         int64_t dim = static_cast<int64_t>(b.dim("dim", x.rank()));
         if (!x.size(dim).is_int()) return {};
         int64_t half = x.size(dim).as_int() / 2;
         Tensor first = aten("slice.Tensor", x, dim, 0, half), second = aten("slice.Tensor", x, dim, half, 2 * half);
         return aten("mul.Tensor", first, aten("sigmoid", second));
       }},
      {"aten::log_sigmoid_forward",
       [](Build& b) -> Results {
         LogOfSigmoid made = log_of_sigmoid(b["self"]);
         return {{CallArg(made.value), CallArg(made.exponential)}};
       }},
      {"aten::binary_cross_entropy_with_logits",
       [](Build& b) -> Results {
         Tensor x = b["self"], target = b["target"];
         if (b.given("pos_weight")) return {};
         Tensor left = aten("mul.Tensor", aten("sub.Tensor", 1, target), x);
         Tensor loss = aten("sub.Tensor", left, log_of_sigmoid(x).value);
         if (b.given("weight")) loss = aten("mul.Tensor", loss, b["weight"]);
         return reduced(loss, b.constant("reduction"));
       }},
      {"aten::mse_loss",
       [](Build& b) {
         Tensor difference = aten("sub.Tensor", b["self"], b["target"]);
         return reduced(Tensor(aten("pow.Tensor_Scalar", difference, 2)), b.constant("reduction"));
       }},
      {"aten::huber_loss",
       [](Build& b) {
         double delta = b.number("delta");
         Tensor away = aten("abs", aten("sub.Tensor", b["self"], b["target"]));
         Tensor near = aten("lt.Scalar", away, delta);
         Tensor square = aten("mul.Tensor", aten("mul.Tensor", away, 0.5), away);
         Tensor line = aten("mul.Tensor", aten("sub.Tensor", away, 0.5 * delta), delta);
         return reduced(Tensor(aten("where.self", near, square, line)), b.constant("reduction"));
       }},
      {"aten::smooth_l1_loss",
       [](Build& b) {
         double beta = b.number("beta");
         Tensor away = aten("abs", aten("sub.Tensor", b["self"], b["target"]));
         if (beta == 0) return reduced(away, b.constant("reduction"));
         Tensor near = aten("lt.Scalar", away, beta);
         Tensor square = aten("div.Tensor", aten("mul.Tensor", aten("pow.Tensor_Scalar", away, 2), 0.5), beta);
         Tensor line = aten("sub.Tensor", away, 0.5 * beta);
         return reduced(Tensor(aten("where.self", near, square, line)), b.constant("reduction"));
       }},
      {"aten::binary_cross_entropy", cross_entropy_of_two},
      {"aten::soft_margin_loss",
       [](Build& b) {
         Tensor away = aten("exp", aten("mul.Tensor", aten("neg", b["self"]), b["target"]));
         return reduced(Tensor(aten("log1p", away)), b.constant("reduction"));
       }},
      {"aten::tril", [](Build& b) { return triangle(b, "le.Scalar"); }},
      {"aten::triu", [](Build& b) { return triangle(b, "ge.Scalar"); }},
      {"aten::logsumexp", log_of_summed_exponentials},
      {"aten::logaddexp", [](Build& b) { return sum_of_logarithms(b, false); }},
      {"aten::logaddexp2", [](Build& b) { return sum_of_logarithms(b, true); }},
      {"aten::nan_to_num", without_nans},
      {"aten::rot90", turned_in_a_plane},
      {"aten::unbind.int", items_along},
      {"aten::count_nonzero",
       [](Build& b) { return count_of_nonzeros(b, b.given("dim") ? CallArg(Sizes{b.integer("dim")}) : CallArg()); }},
      {"aten::count_nonzero.dim_IntList", [](Build& b) { return count_of_nonzeros(b, b.arg("dim")); }},
      {"aten::nansum",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (!is_floating(x.dtype())) return {};
         Tensor unknown = aten("isnan", x), known = aten("where.self", unknown, scalar_of(0, x), x);
         return aten("sum.dim_IntList", known, b.arg("dim"), b.arg("keepdim"), kw("dtype", b.arg("dtype")));
       }},
      {"aten::lerp.Scalar",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (x.dtype() != DType::f32 && x.dtype() != DType::f64) return {};
         Tensor weight =
             aten("full", Sizes{}, b.number("weight"), kw("dtype", x.dtype()), layout(), device(x), unpinned());
         return interpolated(x, b["end"], weight);
       }},
      {"aten::lerp.Tensor",
       [](Build& b) -> Results {
         if (b["self"].dtype() != DType::f32 && b["self"].dtype() != DType::f64) return {};
         return interpolated(b["self"], b["end"], b["weight"]);
       }},
      {"aten::xlogy.Tensor",
       [](Build& b) -> Results {
         Tensor x = b["self"], y = b["other"];
         if (!is_floating(x.dtype()) || x.dtype() != y.dtype()) return {};
         Tensor zero = aten("eq.Scalar", x, 0), product = aten("mul.Tensor", x, aten("log", y));
         Tensor out = aten("where.self", zero, scalar_of(0, x), product);
         Tensor unknown = aten("isnan", y);
         return aten("where.self", unknown, scalar_of(std::numeric_limits<double>::quiet_NaN(), x), out);
       }},
      {"aten::heaviside",
       [](Build& b) -> Results {
         Tensor x = b["self"], values = b["values"];
         if (!is_floating(x.dtype()) || x.dtype() != values.dtype()) return {};
         Tensor zero = aten("eq.Scalar", x, 0), below = aten("lt.Scalar", x, 0), unknown = aten("isnan", x);
         Tensor off = aten("logical_or", below, unknown);
         Tensor high = aten("scalar_tensor", 1, kw("dtype", DType::i64), layout(), device(x));
         Tensor low = aten("scalar_tensor", 0, kw("dtype", DType::i64), layout(), device(x));
         return aten("where.self", zero, values, aten("where.self", off, low, high));
       }},
      {"aten::logit",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (x.dtype() != DType::f32 && x.dtype() != DType::f64) return {};
         double least = b.given("eps") ? b.number("eps") : -1.0, most = 1 - least;
         Tensor below = aten("lt.Scalar", x, least), above = aten("gt.Scalar", x, most);
         x = aten("where.self", above, scalar_of(most, x), x);
         x = aten("where.self", below, scalar_of(least, x), x);
         return aten("log", aten("div.Tensor", x, aten("sub.Tensor", 1, x)));
       }},
      {"aten::baddbmm",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (!is_floating(x.dtype())) return {};
         Tensor product = aten("bmm", b["batch1"], b["batch2"]);
         if (b.number("alpha") != 1) product = aten("mul.Tensor", product, b.arg("alpha"));
         if (b.number("beta") == 0) return one(product);
         if (b.number("beta") != 1) x = aten("mul.Tensor", x, b.arg("beta"));
         return aten("add.Tensor", x, product);
       }},
      {"aten::trace",
       [](Build& b) {
         Tensor diagonal = aten("diagonal", b["self"]);
         return aten("sum", aten("clone", diagonal, kw("memory_format", MemoryFormat::contiguous)));
       }},
      {"aten::all",
       [](Build& b) -> Results {
         if (b["self"].dtype() == DType::u8) return {};
         return aten("logical_not", aten("any.dims", aten("logical_not", b["self"])));
       }},
      {"aten::sgn",
       [](Build& b) {
         Tensor x = b["self"];
         if (!is_complex(x.dtype())) return aten("sign", x);
         Tensor length = aten("abs", x), none = aten("eq.Scalar", length, 0), unit = aten("div.Tensor", x, length);
         return aten("where.self", none, aten("scalar_tensor", 0, kw("dtype", x.dtype())), unit);
       }},
      {"aten::isposinf", [](Build& b) { return equals_infinity(b["self"], infinity); }},
      {"aten::isneginf", [](Build& b) { return equals_infinity(b["self"], -infinity); }},
      {"aten::sinc",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (x.dtype() != DType::f32 && x.dtype() != DType::f64) return {};
         x = aten("mul.Tensor", x, 3.141592653589793);
         Tensor zero = aten("eq.Scalar", x, 0), quotient = aten("div.Tensor", aten("sin", x), x);
         return aten("where.self", zero, scalar_of(1, x), quotient);
       }},
      {"aten::celu",
       [](Build& b) -> Results {
         if (b.number("alpha") != 1) return {};
         return in_float(b["self"], [](const Tensor& x) {
           Tensor below = aten("expm1", x);
           return aten("where.self", aten("gt.Scalar", x, 0), x, below);
         });
       }},
      {"aten::_prelu_kernel",
       [](Build& b) {
         Tensor x = b["self"], above = aten("gt.Scalar", x, 0);
         return aten("where.self", above, x, aten("mul.Tensor", b["weight"], x));
       }},
      {"aten::native_dropout_backward",
       [](Build& b) {
         Tensor grad = b["grad_output"];
         Tensor mask = aten("_to_copy", b["mask"], kw("dtype", grad.dtype()), layout(), device(grad));
         Tensor out = aten("mul.Tensor", grad, aten("mul.Tensor", mask, b.arg("scale")));
         return aten("clone", out, kw("memory_format", MemoryFormat::contiguous));
       }},
      {"aten::_unsafe_view", [](Build& b) { return aten("view", b["self"], b.arg("size")); }},
      {"aten::split_with_sizes_copy", [](Build& b) { return copied(b, "split_with_sizes"); }},
      {"aten::nll_loss_forward", negative_log_likelihood},
      {"aten::linalg_vector_norm", normed},
      {"aten::arange", [](Build& b) { return counted(b, 0, 1); }},
      {"aten::arange.start", [](Build& b) { return counted(b, b.arg("start"), 1); }},
      {"aten::zeros", [](Build& b) { return made_full(b, b.ints("size"), 0, {}, {}); }},
      {"aten::ones", [](Build& b) { return made_full(b, b.ints("size"), 1, {}, {}); }},
      {"aten::new_zeros",
       [](Build& b) { return made_full(b, b.ints("size"), 0, b["self"].dtype(), b["self"].meta().device); }},
      {"aten::new_ones",
       [](Build& b) { return made_full(b, b.ints("size"), 1, b["self"].dtype(), b["self"].meta().device); }},
      {"aten::new_full",
       [](Build& b) {
         return made_full(b, b.ints("size"), b.arg("fill_value"), b["self"].dtype(), b["self"].meta().device);
       }},
      {"aten::zeros_like", [](Build& b) { return like_full(b, 0); }},
      {"aten::ones_like", [](Build& b) { return like_full(b, 1); }},
      {"aten::stack",
       [](Build& b) {
         std::vector<Tensor> tensors = b.tensors("tensors"), wide;
         size_t dim = b.dim("dim", tensors.at(0).rank() + 1);
         if (dim < tensors.at(0).rank()) {
           Sizes sizes;
           for (size_t d = 0; d < tensors[0].rank(); ++d) {
             if (d == dim) sizes.push_back(static_cast<int64_t>(tensors.size()));
             sizes.push_back(tensors[0].sizes()[d]);
           }
           return aten("view", aten("cat", tensors, static_cast<int64_t>(dim)), sizes);
         }
         for (const Tensor& t : tensors) wide.push_back(aten("unsqueeze", t, static_cast<int64_t>(dim)));
         return aten("cat", wide, b.arg("dim"));
       }},
      {"aten::aminmax",
       [](Build& b) -> Results {
         std::vector<Given> given = {Given(b["self"])};
         if (b.given("dim")) given.emplace_back(Sizes{b.integer("dim")});
         if (b.flag("keepdim")) {
           if (!b.given("dim")) given.emplace_back(Sizes{});
           given.emplace_back(true);
         }
         std::vector<Given> same = given;
         Tensor low = call_bound(aten_op("amin"), given), high = call_bound(aten_op("amax"), same);
         return {{CallArg(low), CallArg(high)}};
       }},
      {"aten::std.correction",
       [](Build& b) {
         CallArg correction = b.given("correction") ? CallArg(b.number("correction")) : CallArg(1.0);
         return aten("sqrt", aten("var.correction", b["self"], b.arg("dim"), kw("correction", correction),
                                  kw("keepdim", b.arg("keepdim"))));
       }},
      {"aten::std_mean.correction",
       [](Build& b) -> Results {
         CallArg correction = b.given("correction") ? CallArg(b.number("correction")) : CallArg(1.0);
         Results both = aten("var_mean.correction", b["self"], b.arg("dim"), kw("correction", correction),
                             kw("keepdim", b.arg("keepdim")));
         return {{CallArg(Tensor(aten("sqrt", both[0]))), CallArg(both[1])}};
       }},
      {"aten::alias_copy", [](Build& b) { return copied(b, "alias"); }},
      {"aten::diagonal_copy", [](Build& b) { return copied(b, "diagonal"); }},
      {"aten::expand_copy", [](Build& b) { return copied(b, "expand"); }},
      {"aten::t_copy", [](Build& b) { return copied(b, "t"); }},
      {"aten::transpose_copy.int", [](Build& b) { return copied(b, "transpose.int"); }},
      {"aten::unsqueeze_copy", [](Build& b) { return copied(b, "unsqueeze"); }},
      {"aten::squeeze_copy", [](Build& b) { return copied(b, "squeeze"); }},
      {"aten::squeeze_copy.dim", [](Build& b) { return copied(b, "squeeze.dim"); }},
      {"aten::as_strided_copy", [](Build& b) { return copied(b, "as_strided"); }},
      {"aten::unfold_copy", [](Build& b) { return copied(b, "unfold"); }},
  };
  return all;
}

}  // namespace

Rule family_rule(std::string_view op) {
  for (Rule (*family)(std::string_view) :
       {indexing_rule, resampling_rule, product_rule, loss_rule, creation_rule, calculus_rule, layout_rule})
    if (Rule found = family(op)) return found;
  return nullptr;
}

Rule core_rule(std::string_view op) {
  auto at = rules().find(op);
  return at == rules().end() ? family_rule(op) : at->second;
}

}  // namespace tenon::dialect
