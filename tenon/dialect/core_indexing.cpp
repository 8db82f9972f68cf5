// Entries of PyTorch's decomposition table that become reads and writes by index: call by call.
#include <cmath>
#include <numbers>
#include <unordered_map>

#include "tenon/dialect/parts.h"
#include "tenon/dialect/rules.h"

namespace tenon::dialect {
namespace {

// Indices along one dimension, all others whole.
std::vector<Tensor> along(size_t dim, const Tensor& index, size_t rank = 0) {
  std::vector<Tensor> list(std::max(rank, dim + 1));
  list[dim] = index;
  return list;
}

// What is written at places along a dimension of a tensor, which may have none.
Results put_along(Build& b, const Tensor& values, bool accumulate) {
  Tensor x = b["self"], index = b["index"];
  size_t dim = b.dim("dim", x.rank());
  if (x.rank() == 0) {
    Tensor wide = aten("unsqueeze", x, 0);
    Tensor put = aten("index_put", wide, along(0, index), values, accumulate);
    return aten("squeeze.dim", put, 0);
  }
  return aten("index_put", x, along(dim, index), values, accumulate);
}

Results added_along(Build& b) {
  Tensor source = b["source"];
  if (b.number("alpha") != 1) source = aten("mul.Tensor", source, b.arg("alpha"));
  return put_along(b, source, true);
}

Results filled_along(Build& b, Tensor value) {
  Tensor x = b["self"], index = b["index"];
  Sizes sizes = x.sizes();
  if (x.rank() == 0) {
    Tensor wide = aten("unsqueeze", x, 0);
    value = aten("expand", value, Sizes{index.numel()});
    Tensor put = aten("index_put", wide, along(0, index), value);
    return aten("clone", aten("squeeze.dim", put, 0));
  }
  sizes[b.dim("dim", x.rank())] = index.numel();
  return put_along(b, aten("expand", value, sizes), false);
}

Results masked_read(Build& b) {
  Tensor x = b["self"];
  std::vector<Tensor> indices = b.tensors("indices");
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d]) indices[d] = aten("clamp", indices[d], 0, x.sizes()[d] - 1);
  Tensor read = aten("index.Tensor", x, indices);
  Tensor outside = aten("bitwise_not", b["mask"]);
  return aten("masked_fill.Scalar", read, outside, b.arg("fill"));
}

Results masked_add(Build& b) {
  Tensor x = b["self"];
  std::vector<Tensor> indices = b.tensors("indices");
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d]) indices[d] = aten("clamp", indices[d], -x.sizes()[d], x.sizes()[d] - 1);
  Tensor outside = aten("bitwise_not", b["mask"]);
  Tensor values = aten("masked_fill.Scalar", b["values"], outside, 0);
  return aten("index_put", x, indices, values, true);
}

Results is_among(Build& b) {
  Tensor x = b["elements"], among = b["test_elements"];
  if (!is_static(x) || !is_static(among) || b.flag("invert") || among.rank() == 0) return {};
  double count = static_cast<double>(x.numel().as_int());
  if (static_cast<double>(among.numel().as_int()) >= 10 * std::pow(count, 0.145)) return {};  // PyTorch sorts then
  Sizes sizes = x.sizes(), dims;
  for (size_t d = 0; d < among.rank(); ++d) {
    sizes.push_back(1);
    dims.push_back(-1 - static_cast<int64_t>(d));
  }
  Tensor equal = aten("eq.Tensor", aten("reshape", x, sizes), among);
  return aten("any.dims", equal, dims);
}

Results rolled(Build& b) {
  Tensor x = b["self"];
  Sizes shifts = b.ints("shifts"), dims = b.ints("dims");
  if (x.numel() == SymInt(0)) return aten("clone", x);
  if (dims.empty()) {
    if (shifts.size() != 1) return {};
    Tensor flat = aten("flatten.using_ints", x);
    Tensor made = aten("roll", flat, shifts, Sizes{0});
    return aten("view", made, x.sizes());
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    auto dim = static_cast<int64_t>(normal_dim(dims[i].as_int(), x.rank()));
    SymInt size = x.size(dim);
    if (!size.is_int() || !shifts[i].is_int()) return {};
    int64_t n = size.as_int(), start = ((n - shifts[i].as_int()) % n + n) % n;
    Tensor from = aten("fmod.Scalar", aten("add.Tensor", range_of(size, x), start), n);
    x = aten("index_select", x, dim, from);
  }
  return one(x);
}

Results cross_product(Build& b) {
  Tensor x = b["self"], y = b["other"];
  if (x.sizes() != y.sizes()) return {};
  auto dim = static_cast<int64_t>(b.dim("dim", x.rank()));
  Tensor places = range_of(3, x);
  auto turned = [&](const Tensor& t, int64_t by) {
    Tensor at = aten("remainder.Scalar", aten("add.Tensor", places, by), 3);
    return Tensor(aten("index_select", t, dim, at));
  };
  Tensor left = turned(x, 1), with_left = turned(y, 2);
  Tensor first = aten("mul.Tensor", left, with_left);
  Tensor right = turned(x, 2), with_right = turned(y, 1);
  Tensor second = aten("mul.Tensor", right, with_right);
  return aten("sub.Tensor", first, second);
}

