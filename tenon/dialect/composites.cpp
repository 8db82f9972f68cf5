// Composites that alias or write, which no functional dialect can keep: what PyTorch makes of each, call by call.
#include <algorithm>
#include <unordered_map>

#include "tenon/dialect/rules.h"
#include "tenon/ops/views.h"
#include "tenon/rules/memory_format.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon::dialect {
namespace {

Results reshaped(const Tensor& x, const Sizes& wanted, const ArgsView& call) {
  Sizes sizes = inferred_sizes(wanted, x.numel(), call);
  bool symbolic = std::any_of(sizes.begin(), sizes.end(), [](SymInt s) { return !s.is_int(); });
  if (view_strides(x.sizes(), x.strides(), sizes)) return aten("view", x, symbolic ? wanted : sizes);
  Tensor dense = aten("clone", x, kw("memory_format", MemoryFormat::contiguous));
  return aten("_unsafe_view", dense, sizes);
}

Results contiguous(const Tensor& x, MemoryFormat format) {
  if (is_contiguous(x.meta(), format)) return one(x);
  return aten("clone", x, kw("memory_format", format));
}

MemoryFormat format_of(const ArgsView& call, const char* name, MemoryFormat otherwise) {
  auto* format = call.arg(name).get<MemoryFormat>();
  return format ? *format : otherwise;
}

Results converted(Build& b, std::optional<DType> dtype) {
  Tensor x = b["self"];
  bool copies = b.op.schema.find("copy") >= 0 && b.given("copy") && b.flag("copy");
  bool same_type = !dtype || *dtype == x.dtype();
  bool has_format = b.given("memory_format");
  MemoryFormat format = format_of(b, "memory_format", MemoryFormat::preserve);
  bool same_format = !has_format || format == MemoryFormat::preserve || is_contiguous(x.meta(), format);
  bool moves = false;
  if (int at = b.op.schema.find("device"); at >= 0)
    if (auto* device = b.args[static_cast<size_t>(at)].get<Device>()) moves = device->type != x.meta().device.type;
  if (same_type && same_format && !copies && !moves) return one(x);
  std::vector<Given> given = {Given(x)};
  if (dtype) given.push_back(kw("dtype", *dtype));
  if (int at = b.op.schema.find("device"); at >= 0 && b.given("device"))
    given.push_back(kw("device", b.args[static_cast<size_t>(at)]));
  if (has_format && format != MemoryFormat::preserve) given.push_back(kw("memory_format", format));
  return call_bound(aten_op("_to_copy"), given);
}

Results split_along(const Tensor& x, const Sizes& indices, size_t dim) {
  std::vector<Tensor> out;
  SymInt start = 0;
  auto d = static_cast<int64_t>(dim);
  for (SymInt end : indices) {
    out.push_back(aten("slice.Tensor", x, d, start, end));
    start = end;
  }
  out.push_back(aten("slice.Tensor", x, d, start, x.sizes()[dim]));
  return many(std::move(out));
}

Results split_in(const Tensor& x, int64_t sections, size_t dim) {
  std::vector<Tensor> out;
  SymInt size = x.sizes()[dim], least = sym::floor_div(size, sections), longer = sym::mod(size, sections), start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    sym::Expr more = sym::gt(longer, i);
    auto sure = proven(more);
    SymInt length = !sure ? sym::where(more, least + 1, least) : *sure ? least + 1 : least;
    out.push_back(aten("slice.Tensor", x, static_cast<int64_t>(dim), start, start + length));
    start = start + length;
  }
  return many(std::move(out));
}

Results chunked(Build& b, std::string_view split, std::string_view with_sizes) {
  Tensor x = b["self"];
  size_t dim = b.dim("dim", x.rank());
  int64_t chunks = b.constant("chunks");
  SymInt size = x.sizes()[dim], each = sym::floor_div(size + (chunks - 1), chunks);
  if (size == SymInt(0) || !size.is_int()) {  // of a symbolic size, split could not tell how many pieces there are
    Sizes sizes(static_cast<size_t>(chunks), each);
    sizes.back() = size - each * (chunks - 1);
    return aten(with_sizes, x, sizes, b.arg("dim"));
  }
  return aten(split, x, each, b.arg("dim"));
}

