// Elements in another order or more often: repeat, flip, roll, windows; and the copies of views.
#include <algorithm>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/index.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle flip, repeat, repeat_interleave_int, roll, unfold_backward;
static Handle im2col, col2im;

namespace {

using loop::Expr;

Sizes kept_strides(const TensorMeta& x) {
  if (is_dense(x)) return x.strides;
  const TensorMeta* operand = &x;
  return pointwise_strides(x.sizes, std::span<const TensorMeta* const>(&operand, 1));
}

Metas repeat_meta(MetaCall& m) {
  const TensorMeta& x = m.meta(0);
  Sizes repeats = m.ints(1), sizes;
  m.require(repeats.size() >= x.rank(), "expected at least ", x.rank(), " repeats, got ", repeats);
  for (size_t i = 0; i < repeats.size(); ++i) {
    m.require(!repeats[i].is_int() || repeats[i].as_int() >= 0, "repeats must not be negative, got ", repeats);
    size_t fresh = repeats.size() - x.rank();
    sizes.push_back(i < fresh ? repeats[i] : repeats[i] * x.sizes[i - fresh]);
  }
  return like(x, sizes);
}

void lower_repeat(Lower& l) {
  Ref x = l[0];
  size_t rank = x.sizes().size();
  l.tensor([&](const Index& i) {
    Index at;
    for (size_t d = 0; d < rank; ++d) {
      Expr own = i[i.size() - rank + d];
      at.push_back(
          x.size(d) == l.out().size(i.size() - rank + d) ? own : call(loop::Fn::remainder, own, l.extent(x.size(d))));
    }
    return x.at(at);
  });
}

// Each repeat is a dimension of its own; the sum over them is what one element gets.
Grads repeat_vjp(Vjp& v) {
  Sizes repeats = v.ints(1), own = v[0].sizes(), split, dims;
  size_t fresh = repeats.size() - own.size();
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (i < fresh || !(repeats[i] == SymInt(1))) {
      dims.push_back(static_cast<int64_t>(split.size()));
      split.push_back(repeats[i]);
    }
    if (i >= fresh) split.push_back(own[i - fresh]);
  }
  for (SymInt r : repeats)
    if (r == SymInt(0)) return {zeros(own, v.grad(0))};
  if (dims.empty()) return {v.grad(0)};
  return {sum(reshape(v.grad(0), split), dims)};
}

Tensor repeated(const Tensor& x, Sizes repeats) {
  while (repeats.size() < x.rank()) repeats.insert(0, 1);
  return repeat(x, repeats);
}

Tensor interleaved(Tensor x, SymInt times, const CallArg& dim_arg, const ArgsView& call) {
  size_t dim = 0;
  if (dim_arg.is_none()) x = reshape(x, Sizes{x.numel()});
  else {
    if (x.rank() == 0) x = reshape(x, Sizes{1});
    dim = normal_dim(dim_arg.get<SymInt>()->as_int(), x.rank());
  }
  call.require(!times.is_int() || times.as_int() >= 0, "repeats must not be negative, got ", times);
  Sizes wide = x.sizes(), flat = x.sizes();
  wide.insert(dim + 1, times);
  flat[dim] = flat[dim] * times;
  Tensor spread = expand(unsqueeze(x, static_cast<int64_t>(dim + 1)), wide);
  return view(clone(spread, MemoryFormat::contiguous), flat);
}

Metas flip_meta(MetaCall& m) {
  if (!m.ints(1).empty()) m.dims(1, m.meta(0).rank());
  TensorMeta out = like(m.meta(0), m.meta(0).sizes);
  out.strides = kept_strides(m.meta(0));
  return out;
}

void lower_flip(Lower& l) {
  Ref x = l[0];
  SmallVector<size_t, 6> dims;
  if (!l.ints(1).empty()) dims = l.dims(1, x.sizes().size());
  l.tensor([&](const Index& i) {
    Index at = i;
    for (size_t d : dims) at[d] = l.extent(x.size(d) - 1) - i[d];
    return x.at(at);
  });
}

Metas roll_meta(MetaCall& m) {
  size_t shifts = m.ints(1).size(), dims = m.ints(2).size();
  m.require(shifts > 0, "expected at least one shift");
  m.require(dims == shifts || (dims == 0 && shifts == 1), "expected as many dims as shifts, got ", m.ints(1), " and ",
            m.ints(2));
  for (SymInt d : m.ints(2)) normal_dim(d.as_int(), m.meta(0).rank());
  return like(m.meta(0), m.meta(0).sizes);
}

