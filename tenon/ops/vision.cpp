// Operators of torchvision: boxes that overlap, regions of images, convolutions whose windows are moved by offsets.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/scatter_gather.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

static Handle roi_align, roi_align_backward;

namespace {

constexpr const char* no_image = "region {} is of image {}, and there are {}";
constexpr const char* too_large = "region {} is so large that a bin has more than {} samples along a side";

void require_regions(const MetaCall& m, const TensorMeta& images) {
  const TensorMeta& rois = m.meta("rois");
  m.require(is_floating(images.dtype), "expected floating point images, got ", images);
  m.require(rois.rank() == 2 && rois.sizes[1] == SymInt(5) && rois.dtype == images.dtype,
            "rois: expected rows of 5 numbers in ", images.dtype, ", got ", rois);
}

Metas regions_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("input");
  m.require(x.rank() == 4, "input: expected 4 dimensions, got ", x);
  require_regions(m, x);
  Sizes bins = {m.integer("pooled_height"), m.integer("pooled_width")};
  for (SymInt n : bins) m.require(!n.is_int() || n.as_int() > 0, "expected regions of at least one bin, got ", bins);
  return like(x, {m.meta("rois").sizes[0], x.sizes[1], bins[0], bins[1]});
}

// The columns that a window meets: a bilinear sample of each image for every place of the window and of the result.
struct Moved {
  Tensor images;  // [n, groups, channels, height * width]
  SymInt height, width;
  Tensor y, x;  // [n, groups, window and result]

  // The pixel `down` rows and `right` columns from the one above and to the left of each place, and its weight.
  Tensor corner(double down, double right) const {
    auto along = [](const Tensor& at, double step, SymInt size) {
      Tensor low = floor(at), place = low + step;
      Tensor weight = step > 0 ? at - low : 1.0 - (at - low);
      Tensor inside = logical_and(ge(place, 0.0), lt(place, size));
      return std::pair(place, weight * to(inside, at.dtype()));
    };
    auto [row, row_weight] = along(y, down, height);
    auto [column, column_weight] = along(x, right, width);
    auto index = [](const Tensor& at, SymInt size) -> Tensor { return clamp(to(at, DType::i64), 0, size - 1); };
    Tensor place = unsqueeze(Tensor(mul(index(row, height), width)) + index(column, width), 2);
    Sizes sizes = images.sizes();
    sizes[3] = place.sizes()[3];
    return gather(images, 3, expand(place, sizes)) * unsqueeze(row_weight * column_weight, 2);
  }
  Tensor samples() const { return corner(0, 0) + corner(0, 1) + corner(1, 0) + corner(1, 1); }
};

Results deformed_convolution(Build& b) {
  Tensor x = b["input"], weight = b["weight"], offset = b["offset"];
  b.require(x.rank() == 4 && weight.rank() == 4 && offset.rank() == 4,
            "expected an input, a weight and offsets of 4 dimensions, got ", x.meta(), ", ", weight.meta(), " and ",
            offset.meta());
  SymInt n = x.sizes()[0], groups = b.integer("groups"), moved = b.integer("offset_groups"),
         window = weight.sizes()[2] * weight.sizes()[3];
  Sizes out = {offset.sizes()[2], offset.sizes()[3]};
  b.require(!statically_true(sym::ne(offset.sizes()[1], moved * window * 2)), "offset: expected ", moved * window * 2,
            " channels, got ", offset.meta());
  SymInt places = window * out[0] * out[1], channels = x.sizes()[1];
  Tensor moves = reshape(offset, Sizes{n, moved, window, 2, out[0] * out[1]});
  // Where an element of the window lies for each element of the result, before it is moved.
  auto base = [&](const char* stride, const char* pad, const char* dilation, size_t d) {
    SymInt before = b.integer(pad), step = b.integer(dilation);
    Tensor within = arange(-before, weight.sizes()[2 + d] * step - before, step);
    Tensor from = arange(0, out[d] * b.integer(stride), b.integer(stride));
    Sizes of_window(4, SymInt(1)), of_result(4, SymInt(1)),
        all = {weight.sizes()[2], weight.sizes()[3], out[0], out[1]};
    of_window[d] = weight.sizes()[2 + d];
    of_result[2 + d] = out[d];
    Tensor at = reshape(within, of_window) + reshape(from, of_result);
    return Tensor(to(reshape(expand(at, all), Sizes{window, out[0] * out[1]}), x.dtype()));
  };
  auto place = [&](int64_t d, const Tensor& from) {
    return Tensor(reshape(Tensor(select(moves, 3, d)) + from, Sizes{n, moved, places}));
  };
  Moved sampled{reshape(x, Sizes{n, moved, sym::floor_div(channels, moved), x.sizes()[2] * x.sizes()[3]}), x.sizes()[2],
                x.sizes()[3], place(0, base("stride_h", "pad_h", "dilation_h", 0)),
                place(1, base("stride_w", "pad_w", "dilation_w", 1))};
  Tensor columns = sampled.samples();
  if (b.flag("use_mask")) columns = columns * Tensor(reshape(b["mask"], Sizes{n, moved, 1, places}));
  SymInt of_group = sym::floor_div(channels, groups), gives = sym::floor_div(weight.sizes()[0], groups);
  columns = reshape(columns, Sizes{n, groups, of_group * window, out[0] * out[1]});
  Tensor y = matmul(reshape(weight, Sizes{1, groups, gives, of_group * window}), columns);
  y = reshape(y, Sizes{n, weight.sizes()[0], out[0], out[1]});
  return one(y + Tensor(reshape(b["bias"], Sizes{1, weight.sizes()[0], 1, 1})));
}

}  // namespace