Sizes moved_dims(const Sizes& source, const Sizes& destination, size_t rank) {
  std::vector<int64_t> order(rank, -1);
  std::vector<bool> taken(rank);
  for (size_t i = 0; i < source.size(); ++i) {
    size_t from = normal_dim(source[i].as_int(), rank), to = normal_dim(destination[i].as_int(), rank);
    order[to] = static_cast<int64_t>(from);
    taken[from] = true;
  }
  size_t next = 0;
  Sizes out;
  for (size_t d = 0; d < rank; ++d) {
    if (order[d] < 0) {
      while (taken[next]) ++next;
      order[d] = static_cast<int64_t>(next++);
    }
    out.push_back(order[d]);
  }
  return out;
}

Results moved(Build& b) {
  Tensor x = b["self"];
  if (x.rank() == 0) return aten("alias", x);  // dimensions 0 and -1 may be named all the same
  auto list = [&](const char* name) { return b.arg(name).is<SymInt>() ? Sizes{b.integer(name)} : b.ints(name); };
  Sizes source = list("source"), destination = list("destination");
  return aten("permute", x, moved_dims(source, destination, x.rank()));
}

Results narrowed(Build& b) {
  Tensor x = b["self"];
  int64_t dim = b.constant("dim");
  SymInt start = b.integer("start"), size = x.size(dim);
  if (start.is_int() && start.as_int() < 0) start = start + size;
  return aten("slice.Tensor", x, dim, start, start + b.integer("length"));
}

Results matrix_transposed(Build& b) { return aten("transpose.int", b["self"], -2, -1); }

Results conjugated(const Tensor& x) { return is_complex(x.dtype()) ? aten("_conj", x) : one(x); }
Results matrix_adjoint(Build& b) { return conjugated(matrix_transposed(b)); }
Results itself(Build& b) { return one(b["self"]); }
Results cloned(Build& b) { return aten("clone", b["self"]); }

// A diagonal is one long stride through its tensor; a tall matrix may have further ones below.
Results diagonal_filled(Build& b) {
  Tensor x = b["self"];
  TensorMeta meta = x.meta();
  SymInt size = meta.sizes[0], stride = 0;
  for (size_t d = 0; d < meta.rank(); ++d) {
    size = sym::min(size, meta.sizes[d]);
    stride = stride + meta.strides[d];
  }
  auto fill = [&](SymInt count, SymInt offset) {
    aten("fill_.Scalar", aten("as_strided", x, Sizes{count}, Sizes{stride}, offset), b.arg("fill_value"));
  };
  fill(size, meta.offset);
  if (b.flag("wrap") && meta.rank() == 2) {
    SymInt rows = meta.sizes[0], width = meta.sizes[1];
    if (!rows.is_int() || !width.is_int()) return {};
    if (rows.as_int() > width.as_int() + 1) {
      SymInt all = sym::floor_div(rows * width + width, width + SymInt(1));
      fill(all - size, meta.offset + meta.strides[0] * (width + SymInt(1)));
    }
  }
  return one(x);
}

Results dropped(Build& b) {
  Tensor x = b["input"];
  if (b.flag("train") && b.number("p") != 0) return one(aten("native_dropout", x, b.arg("p"), b.arg("train"))[0]);
  return one(x);
}

Results batch_normalized(Build& b) {
  Tensor x = b["input"];
  bool training = b.flag("training"), stats = b.given("running_mean");
  if (x.numel() == SymInt(0)) {
    Tensor out = aten("clone", x);
    if (b.given("weight")) out = aten("mul.Tensor", out, aten("select.int", b["weight"], 0, 0));
    if (b.given("bias")) out = aten("add.Tensor", out, aten("select.int", b["bias"], 0, 0));
    return one(out);
  }
  if (!training)
    return one(aten("_native_batch_norm_legit_no_training", x, b.arg("weight"), b.arg("bias"), b.arg("running_mean"),
                    b.arg("running_var"), b.arg("momentum"), b.arg("eps"))[0]);
  if (!stats)
    return one(aten("_native_batch_norm_legit.no_stats", x, b.arg("weight"), b.arg("bias"), true, b.arg("momentum"),
                    b.arg("eps"))[0]);
  return one(aten("_native_batch_norm_legit", x, b.arg("weight"), b.arg("bias"), b.arg("running_mean"),
                  b.arg("running_var"), true, b.arg("momentum"), b.arg("eps"))[0]);
}

