#include "tenon/ops/fold.h"

#include "tenon/ops/accumulation.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/views.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle unfold_backward;
static Handle im2col, col2im;

namespace {

using loop::Expr;

// Blocks of an image and the columns made of them: [n, c, h, w] and [n, c * kh * kw, blocks].
struct Blocks {
  Sizes kernel, dilation, padding, stride, count;
};
Blocks blocks(const ArgsView& call, SymInt height, SymInt width) {
  Blocks b{call.ints("kernel_size", 2), call.ints("dilation", 2), call.ints("padding", 2), call.ints("stride", 2), {}};
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

// What the windows of a tensor of input_sizes give back: the gradient has the sizes of its unfold.
Metas gathered_windows(MetaCall& m) {
  const TensorMeta& grad = m.meta("grad_in");
  Sizes sizes = m.ints("input_sizes"), windows = sizes;
  const int64_t size = m.constant("size"), step = m.constant("step");
  m.require(size >= 0 && step > 0, "expected windows of a size and a positive step, got ", size, " and ", step);
  if (!sizes.empty()) {
    SymInt& count = windows[m.dim("dim", sizes.size())];
    count = sym::floor_div(count - size, step) + 1;
  }
  windows.push_back(size);
  m.require(grad.rank() == windows.size(), "grad_in: expected sizes ", windows, ", got ", grad);
  for (size_t d = 0; d < windows.size(); ++d)
    relies_on_equal(m, grad.sizes[d], windows[d], "grad_in: expected sizes ", windows, ", got ", grad);
  return like(grad, sizes);
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
  const TensorMeta& x = m.meta("self");
  m.require(x.rank() == 3 || x.rank() == 4, "expected an image of 3 or 4 dimensions, got ", x);
  size_t r = x.rank();
  Blocks b = blocks(m, x.sizes[r - 2], x.sizes[r - 1]);
  Sizes sizes;
  if (r == 4) sizes.push_back(x.sizes[0]);
  sizes.push_back(x.sizes[r - 3] * b.kernel[0] * b.kernel[1]);
  sizes.push_back(b.count[0] * b.count[1]);
  return like(x, sizes);
}

void lower_im2col(Lower& l) {
  Ref x = l["self"];
  size_t r = x.sizes().size();
  Blocks b = blocks(l, x.size(r - 2), x.size(r - 1));
  l.tensor([&](const Index& i) {
    auto [at, inside] = block_place(l, b, x.size(r - 2), x.size(r - 1), i[r - 3], i[r - 2]);
    if (r == 4) at.insert(at.begin(), i[0]);
    return x.at_if(inside, at, 0);
  });
}

Metas col2im_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  m.require(x.rank() == 2 || x.rank() == 3, "expected columns of 2 or 3 dimensions, got ", x);
  Sizes image = m.ints("output_size", 2);
  Blocks b = blocks(m, image[0], image[1]);
  SymInt rows = x.sizes[x.rank() - 2], n = x.sizes[x.rank() - 1], expected = b.count[0] * b.count[1];
  relies_on_equal(m, n, expected, "expected ", expected, " blocks for these sizes, got ", x);
  Sizes sizes;
  if (x.rank() == 3) sizes.push_back(x.sizes[0]);
  sizes.push_back(sym::floor_div(rows, b.kernel[0] * b.kernel[1]));
  sizes.push_back(image[0]);
  sizes.push_back(image[1]);
  return like(x, sizes);
}

void lower_col2im(Lower& l) {
  Ref x = l["self"];
  Sizes image = l.ints("output_size", 2);
  Blocks b = blocks(l, image[0], image[1]);
  size_t r = x.sizes().size();
  accumulate(l, Sizes(x.sizes()), [&](Ref target, const Index& i) {
    auto [at, inside] = block_place(l, b, image[0], image[1], i[r - 2], i[r - 1]);
    if (r == 3) at.insert(at.begin(), i[0]);
    l.store_if(inside, target, at, x.at(i), loop::Mode::add);
  });
}

}  // namespace

void register_fold(Registry& ops) {
  ops.add(
      im2col,
      {
          .schema = "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
          .meta = im2col_meta,
          .lower = lower_im2col,
          .vjp = {{"self",
                   [](Vjp& v) {
                     const Sizes& s = v["self"].sizes();
                     return col2im(v.grad(), Sizes{s[s.size() - 2], s[s.size() - 1]}, v.arg("kernel_size"),
                                   v.arg("dilation"), v.arg("padding"), v.arg("stride"));
                   }}},
          .complex = [](Build& b) { return by_parts(b, "self"); },
      });
  ops.add(col2im,
          {
              .schema = "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] "
                        "padding, int[2] stride) -> Tensor",
              .meta = col2im_meta,
              .lower = lower_col2im,
              .vjp = {{"self",
                       [](Vjp& v) {
                         return im2col(v.grad(), v.arg("kernel_size"), v.arg("dilation"), v.arg("padding"),
                                       v.arg("stride"));
                       }}},
              .complex = [](Build& b) { return by_parts(b, "self"); },
          });
  ops.add(unfold_backward,
          {
              .schema = "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
              .meta = gathered_windows,
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
              .complex = [](Build& b) { return by_parts(b, "grad_in"); },
          });
}

}  // namespace tenon