void lower_roll(Lower& l) {
  Ref x = l[0];
  Sizes shifts = l.ints(1), dims = l.ints(2), sizes = x.sizes();
  l.tensor([&](const Index& i) {
    Index at = i;
    if (dims.empty() && !sizes.empty()) {  // of the elements in row-major order
      Expr flat = i[0];
      for (size_t d = 1; d < sizes.size(); ++d) flat = flat * l.extent(sizes[d]) + i[d];
      flat = call(loop::Fn::remainder, flat - l.extent(shifts[0]), l.extent(count(sizes)));
      for (size_t d = sizes.size(); d-- > 0;) {
        at[d] = call(loop::Fn::remainder, flat, l.extent(sizes[d]));
        flat = call(loop::Fn::floor_div, flat, l.extent(sizes[d]));
      }
    }
    if (sizes.empty()) return x.at(at);
    for (size_t k = 0; k < dims.size(); ++k) {
      size_t d = normal_dim(dims[k].as_int(), sizes.size());
      at[d] = call(loop::Fn::remainder, at[d] - l.extent(shifts[k]), l.extent(sizes[d]));
    }
    return x.at(at);
  });
}

// The middle becomes the front, or the other way round where `extra` is 1.
Results turned_by_half(Build& b, int64_t extra) {
  Tensor x = b[0];
  Sizes shifts, dims;
  if (b.given(1)) dims = b.ints(1);
  else
    for (size_t d = 0; d < x.rank(); ++d) dims.push_back(static_cast<int64_t>(d));
  for (SymInt d : dims) {
    b.require(d.is_int(), "dim: expected constants, got ", dims);
    shifts.push_back(sym::floor_div(x.size(d.as_int()) + extra, 2));
  }
  return dims.empty() ? clone(x) : roll(x, shifts, dims);
}

Results rotated(Build& b) {
  Tensor x = b[0];
  Sizes dims = b.ints(2);
  b.require(dims.size() == 2, "expected two dims, got ", dims);
  b.require(x.rank() >= 2, "expected at least 2 dimensions, got ", x.meta());
  size_t first = normal_dim(dims[0].as_int(), x.rank()), second = normal_dim(dims[1].as_int(), x.rank());
  b.require(first != second, "the two dims must differ, both are ", first);
  switch ((b.constant(1) % 4 + 4) % 4) {
    case 1: return transpose(flip(x, Sizes{dims[1]}), dims[0], dims[1]);
    case 2: return flip(x, dims);
    case 3: return transpose(flip(x, Sizes{dims[0]}), dims[0], dims[1]);
    default: return clone(x, MemoryFormat::contiguous);
  }
}

// Adds to a zeroed result (through a wider buffer where its dtype is narrow), at the places the body stores to.
void accumulate(Lower& l, const Sizes& domain, const std::function<void(Ref, const Index&)>& body) {
  Ref out = l.out();
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  l.fill(target, l.constant(0, loop::compute_of(compute)));
  l.stage(domain, [&](const Index& i) { body(target, i); });
  if (target.id != out.id) l.copy(target, out);
}

// Blocks of an image and the columns made of them: [n, c, h, w] and [n, c * kh * kw, blocks].
struct Blocks {
  Sizes kernel, dilation, padding, stride, count;
};
Blocks blocks(const ArgsView& call, size_t at, SymInt height, SymInt width) {
  Blocks b{call.ints(at, 2), call.ints(at + 1, 2), call.ints(at + 2, 2), call.ints(at + 3, 2), {}};
  SymInt size[] = {height, width};
  for (size_t k = 0; k < 2; ++k) {
    call.require(!(b.stride[k] == SymInt(0)) && !(b.kernel[k] == SymInt(0)), "kernel and stride must be positive, got ",
                 b.kernel, " and ", b.stride);
    b.count.push_back(sym::floor_div(size[k] + b.padding[k] * 2 - b.dilation[k] * (b.kernel[k] - 1) - 1, b.stride[k]) +
                      1);
    call.require(!b.count[k].is_int() || b.count[k].as_int() > 0, "no block of ", b.kernel, " fits into an image of [",
                 height, ", ", width, "]");
  }
  return b;
}