// A split along the first dimension, or along a later one where the tensor has more.
template <int of>
Results split_by_sections(Build& b) {
  Tensor x = b["self"];
  size_t dim = of == 0 ? (x.rank() == 1 ? 0 : 1) : of == 1 ? 0 : 2;
  return split_in(x, b.constant("sections"), dim);
}
template <int of>
Results split_by_indices(Build& b) {
  Tensor x = b["self"];
  size_t dim = of == 0 ? (x.rank() == 1 ? 0 : 1) : of == 1 ? 0 : 2;
  return split_along(x, b.ints("indices"), dim);
}

Results at_least(const Tensor& x, size_t rank) {
  if (x.rank() >= rank) return one(x);
  if (x.rank() == 0) return aten("view", x, Sizes(rank, SymInt(1)));
  if (rank == 2) return aten("unsqueeze", x, 0);
  if (x.rank() == 1) {
    Tensor wide = aten("unsqueeze", x, 0);
    return aten("unsqueeze", wide, -1);
  }
  return aten("unsqueeze", x, -1);
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::reshape", [](Build& b) { return reshaped(b["self"], b.ints("shape"), b); }},
      {"aten::reshape_as", [](Build& b) { return reshaped(b["self"], b["other"].sizes(), b); }},
      {"aten::view_as", [](Build& b) { return aten("view", b["self"], b["other"].sizes()); }},
      {"aten::expand_as", [](Build& b) { return aten("expand", b["self"], b["other"].sizes()); }},
      {"aten::broadcast_to", [](Build& b) { return aten("expand", b["self"], b.ints("size")); }},
      {"aten::flatten.using_ints",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         if (x.rank() == 0) return reshaped(x, {1}, b);
         size_t first = b.dim("start_dim", x.rank()), last = b.dim("end_dim", x.rank());
         if (first == last) return one(x);
         Sizes sizes;
         SymInt joined = 1;
         for (size_t d = 0; d < x.rank(); ++d) {
           if (d >= first && d <= last) joined = joined * x.sizes()[d];
           else sizes.push_back(x.sizes()[d]);
           if (d == last) sizes.push_back(joined);
         }
         return reshaped(x, sizes, b);
       }},
      {"aten::ravel",
       [](Build& b) -> Results {
         return aten("view", Tensor(contiguous(b["self"], MemoryFormat::contiguous)), Sizes{-1});
       }},
      {"aten::unflatten.int",
       [](Build& b) -> Results {
         Tensor x = b["self"];
         size_t dim = b.dim("dim", x.rank());
         Sizes sizes, within = inferred_sizes(b.ints("sizes"), x.sizes()[dim], b);
         for (size_t d = 0; d < x.rank(); ++d) {
           if (d == dim)
             for (SymInt size : within) sizes.push_back(size);
           else sizes.push_back(x.sizes()[d]);
         }
         return aten("view", x, sizes);
       }},
      {"aten::contiguous",
       [](Build& b) { return contiguous(b["self"], format_of(b, "memory_format", MemoryFormat::contiguous)); }},
      {"aten::to.dtype", [](Build& b) { return converted(b, b.dtype("dtype")); }},
      {"aten::to.device", [](Build& b) { return converted(b, b.dtype("dtype")); }},
      {"aten::to.dtype_layout", [](Build& b) { return converted(b, b.dtype("dtype")); }},
      {"aten::to.other", [](Build& b) { return converted(b, b["other"].dtype()); }},
      {"aten::chunk", [](Build& b) { return chunked(b, "split.Tensor", "split_with_sizes"); }},
      {"aten::unsafe_chunk", [](Build& b) { return chunked(b, "unsafe_split.Tensor", "unsafe_split_with_sizes"); }},
      {"aten::split.sizes",
       [](Build& b) { return aten("split_with_sizes", b["self"], b.ints("split_size"), b.arg("dim")); }},
      {"aten::tensor_split.sections",
       [](Build& b) { return split_in(b["self"], b.constant("sections"), b.dim("dim", b["self"].rank())); }},
      {"aten::tensor_split.indices",
       [](Build& b) { return split_along(b["self"], b.ints("indices"), b.dim("dim", b["self"].rank())); }},
      {"aten::hsplit.int", split_by_sections<0>},
      {"aten::vsplit.int", split_by_sections<1>},
      {"aten::dsplit.int", split_by_sections<2>},
      {"aten::hsplit.array", split_by_indices<0>},
      {"aten::vsplit.array", split_by_indices<1>},
      {"aten::dsplit.array", split_by_indices<2>},
      {"aten::movedim.int", moved},
      {"aten::movedim.intlist", moved},
      {"aten::moveaxis.int", moved},
      {"aten::moveaxis.intlist", moved},
      {"aten::swapaxes", [](Build& b) { return aten("transpose.int", b["self"], b.arg("axis0"), b.arg("axis1")); }},
      {"aten::swapdims", [](Build& b) { return aten("transpose.int", b["self"], b.arg("dim0"), b.arg("dim1")); }},
      {"aten::narrow", narrowed},
      {"aten::mT", matrix_transposed},
      {"aten::mH", matrix_adjoint},
      {"aten::adjoint", matrix_adjoint},
      {"aten::matrix_H", matrix_adjoint},
      {"aten::numpy_T",
       [](Build& b) {
         Sizes dims;
         for (size_t d = b["self"].rank(); d-- > 0;) dims.push_back(static_cast<int64_t>(d));
         return aten("permute", b["self"], dims);
       }},
      {"aten::linalg_diagonal",
       [](Build& b) { return aten("diagonal", b["A"], b.arg("offset"), b.arg("dim1"), b.arg("dim2")); }},
      {"aten::atleast_1d", [](Build& b) { return at_least(b["self"], 1); }},
      {"aten::atleast_2d", [](Build& b) { return at_least(b["self"], 2); }},
      {"aten::atleast_3d", [](Build& b) { return at_least(b["self"], 3); }},
      {"aten::conj", [](Build& b) { return conjugated(b["self"]); }},
      {"aten::resolve_conj", itself},
      {"aten::resolve_neg", itself},
      {"aten::positive", itself},
      {"aten::real",
       [](Build& b) {
         Tensor x = b["self"];
         if (!is_complex(x.dtype())) return one(x);
         return aten("select.int", aten("view_as_real", x), static_cast<int64_t>(x.rank()), 0);
       }},
      {"aten::lift_fresh_copy", cloned},
      {"aten::detach_", itself},
      {"aten::fill_diagonal_", diagonal_filled},
      {"aten::dropout", dropped},
      {"aten::batch_norm", batch_normalized},
  };
  return all;
}