Results windows_added(Build& b) {
  Tensor grad = b["grad_in"];
  Sizes sizes = b.ints("input_sizes");
  if (sizes.empty()) return {};
  auto dim = static_cast<int64_t>(b.dim("dim", sizes.size()));
  Tensor zeros = full_of(sizes, 0, grad);
  Tensor places = aten("arange.start_step", 0, sizes[static_cast<size_t>(dim)], kw("dtype", DType::i32), layout(),
                       device(grad), unpinned());
  places = aten("flatten.using_ints", aten("unfold", places, 0, b.arg("size"), b.arg("step")));
  Tensor moved = aten("movedim.int", grad, -1, dim + 1);
  Tensor values = aten("flatten.using_ints", moved, dim, dim + 1);
  return aten("index_put", zeros, along(static_cast<size_t>(dim), places), values, true);
}

Results columns_of_windows(Build& b) {
  Tensor x = b["self"];
  if (x.rank() != 4 || !is_static(x)) return {};
  Sizes kernel = b.ints("kernel_size"), dilation = b.ints("dilation"), padding = b.ints("padding"),
        stride = b.ints("stride");
  std::vector<Tensor> places;
  Sizes counts;
  auto range = [&](int64_t end, int64_t step) {
    return Tensor(aten("arange.start_step", 0, end, step, kw("dtype", DType::i64), device(x), unpinned()));
  };
  for (size_t d = 0; d < 2; ++d) {
    int64_t size = x.sizes()[d + 2].as_int(), k = kernel[d].as_int(), step = dilation[d].as_int();
    int64_t end = size + 2 * padding[d].as_int() - step * (k - 1);
    Tensor blocks = aten("unsqueeze", range(end, stride[d].as_int()), 0);
    Tensor within = aten("unsqueeze", range(k * step, step), -1);
    places.push_back(aten("add.Tensor", blocks, within));
    counts.push_back(places.back().size(1));
  }
  Tensor padded = aten("constant_pad_nd", x, Sizes{padding[1], padding[1], padding[0], padding[0]}, 0.0);
  Tensor rows = aten("unsqueeze", aten("unsqueeze", places[0], -1), -1);
  Tensor read = aten("index.Tensor", padded, std::vector<Tensor>{Tensor(), Tensor(), rows, places[1]});
  Tensor turned = aten("permute", read, Sizes{0, 1, 2, 4, 3, 5});
  return aten("reshape", turned, Sizes{x.sizes()[0], x.sizes()[1] * kernel[0] * kernel[1], counts[0] * counts[1]});
}

// Numbers put back where the largest of each window was.
Results unpooled(Build& b, size_t spatial) {
  Tensor x = b["self"], indices = b["indices"];
  if (!is_contiguous(x.meta()) || !is_contiguous(indices.meta())) return {};
  size_t outer = x.rank() - spatial;
  Sizes out = first_of(x.sizes(), outer), planes = out;
  SymInt count = 1, plane = 1;
  for (SymInt size : out) count = count * size;
  for (SymInt size : b.ints("output_size")) {
    out.push_back(size);
    planes.push_back(1);
    plane = plane * size;
  }
  Tensor first = aten("mul.Tensor", aten("view", range_of(count, x), planes), plane);
  Tensor at = aten("view", aten("add.Tensor", indices, first), Sizes{-1});
  Tensor zeros = aten("view", full_of(out, 0, x), Sizes{-1});
  Tensor put = aten("index_put", zeros, along(0, at), aten("view", x, Sizes{-1}));
  return aten("view", put, out);
}

// A dimension at a time, the first of the padded ones first.
template <class F>
Results padded_by_index(Build& b, F&& places_of) {
  Tensor x = b["self"];
  Sizes padding = b.ints("padding");
  size_t spatial = padding.size() / 2;
  for (size_t i = 0; i < spatial; ++i) {
    size_t dim = x.rank() - spatial + i, at = 2 * (spatial - 1 - i);
    SymInt size = x.sizes()[dim];
    Tensor range = aten("arange.start_step", -padding[at], size + padding[at + 1], layout(), device(x), unpinned());
    x = aten("index.Tensor", x, along(dim, places_of(range, size - 1), x.rank()));
  }
  return one(x);
}

Results reflected(Build& b) {
  return padded_by_index(b, [](const Tensor& range, SymInt last) {
    Tensor from_end = aten("sub.Tensor", last, aten("abs", range));
    return Tensor(aten("sub.Tensor", last, aten("abs", from_end)));
  });
}

Results replicated(Build& b) {
  return padded_by_index(b, [](const Tensor& range, SymInt last) { return Tensor(aten("clamp", range, 0, last)); });
}

