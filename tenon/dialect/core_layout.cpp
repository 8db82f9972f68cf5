// Elements in another order, as PyTorch writes it in the core dialect: views, permutations and copies, call by call.
#include <algorithm>
#include <unordered_map>

#include "tenon/dialect/parts.h"
#include "tenon/dialect/rules.h"

namespace tenon::dialect {
namespace {

// The last three dimensions are cut up, put in another order and joined again; the result is a copy of its own.
Results shuffled(const Tensor& x, const Sizes& parts, std::initializer_list<int64_t> order, const Sizes& made) {
  Sizes before = first_of(x.sizes(), x.rank() - 3), dims;
  auto first = static_cast<int64_t>(before.size());
  for (int64_t d = 0; d < first; ++d) dims.push_back(d);
  for (int64_t d : order) dims.push_back(first + d);
  Tensor turned = aten("permute", aten("view", x, joined(before, parts)), dims);
  return aten("clone", aten("reshape", turned, joined(before, made)), contiguous_format());
}

Results pixels_from_channels(Build& b) {
  Tensor x = b["self"];
  int64_t r = b.constant("upscale_factor");
  if (!is_static(x) || !is_contiguous(x.meta())) return {};
  int64_t c = x.size(-3).as_int() / (r * r), h = x.size(-2).as_int(), w = x.size(-1).as_int();
  return shuffled(x, {c, r, r, h, w}, {0, 3, 1, 4, 2}, {c, h * r, w * r});
}

Results channels_from_pixels(Build& b) {
  Tensor x = b["self"];
  int64_t r = b.constant("downscale_factor");
  if (!is_static(x) || !is_contiguous(x.meta())) return {};
  int64_t c = x.size(-3).as_int(), h = x.size(-2).as_int() / r, w = x.size(-1).as_int() / r;
  return shuffled(x, {c, h, r, w, r}, {0, 2, 4, 1, 3}, {c * r * r, h, w});
}

Results channels_dealt(Build& b) {
  Tensor x = b["self"];
  int64_t groups = b.constant("groups");
  if (groups == 1 || !is_static(x) || !is_contiguous(x.meta())) return {};
  Sizes cut = {x.size(0), groups, x.size(1).as_int() / groups}, dims = {0, 2, 1};
  for (size_t d = 2; d < x.rank(); ++d) {
    cut.push_back(x.sizes()[d]);
    dims.push_back(static_cast<int64_t>(d + 1));
  }
  return aten("reshape", aten("permute", aten("view", x, cut), dims), x.sizes());
}

Results grids(Build& b, bool columns_first) {
  std::vector<Tensor> tensors = b.tensors("tensors"), out;
  bool swap = columns_first && tensors.size() >= 2;
  if (swap) std::swap(tensors[0], tensors[1]);
  Sizes sizes;
  for (const Tensor& t : tensors) sizes.push_back(t.numel());
  for (size_t i = 0; i < tensors.size(); ++i) {
    Sizes shape(tensors.size(), SymInt(1));
    shape[i] = -1;
    out.push_back(aten("expand", aten("view", tensors[i], shape), sizes));
  }
  if (swap) std::swap(out[0], out[1]);
  return many(std::move(out));
}

// Written piece by piece into new memory: the middle, then both ends of each dimension from what is already there.
Results padded_in_a_circle(Build& b) {
  Tensor x = b["self"];
  Sizes pad = b.ints("pad");
  if (!is_static(x)) return {};
  size_t spatial = pad.size() / 2;
  auto dim_of = [&](size_t i) { return x.rank() - 1 - i; };  // the last dimension first
  auto before = [&](size_t i) { return pad[2 * i].as_int(); };
  auto behind = [&](size_t i) { return pad[2 * i + 1].as_int(); };
  Sizes sizes = x.sizes();
  for (size_t i = 0; i < spatial; ++i) sizes[dim_of(i)] = sizes[dim_of(i)] + before(i) + behind(i);
  Tensor out = aten("empty.memory_format", sizes, kw("dtype", x.dtype()), layout(), device(x), unpinned());
  Tensor to = out, from = x;
  for (size_t i = 0; i < spatial; ++i) {
    auto dim = static_cast<int64_t>(dim_of(i));
    int64_t whole = out.size(dim).as_int(), part = x.size(dim).as_int();
    to = aten("slice.Tensor", to, dim, std::max<int64_t>(before(i), 0), whole - std::max<int64_t>(behind(i), 0));
    from = aten("slice.Tensor", from, dim, std::max<int64_t>(-before(i), 0), part - std::max<int64_t>(-behind(i), 0));
  }
  aten("copy_", to, from);
  for (size_t i = 0; i < spatial; ++i) {
    auto dim = static_cast<int64_t>(dim_of(i));
    int64_t whole = out.size(dim).as_int(), left = before(i), right = behind(i);
    if (left > 0) {
      Tensor place = aten("slice.Tensor", out, dim, 0, left);
      int64_t end = whole - std::max<int64_t>(right, 0);
      aten("copy_", place, aten("slice.Tensor", out, dim, end - left, end));
    }
    if (right > 0) {
      Tensor place = aten("slice.Tensor", out, dim, whole - right, whole);
      int64_t start = std::max<int64_t>(left, 0);
      aten("copy_", place, aten("slice.Tensor", out, dim, start, start + right));
    }
  }
  return one(out);
}

Results convolved_by_name(Build& b) {
  auto* padding = b.arg("padding").get<std::string>();
  Tensor x = b["input"], weight = b["weight"];
  size_t spatial = weight.rank() - 2;
  if (!padding || x.rank() != spatial + 2) return {};
  if (*padding == "valid")
    return aten("convolution", x, weight, b.arg("bias"), b.arg("stride"), Sizes{0}, b.arg("dilation"), false, Sizes{0},
                b.arg("groups"));
  Sizes around;
  Sizes dilation = b.ints("dilation");
  for (size_t d = 0; d < spatial; ++d) {
    if (!weight.sizes()[d + 2].is_int()) return {};
    int64_t total = dilation[dilation.size() == 1 ? 0 : d].as_int() * (weight.sizes()[d + 2].as_int() - 1);
    if (total % 2 != 0) return {};
    around.push_back(total / 2);
  }
  return aten("convolution", x, weight, b.arg("bias"), b.arg("stride"), around, b.arg("dilation"), false,
              Sizes(spatial, SymInt(0)), b.arg("groups"));
}

Results taken_along(Build& b) {
  Tensor x = b["self"], indices = b["indices"];
  if (!b.given("dim")) {
    if (!is_contiguous(x.meta()) || !is_contiguous(indices.meta())) return {};
    Tensor flat = aten("view", x, Sizes{-1});
    return aten("gather", flat, 0, aten("view", indices, Sizes{-1}));
  }
  size_t dim = b.dim("dim", x.rank());
  if (x.rank() != indices.rank()) return {};
  Sizes of_indices = x.sizes(), of_x = x.sizes();
  for (size_t d = 0; d < x.rank(); ++d) {
    if (d == dim) {
      of_indices[d] = indices.sizes()[d];
    } else if (x.sizes()[d] == SymInt(1)) {
      of_indices[d] = of_x[d] = indices.sizes()[d];
    } else if (indices.sizes()[d] != SymInt(1) && indices.sizes()[d] != x.sizes()[d]) {
      return {};
    }
  }
  Tensor wide = aten("expand", indices, of_indices), source = aten("expand", x, of_x);
  auto d = static_cast<int64_t>(dim);
  return aten("gather", source, d, aten("remainder.Scalar", wide, x.size(d)));
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::pixel_shuffle", pixels_from_channels},
      {"aten::pixel_unshuffle", channels_from_pixels},
      {"aten::channel_shuffle", channels_dealt},
      {"aten::meshgrid", [](Build& b) { return grids(b, false); }},
      {"aten::meshgrid.indexing", [](Build& b) { return grids(b, *b.arg("indexing").get<std::string>() == "xy"); }},
      {"aten::pad",
       [](Build& b) {
         auto* mode = b.arg("mode").get<std::string>();
         return mode && *mode == "circular" ? padded_in_a_circle(b) : Results{};
       }},
      {"aten::_pad_circular", padded_in_a_circle},
      {"aten::conv1d.padding", convolved_by_name},
      {"aten::conv2d.padding", convolved_by_name},
      {"aten::conv3d.padding", convolved_by_name},
      {"aten::take_along_dim", taken_along},
      {"aten::diagflat",
       [](Build& b) {
         Tensor flat = aten("view", aten("contiguous", b["self"]), Sizes{-1});
         return aten("diag", flat, b.arg("offset"));
       }},
      {"aten::cross",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (b.given("dim")) return aten("linalg_cross", x, b["other"], kw("dim", b.arg("dim")));
         for (size_t d = 0; d < x.rank(); ++d)
           if (x.sizes()[d] == SymInt(3))
             return aten("linalg_cross", x, b["other"], kw("dim", static_cast<int64_t>(d)));
         return {};
       }},
      {"aten::argwhere", [](Build& b) { return aten("nonzero", b["self"]); }},
      {"aten::item", [](Build& b) { return aten("_local_scalar_dense", b["self"]); }},
      {"aten::chalf", [](Build& b) { return aten("_to_copy", b["self"], kw("dtype", DType::c32)); }},
      {"aten::grid_sampler",
       [](Build& b) {
         return aten(b["input"].rank() == 4 ? "grid_sampler_2d" : "grid_sampler_3d", b["input"], b["grid"],
                     b.arg("interpolation_mode"), b.arg("padding_mode"), b.arg("align_corners"));
       }},
      {"aten::adaptive_max_pool1d",
       [](Build& b) -> Results {
         Tensor wide = aten("unsqueeze", b["self"], -2);
         Results both = aten("adaptive_max_pool2d", wide, Sizes{1, b.ints("output_size")[0]});
         Tensor indices = aten("squeeze.dim", both[1], -2), values = aten("squeeze.dim", both[0], -2);
         return {{CallArg(values), CallArg(indices)}};
       }},
  };
  return all;
}

}  // namespace

Rule layout_rule(std::string_view op) {
  auto at = rules().find(op);
  return at == rules().end() ? nullptr : at->second;
}

}  // namespace tenon::dialect