// The image element behind column element (row, block), and whether it is inside.
std::pair<Index, Expr> block_place(Lower& l, const Blocks& b, SymInt height, SymInt width, Expr row, Expr block) {
  auto fd = [&](Expr a, SymInt n) { return call(loop::Fn::floor_div, a, l.extent(n)); };
  auto rem = [&](Expr a, SymInt n) { return call(loop::Fn::remainder, a, l.extent(n)); };
  Expr kx = rem(row, b.kernel[1]), ky = rem(fd(row, b.kernel[1]), b.kernel[0]),
       channel = fd(row, b.kernel[0] * b.kernel[1]);
  Expr y = fd(block, b.count[1]) * l.extent(b.stride[0]) - l.extent(b.padding[0]) + ky * l.extent(b.dilation[0]);
  Expr x = rem(block, b.count[1]) * l.extent(b.stride[1]) - l.extent(b.padding[1]) + kx * l.extent(b.dilation[1]);
  return {Index{channel, y, x}, y >= 0 && y < l.extent(height) && x >= 0 && x < l.extent(width)};
}

Metas im2col_meta(MetaCall& m) {
  const TensorMeta& x = m.meta(0);
  m.require(x.rank() == 3 || x.rank() == 4, "expected an image of 3 or 4 dimensions, got ", x);
  size_t r = x.rank();
  Blocks b = blocks(m, 1, x.sizes[r - 2], x.sizes[r - 1]);
  Sizes sizes;
  if (r == 4) sizes.push_back(x.sizes[0]);
  sizes.push_back(x.sizes[r - 3] * b.kernel[0] * b.kernel[1]);
  sizes.push_back(b.count[0] * b.count[1]);
  return like(x, sizes);
}

void lower_im2col(Lower& l) {
  Ref x = l[0];
  size_t r = x.sizes().size();
  Blocks b = blocks(l, 1, x.size(r - 2), x.size(r - 1));
  l.tensor([&](const Index& i) {
    auto [at, inside] = block_place(l, b, x.size(r - 2), x.size(r - 1), i[r - 3], i[r - 2]);
    if (r == 4) at.insert(at.begin(), i[0]);
    return x.at_if(inside, at, 0);
  });
}

Metas col2im_meta(MetaCall& m) {
  const TensorMeta& x = m.meta(0);
  m.require(x.rank() == 2 || x.rank() == 3, "expected columns of 2 or 3 dimensions, got ", x);
  Sizes image = m.ints(1, 2);
  Blocks b = blocks(m, 2, image[0], image[1]);
  SymInt rows = x.sizes[x.rank() - 2], n = x.sizes[x.rank() - 1], expected = b.count[0] * b.count[1];
  m.require(!n.is_int() || !expected.is_int() || n == expected, "expected ", expected, " blocks for these sizes, got ",
            x);
  Sizes sizes;
  if (x.rank() == 3) sizes.push_back(x.sizes[0]);
  sizes.push_back(sym::floor_div(rows, b.kernel[0] * b.kernel[1]));
  sizes.push_back(image[0]);
  sizes.push_back(image[1]);
  return like(x, sizes);
}

void lower_col2im(Lower& l) {
  Ref x = l[0];
  Sizes image = l.ints(1, 2);
  Blocks b = blocks(l, 2, image[0], image[1]);
  size_t r = x.sizes().size();
  accumulate(l, Sizes(x.sizes()), [&](Ref target, const Index& i) {
    auto [at, inside] = block_place(l, b, image[0], image[1], i[r - 2], i[r - 1]);
    if (r == 3) at.insert(at.begin(), i[0]);
    l.store_if(inside, target, at, x.at(i), loop::Mode::add);
  });
}

// Sequences of different lengths side by side, the shorter ones filled up.
Results padded_together(Build& b) {
  std::vector<Tensor> sequences = b.tensors(0), padded;
  b.require(!sequences.empty(), "expected at least one sequence");
  bool right = b.string(3) == "right";
  b.require(right || b.string(3) == "left", "padding_side: expected 'left' or 'right', got ", quoted(b.string(3)));
  SymInt longest = 0;
  for (const Tensor& t : sequences) {
    b.require(t.rank() >= 1, "expected sequences of at least 1 dimension, got ", t.meta());
    longest = larger(longest, t.sizes()[0]);
  }
  for (const Tensor& t : sequences) {
    Sizes pads(2 * (t.rank() - 1), SymInt(0));
    SymInt missing = longest - t.sizes()[0];
    pads.push_back(right ? SymInt(0) : missing);
    pads.push_back(right ? missing : SymInt(0));
    padded.push_back(constant_pad_nd(t, pads, b.arg(2)));
  }
  return stack(padded, b.flag(1) ? 0 : 1);
}

