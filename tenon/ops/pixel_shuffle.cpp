// Channels turned into space and back, and channels shuffled among groups.
#include "tenon/ops/conversion.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/views.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

Sizes leading(const Tensor& x, size_t drop) {
  return Sizes(std::span<const SymInt>(x.sizes().begin(), x.rank() - drop));
}

// Blocks of r * r channels become r * r pixels.
Results shuffled(Build& b) {
  Tensor x = b["self"];
  int64_t r = b.constant("upscale_factor");
  b.require(x.rank() >= 3, "expected at least 3 dimensions, got ", x.meta());
  b.require(r > 0, "upscale_factor: expected a positive number, got ", r);
  SymInt c = x.size(-3), h = x.size(-2), w = x.size(-1);
  int64_t square = sym::checked_mul(r, r);
  relies_on_equal(b, sym::mod(c, square), 0, "the channels must be a multiple of ", square, ", got ", x.meta());
  Sizes split = leading(x, 3), out = split, order;
  auto n = static_cast<int64_t>(split.size());
  for (SymInt s : {sym::floor_div(c, square), SymInt(r), SymInt(r), h, w}) split.push_back(s);
  for (int64_t i = 0; i < n; ++i) order.push_back(i);
  for (int64_t d : {0, 3, 1, 4, 2}) order.push_back(n + d);
  for (SymInt s : {sym::floor_div(c, square), h * r, w * r}) out.push_back(s);
  return reshape(clone(permute(reshape(x, split), order), MemoryFormat::contiguous), out);
}

Results unshuffled(Build& b) {
  Tensor x = b["self"];
  int64_t r = b.constant("downscale_factor");
  b.require(x.rank() >= 3, "expected at least 3 dimensions, got ", x.meta());
  b.require(r > 0, "downscale_factor: expected a positive number, got ", r);
  SymInt c = x.size(-3), h = x.size(-2), w = x.size(-1);
  for (SymInt size : {h, w})
    relies_on_equal(b, sym::mod(size, r), 0, "height and width must be multiples of ", r, ", got ", x.meta());
  Sizes split = leading(x, 3), out = split, order;
  auto n = static_cast<int64_t>(split.size());
  SymInt oh = sym::floor_div(h, r), ow = sym::floor_div(w, r);
  for (SymInt s : {c, oh, SymInt(r), ow, SymInt(r)}) split.push_back(s);
  for (int64_t i = 0; i < n; ++i) order.push_back(i);
  for (int64_t d : {0, 2, 4, 1, 3}) order.push_back(n + d);
  for (SymInt s : {c * (r * r), oh, ow}) out.push_back(s);
  return reshape(clone(permute(reshape(x, split), order), MemoryFormat::contiguous), out);
}

Results channels_shuffled(Build& b) {
  Tensor x = b["self"];
  SymInt groups = b.integer("groups");
  b.require(x.rank() >= 3, "expected at least 3 dimensions, got ", x.meta());
  SymInt c = x.sizes()[1];
  b.require(!c.is_int() || !groups.is_int() || (groups.as_int() > 0 && c.as_int() % groups.as_int() == 0),
            "the channels of ", x.meta(), " must be a multiple of ", groups);
  Sizes split = {x.sizes()[0], groups, sym::floor_div(c, groups)};
  for (size_t d = 2; d < x.rank(); ++d) split.push_back(x.sizes()[d]);
  return view(clone(transpose(reshape(x, split), 1, 2), MemoryFormat::contiguous), x.sizes());
}

}  // namespace

void register_pixel_shuffle(Registry& ops) {
  ops.add({
      .schema = "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
      .kind = OpKind::composite,
      .decompose = shuffled,
  });
  ops.add({
      .schema = "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
      .kind = OpKind::composite,
      .decompose = unshuffled,
  });
  ops.add({
      .schema = "channel_shuffle(Tensor self, SymInt groups) -> Tensor",
      .kind = OpKind::composite,
      .decompose = channels_shuffled,
  });
}

}  // namespace tenon