Results shrunk_hard(Build& b) {
  Tensor x = b["self"], inside = aten("le.Scalar", aten("abs", x), b.arg("lambd"));
  return aten("where.ScalarSelf", inside, 0, x);
}

Results shrunk_softly(Build& b) {
  Tensor x = b["self"], outside = aten("gt.Scalar", aten("abs", x), b.arg("lambd"));
  Tensor moved = aten("sub.Tensor", x, aten("mul.Tensor", aten("sign", x), b.arg("lambd")));
  return aten("where.self", outside, moved, aten("mul.Tensor", x, 0));
}

Results batch_normalized_in_training(Build& b) {
  if (!b.flag("training") || !b.given("running_mean")) return {};
  return aten("_native_batch_norm_legit", b["input"], b.arg("weight"), b.arg("bias"), b["running_mean"],
              b["running_var"], true, b.arg("momentum"), b.arg("eps"));
}

// Operators that PyTorch replaces in every dialect, although it has kernels for them.
const std::unordered_map<std::string_view, Rule>& dispatched() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::hardshrink", shrunk_hard},
      {"aten::softshrink", shrunk_softly},
      {"aten::multi_margin_loss", loss_rule("aten::multi_margin_loss")},
      {"aten::native_batch_norm", batch_normalized_in_training},
      {"aten::lift_fresh_copy", cloned},  // of constants, which are inputs now
      {"aten::detach_", itself},
  };
  return all;
}

}  // namespace

Rule dispatched_rule(std::string_view op) {
  auto at = dispatched().find(op);
  return at == dispatched().end() ? nullptr : at->second;
}

Rule composite_rule(std::string_view op) {
  if (auto at = rules().find(op); at != rules().end()) return at->second;
  return functional_composite_rule(op);
}

}  // namespace tenon::dialect