// Each tensor cut into chunks along dim (the last one filled up with zeros), flattened behind it, and all joined.
Results chunks_joined(Build& b) {
  int64_t chunks = b.constant(2);
  b.require(chunks > 0, "num_chunks: expected a positive number, got ", chunks);
  std::vector<Tensor> parts;
  size_t dim = 0;
  for (const Tensor& t : b.tensors(0)) {
    dim = b.dim(1, t.rank());
    SymInt size = t.sizes()[dim], whole = sym::ceil_div(size, chunks) * chunks;
    Sizes pads(2 * (t.rank() - 1 - dim), SymInt(0)), sizes(std::span<const SymInt>(t.sizes().begin(), dim));
    pads.push_back(0);
    pads.push_back(whole - size);
    Tensor full = whole == size ? t : Tensor(constant_pad_nd(t, pads, 0));
    sizes.push_back(chunks);
    sizes.push_back(-1);
    parts.push_back(reshape(full, sizes));
  }
  b.require(!parts.empty(), "expected at least one tensor");
  return cat(parts, dim + 1);
}

// Positions that ascend are found in the grid of all positions; their number is known beforehand.
Results combined_elements(Build& b) {
  Tensor x = b[0];
  int64_t r = b.constant(1);
  bool again = b.flag(2);
  b.require(x.rank() == 1, "expected 1 dimension, got ", x.meta());
  b.require(r >= 0 && r <= 64, "r: expected 0 to 64, the most dimensions there are, got ", r);
  b.require(x.size(0).is_int(), "the number of elements must be known, it is ", x.size(0));
  if (r == 0) return full(Sizes{0}, 0, kw("dtype", x.dtype()));
  int64_t n = x.size(0).as_int(), top = again ? n + r - 1 : n, total = 1;
  for (int64_t i = 0; i < r; ++i) total = top - i <= 0 ? 0 : sym::checked_mul(total, top - i) / (i + 1);
  Tensor places = arange(0, n, 1);
  std::vector<Tensor> grids = meshgrid(std::vector<Tensor>(static_cast<size_t>(r), places)).list();
  Tensor ascending = ge(grids[0], 0);
  for (size_t i = 1; i < grids.size(); ++i)
    ascending = logical_and(ascending, again ? le(grids[i - 1], grids[i]) : lt(grids[i - 1], grids[i]));
  return take(x, nonzero_static(ascending, kw("size", total)));
}

// view_copy and its kin: the view of the same name, copied.
Results copied_view(Build& b) {
  std::string name = b.op.name();
  name.erase(name.find("_copy"), 5);
  const Op* op = registry().find(name);
  expect(op != nullptr, b.op.name(), " has no view to copy");
  Results r = call_op(*op, CallArgs(b.args.begin(), b.args.end()));
  if (!op->schema.returns[0].type.list) return clone(r, MemoryFormat::contiguous);
  std::vector<Tensor> out;
  for (const Tensor& t : r.list()) out.push_back(clone(t, MemoryFormat::contiguous));
  return many(std::move(out));
}

}  // namespace

