// Tensors made of nothing, as PyTorch's decomposition table makes them: ranges, identities, memory, random bits.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "tenon/dialect/parts.h"
#include "tenon/dialect/rules.h"

namespace tenon::dialect {
namespace {

Given place_of(Build& b) { return kw("device", b.given("device") ? b.arg("device") : CallArg(Device{})); }

bool is_one_of(DType dtype, std::initializer_list<DType> some) {
  return std::find(some.begin(), some.end(), dtype) != some.end();
}

// Numbers at even distances: from the start in the first half, from the end in the second.
Results evenly_spaced(Build& b, DType dtype) {
  int64_t steps = b.constant("steps");
  Given place = place_of(b);
  if (steps == 0) return aten("full", Sizes{0}, 0, kw("dtype", dtype), layout(), place, unpinned());
  if (steps == 1 || b.arg("start").is<Tensor>() || b.arg("end").is<Tensor>()) return {};
  double start = b.number("start"), end = b.number("end"), step = (end - start) / static_cast<double>(steps - 1);
  Tensor numbers = aten("arange.start_step", 0, steps, layout(), place, unpinned());
  Tensor first_half = aten("lt.Scalar", numbers, static_cast<double>(steps) / 2);
  bool floating = is_floating(dtype);
  auto scaled = [&](const Tensor& t) {
    return Tensor(aten("mul.Tensor", floating ? Tensor(aten("_to_copy", t, kw("dtype", dtype))) : t, step));
  };
  Tensor forward = aten("add.Tensor", scaled(numbers), b.arg("start"));
  Tensor left = aten("sub.Tensor", steps - 1, numbers);
  Tensor backward = aten("sub.Tensor", b.arg("end"), scaled(left));
  Tensor out = aten("where.self", first_half, forward, backward);
  return floating ? one(out) : aten("_to_copy", out, kw("dtype", dtype));
}

Results powers(Build& b) {
  if (b.arg("base").is<Tensor>()) return {};
  DType dtype = b.dtype("dtype").value_or(DType::f32);
  Results exponents = evenly_spaced(b, DType::f64);
  if (exponents.values.empty()) return {};
  CallArg base = b.arg("base");  // 10.0 is shown as the number it is
  if (auto* real = base.get<double>(); real && *real == static_cast<double>(static_cast<int64_t>(*real)))
    base = static_cast<int64_t>(*real);
  return aten("_to_copy", aten("pow.Scalar", base, exponents), kw("dtype", dtype));
}

// Counting in the narrowest integers that reach, where that is known.
Results identity(Build& b, SymInt rows, SymInt columns) {
  int64_t most = std::numeric_limits<int64_t>::max();
  if (rows.is_int() && columns.is_int()) most = std::max(rows.as_int(), columns.as_int());
  DType narrow = most <= 0xff ? DType::u8 : most <= 0xffff ? DType::u16 : DType::i64;
  auto range = [&](SymInt count) {
    return Tensor(aten("arange.start_step", 0, count, kw("dtype", narrow), layout(), place_of(b), unpinned()));
  };
  Tensor down = range(rows), across = range(columns);
  Tensor here = aten("eq.Tensor", aten("unsqueeze", down, -1), across);
  DType dtype = b.dtype("dtype").value_or(DType::f32);
  return dtype == DType::boolean ? one(here) : aten("_to_copy", here, kw("dtype", dtype));
}

Results memory_like(Build& b) {
  Tensor x = b["self"];
  auto* format = b.arg("memory_format").get<MemoryFormat>();
  Sizes order;
  for (size_t d = 0; d < x.rank(); ++d) order.push_back(static_cast<int64_t>(d));
  if (!format || *format == MemoryFormat::preserve) {
    for (SymInt stride : x.strides())
      if (!stride.is_int() && !is_contiguous(x.meta())) return {};
    if (!is_contiguous(x.meta()))
      std::stable_sort(order.begin(), order.end(), [&](SymInt i, SymInt j) {
        return x.strides()[static_cast<size_t>(i.as_int())].as_int() >
               x.strides()[static_cast<size_t>(j.as_int())].as_int();
      });
  } else if (*format != MemoryFormat::contiguous) {
    return {};
  }
  DType dtype = b.dtype("dtype").value_or(x.dtype());
  Given place = kw("device", b.given("device") ? b.arg("device") : CallArg(x.meta().device));
  return aten("empty_permuted", x.sizes(), order, kw("dtype", dtype), layout(), place, unpinned());
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::linspace", [](Build& b) { return evenly_spaced(b, b.dtype("dtype").value_or(DType::f32)); }},
      {"aten::linspace.Tensor_Tensor",
       [](Build& b) { return evenly_spaced(b, b.dtype("dtype").value_or(DType::f32)); }},
      {"aten::logspace", powers},
      {"aten::logspace.Tensor_Tensor", powers},
      {"aten::eye", [](Build& b) { return identity(b, b.integer("n"), b.integer("n")); }},
      {"aten::eye.m", [](Build& b) { return identity(b, b.integer("n"), b.integer("m")); }},
      {"aten::empty_like", memory_like},
      {"aten::new_empty",
       [](Build& b) {
         Tensor x = b["self"];
         Given place = kw("device", b.given("device") ? b.arg("device") : CallArg(x.meta().device));
         return aten("empty.memory_format", b.ints("size"), kw("dtype", b.dtype("dtype").value_or(x.dtype())), layout(),
                     place, unpinned());
       }},
      {"aten::bernoulli",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (!is_one_of(x.dtype(), {DType::f32, DType::f64}) || b.given("generator")) return {};
         Tensor drawn = aten("rand", x.sizes(), kw("dtype", DType::f32), device(x), unpinned());
         return aten("_to_copy", aten("lt.Tensor", drawn, x), kw("dtype", x.dtype()));
       }},
      {"aten::combinations",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         int64_t r = b.constant("r");
         if (r < 1 || !is_static(x)) return {};
         int64_t n = x.size(0).as_int(), count = 1, from = b.flag("with_replacement") ? n + r - 1 : n;
         for (int64_t i = 0; i < r; ++i) count = count * std::max<int64_t>(from - i, 0) / (i + 1);
         std::vector<Tensor> grids;
         if (r > 1) {
           Tensor numbers = aten("arange", n, kw("dtype", DType::i64), layout(), device(x));
           grids = aten("meshgrid.indexing", std::vector<Tensor>(static_cast<size_t>(r), numbers), kw("indexing", "ij"))
                       .list();
         }
         Tensor mask = aten("full", Sizes(static_cast<size_t>(r), SymInt(n)), true, kw("dtype", DType::boolean),
                            layout(), device(x));
         for (size_t i = 0; i + 1 < grids.size(); ++i) {
           Tensor rises = aten(b.flag("with_replacement") ? "le.Tensor" : "lt.Tensor", grids[i], grids[i + 1]);
           mask = aten("mul.Tensor", mask, rises);
         }
         Tensor places = aten("nonzero_static", mask, kw("size", count));
         return aten("index.Tensor", x, std::vector<Tensor>{places});
       }},
  };
  return all;
}

}  // namespace

Rule creation_rule(std::string_view op) {
  auto at = rules().find(op);
  return at == rules().end() ? nullptr : at->second;
}

}  // namespace tenon::dialect