void register_vision(Registry& ops) {
  ops.add({
      .schema = "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta &boxes = m.meta("dets"), &scores = m.meta("scores");
        m.require(boxes.rank() == 2 && boxes.sizes[1] == SymInt(4) && is_floating(boxes.dtype),
                  "dets: expected rows of 4 floating point numbers, got ", boxes);
        m.require(scores.rank() == 1 && scores.dtype == boxes.dtype &&
                      !statically_true(sym::ne(scores.sizes[0], boxes.sizes[0])),
                  "scores: expected one number in ", boxes.dtype, " for each row of ", boxes, ", got ", scores);
        return like(boxes, {data_dependent_size()}, DType::i64);
      },
      .host = {"nms"},
  });
  ops.add(roi_align, {
                         .schema = "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt "
                                   "pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
                         .meta = regions_meta,
                         .vjp = {{"input",
                                  [](Vjp& v) {
                                    const Sizes sizes = v["input"].sizes();
                                    return roi_align_backward(v.grad(), v["rois"], v.arg("spatial_scale"),
                                                              v.arg("pooled_height"), v.arg("pooled_width"), sizes[0],
                                                              sizes[1], sizes[2], sizes[3], v.arg("sampling_ratio"),
                                                              v.arg("aligned"));
                                  }}},
                         .host = {"roi_align", {no_image, too_large}},
                     });
  ops.add(roi_align_backward,
          {
              .schema = "torchvision::_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt "
                        "pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt "
                        "width, int sampling_ratio, bool aligned) -> Tensor",
              .meta = [](MetaCall& m) -> Metas {
                const TensorMeta& grad = m.meta("grad");
                m.require(grad.rank() == 4, "grad: expected 4 dimensions, got ", grad);
                require_regions(m, grad);
                Sizes of = {m.meta("rois").sizes[0], m.integer("channels"), m.integer("pooled_height"),
                            m.integer("pooled_width")};
                for (size_t d = 0; d < 4; ++d)
                  m.require(!statically_true(sym::ne(grad.sizes[d], of[d])), "grad: expected sizes ", of, ", got ",
                            grad);
                return like(grad,
                            {m.integer("batch_size"), m.integer("channels"), m.integer("height"), m.integer("width")});
              },
              .vjp = {{"grad",
                       [](Vjp& v) {
                         return roi_align(v.grad(), v["rois"], v.arg("spatial_scale"), v.arg("pooled_height"),
                                          v.arg("pooled_width"), v.arg("sampling_ratio"), v.arg("aligned"));
                       }}},
              .host = {"roi_align_backward", {no_image, too_large}},
          });
  ops.add({
      .schema = "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
                "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
                "SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
      .kind = OpKind::composite,
      .decompose = deformed_convolution,
  });
}

}  // namespace tenon