void register_rearrange(Registry& ops) {
  ops.add(repeat, {
      .schema = "repeat(Tensor self, SymInt[] repeats) -> Tensor",
      .meta = repeat_meta,
      .lower = lower_repeat,
      .vjp = {{"self, repeats", repeat_vjp}},
  });
  ops.add({
      .schema = "tile(Tensor self, SymInt[] dims) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results { return one(repeated(b["self"], b.ints("dims"))); },
  });
  ops.add(repeat_interleave_int, {
      .schema = "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) "
                "-> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results { return one(interleaved(b["self"], b.integer("repeats"), b.arg("dim"), b)); },
  });
  ops.add(flip, {
      .schema = "flip(Tensor self, int[] dims) -> Tensor",
      .meta = flip_meta,
      .lower = lower_flip,
      .vjp = {{"self", [](Vjp& v) { return flip(v.grad(), v.arg("dims")); }}},
  });
  ops.add({
      .schema = "fliplr(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            b.require(b["self"].rank() >= 2, "expected at least 2 dimensions, got ", b["self"].meta());
            return flip(b["self"], Sizes{1});
          },
  });
  ops.add({
      .schema = "flipud(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            b.require(b["self"].rank() >= 1, "expected at least 1 dimension, got ", b["self"].meta());
            return flip(b["self"], Sizes{0});
          },
  });
  ops.add(roll, {
      .schema = "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
      .meta = roll_meta,
      .lower = lower_roll,
      .vjp = {{"self, shifts, dims", [](Vjp& v) -> Grads {
        Sizes back = v.ints("shifts");
        for (SymInt& s : back) s = -s;
        return {roll(v.grad(0), back, v.arg("dims"))};
      }}},
  });
  ops.add({
      .schema = "fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return turned_by_half(b, 0); },
  });
  ops.add({
      .schema = "fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return turned_by_half(b, 1); },
  });
  ops.add({
      .schema = "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
      .kind = OpKind::composite,
      .decompose = rotated,
  });
  ops.add(unfold_backward, {
      .schema = "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return like(m.meta("grad_in"), m.ints("input_sizes")); },
      .lower =
          [](Lower& l) {
            Ref grad = l["grad_in"];
            Sizes sizes = l.ints("input_sizes");
            size_t dim = l.dim("dim", sizes.size());
            accumulate(l, Sizes(grad.sizes()), [&](Ref target, const Index& i) {
              if (sizes.empty()) return l.store(target, {}, grad.at(i), loop::Mode::add);
              Index at = i.drop_last();
              l.store(target, at.with(dim, at[dim] * l.extent(l.integer("step")) + i.last()), grad.at(i),
                      loop::Mode::add);
            });
          },
      .vjp = {{"grad_in", [](Vjp& v) { return unfold(v.grad(), v.arg("dim"), v.arg("size"), v.arg("step")); }}},
  });
  ops.add({
      .schema = "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt "
                "step) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) { return slice_scatter(zeros(b.ints("input_sizes"), b["grad_output"]), b["grad_output"], b.arg("dim"), b.arg("start"), b.arg("end"), b.arg("step")); },
  });
  ops.add({
      .schema = "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return select_scatter(zeros(b.ints("input_sizes"), b["grad_output"]), b["grad_output"], b.arg("dim"), b.arg("index")); },
  });
  ops.add({
      .schema = "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) { return diagonal_scatter(zeros(b.ints("input_sizes"), b["grad_output"]), b["grad_output"], b.arg("offset"), b.arg("dim1"), b.arg("dim2")); },
  });
  ops.add(
      im2col,
      {
          .schema = "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
          .meta = im2col_meta,
          .lower = lower_im2col,
          .vjp = {{"self, kernel_size, dilation, padding, stride", [](Vjp& v) -> Grads {
            const Sizes& s = v["self"].sizes();
            return {col2im(v.grad(0), Sizes{s[s.size() - 2], s[s.size() - 1]}, v.arg("kernel_size"), v.arg("dilation"), v.arg("padding"), v.arg("stride"))};
          }}},
      });
  ops.add(col2im, {
      .schema = "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] "
                "padding, int[2] stride) -> Tensor",
      .meta = col2im_meta,
      .lower = lower_col2im,
      .vjp = {{"self", [](Vjp& v) { return im2col(v.grad(), v.arg("kernel_size"), v.arg("dilation"), v.arg("padding"), v.arg("stride")); }}},
  });
  ops.add({
      .schema = "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str "
                "padding_side=\"right\") -> Tensor",
      .kind = OpKind::composite,
      .decompose = padded_together,
  });
  ops.add({
      .schema = "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
      .kind = OpKind::composite,
      .decompose = chunks_joined,
  });
  ops.add({
      .schema = "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = combined_elements,
  });
  for (const char* schema : {
           "view_copy(Tensor self, SymInt[] size) -> Tensor",
           "view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor",
           "alias_copy(Tensor self) -> Tensor",
           "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
           "detach_copy(Tensor self) -> Tensor",
           "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
           "expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
           "permute_copy(Tensor self, int[] dims) -> Tensor",
           "_reshape_copy(Tensor self, SymInt[] size) -> Tensor",
           "select_copy.int(Tensor self, int dim, SymInt index) -> Tensor",
           "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
           "split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
           "split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
           "squeeze_copy(Tensor self) -> Tensor",
           "squeeze_copy.dim(Tensor self, int dim) -> Tensor",
           "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
           "t_copy(Tensor self) -> Tensor",
           "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor",
           "unbind_copy.int(Tensor self, int dim=0) -> Tensor[]",
           "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
           "unsqueeze_copy(Tensor self, int dim) -> Tensor",
       }) {
    if (std::string_view(schema).substr(0, 13) == "_reshape_copy")
      ops.add({.schema = schema, .kind = OpKind::composite, .decompose = [](Build& b) {
                 return clone(reshape(b[0], b.arg(1)), MemoryFormat::contiguous);
               }});
    else ops.add({.schema = schema, .kind = OpKind::composite, .decompose = copied_view});
  }
}

}  // namespace tenon