Results on_a_diagonal(Build& b) {
  Tensor x = b["self"];
  size_t rank = x.rank() + 1;
  int64_t offset = b.constant("offset");
  size_t one_dim = b.dim("dim1", rank), other = b.dim("dim2", rank);
  if (one_dim > other) {
    std::swap(one_dim, other);
    offset = -offset;
  }
  if (offset != 0) {
    Sizes sizes = x.sizes();
    sizes.back() = std::abs(offset);
    Tensor zeros = full_of(sizes, 0, x);
    std::vector<Tensor> pair = offset > 0 ? std::vector{zeros, x} : std::vector{x, zeros};
    x = aten("cat", pair, -1);
  }
  SymInt size = x.sizes().back();
  Tensor wide = aten("unsqueeze", x, static_cast<int64_t>(one_dim));
  wide = aten("movedim.int", wide, -1, static_cast<int64_t>(other));
  auto range = [&](SymInt from) {
    return Tensor(
        aten("arange.start_step", from, size + from, kw("dtype", DType::i64), layout(), device(x), unpinned()));
  };
  Tensor across = range(0), down = aten("unsqueeze", range(offset), -1);
  Sizes sizes(rank, SymInt(1));
  sizes[one_dim] = sizes[other] = size;
  Tensor here = aten("view", aten("eq.Tensor", across, down), sizes);
  return aten("where.self", here, wide, scalar_of(0, x));
}

Results blocks_on_a_diagonal(Build& b) {
  std::vector<Tensor> blocks = b.tensors("tensors"), rows;
  SymInt width = 0, left = 0;
  for (const Tensor& block : blocks) {
    if (block.rank() != 2 || block.dtype() != blocks[0].dtype()) return {};
    width = width + block.sizes()[1];
  }
  for (const Tensor& block : blocks) {
    SymInt height = block.sizes()[0], right = width - left - block.sizes()[1];
    Tensor before = full_of(Sizes{height, left}, 0, block), behind = full_of(Sizes{height, right}, 0, block);
    rows.push_back(aten("cat", std::vector{before, block, behind}, 1));
    left = left + block.sizes()[1];
  }
  return aten("cat", rows);
}

Results chunks_side_by_side(Build& b) {
  std::vector<Tensor> parts;
  int64_t chunks = b.constant("num_chunks");
  size_t dim = 0;
  for (const Tensor& t : b.tensors("tensors")) {
    dim = b.dim("dim", t.rank());
    if (!is_static(t)) return {};
    int64_t size = t.sizes()[dim].as_int(), missing = (chunks - size % chunks) % chunks;
    Sizes padding(2 * (t.rank() - dim - 1), SymInt(0)), sizes = first_of(t.sizes(), dim);
    padding = joined(padding, {SymInt(0), SymInt(missing)});
    sizes = joined(sizes, {SymInt(chunks), SymInt(-1)});
    Tensor padded = missing == 0 ? t : Tensor(aten("constant_pad_nd", t, padding));
    parts.push_back(aten("view", padded, sizes));
  }
  return aten("cat", parts, static_cast<int64_t>(dim) + 1);
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::index_add", added_along},
      {"aten::index_copy", [](Build& b) { return put_along(b, b["source"], false); }},
      {"aten::index_fill.int_Scalar",
       [](Build& b) {
         Tensor x = b["self"];
         return filled_along(
             b, aten("scalar_tensor", b.arg("value"), kw("dtype", x.dtype()), layout(), device(x), unpinned()));
       }},
      {"aten::index_fill.int_Tensor", [](Build& b) { return filled_along(b, b["value"]); }},
      {"aten::_unsafe_masked_index", masked_read},
      {"aten::_unsafe_masked_index_put_accumulate", masked_add},
      {"aten::take",
       [](Build& b) {
         Tensor x = b["self"];
         if (!is_contiguous(x.meta())) return Results{};
         return aten("index.Tensor", aten("view", x, Sizes{-1}), along(0, b["index"]));
       }},
      {"aten::isin.Tensor_Tensor", is_among},
      {"aten::roll", rolled},
      {"aten::linalg_cross", cross_product},
      {"aten::unfold_backward", windows_added},
      {"aten::im2col", columns_of_windows},
      {"aten::max_unpool2d", [](Build& b) { return unpooled(b, 2); }},
      {"aten::max_unpool3d", [](Build& b) { return unpooled(b, 3); }},
      {"aten::reflection_pad1d", reflected},
      {"aten::reflection_pad2d", reflected},
      {"aten::reflection_pad3d", reflected},
      {"aten::replication_pad1d", replicated},
      {"aten::replication_pad2d", replicated},
      {"aten::replication_pad3d", replicated},
      {"aten::diag_embed", on_a_diagonal},
      {"aten::block_diag", blocks_on_a_diagonal},
      {"aten::_chunk_cat", chunks_side_by_side},
  };
  return all;
}

}  // namespace

Rule indexing_rule(std::string_view op) {
  auto at = rules().find(op);
  return at == rules().end() ? nullptr : at->second;
}

}  // namespace tenon::dialect
