#include "tenon/ops/flip.h"

#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle flip, roll;

namespace {

using loop::Expr;

Sizes kept_strides(const TensorMeta& x) {
  if (is_dense(x)) return x.strides;
  const TensorMeta* operand = &x;
  return pointwise_strides(x.sizes, std::span<const TensorMeta* const>(&operand, 1));
}

Metas flip_meta(MetaCall& m) {
  if (!m.ints("dims").empty()) m.dims("dims", m.meta("self").rank());
  TensorMeta out = like(m.meta("self"), m.meta("self").sizes);
  out.strides = kept_strides(m.meta("self"));
  return out;
}

void lower_flip(Lower& l) {
  Ref x = l["self"];
  SmallVector<size_t, 6> dims;
  if (!l.ints("dims").empty()) dims = l.dims("dims", x.sizes().size());
  l.tensor([&](const Index& i) {
    Index at = i;
    for (size_t d : dims) at[d] = l.extent(x.size(d) - 1) - i[d];
    return x.at(at);
  });
}

Metas roll_meta(MetaCall& m) {
  Sizes shifts = m.ints("shifts"), dims = m.ints("dims");
  m.require(!shifts.empty(), "expected at least one shift");
  m.require(dims.size() == shifts.size() || (dims.empty() && shifts.size() == 1),
            "expected as many dims as shifts, got ", shifts, " and ", dims);
  for (SymInt d : dims) normal_dim(d.as_int(), m.meta("self").rank());
  return like(m.meta("self"), m.meta("self").sizes);
}

void lower_roll(Lower& l) {
  Ref x = l["self"];
  Sizes shifts = l.ints("shifts"), dims = l.ints("dims"), sizes = x.sizes();
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
  Tensor x = b["self"];
  Sizes shifts, dims;
  if (b.given("dim")) dims = b.ints("dim");
  else
    for (size_t d = 0; d < x.rank(); ++d) dims.push_back(static_cast<int64_t>(d));
  for (SymInt d : dims) {
    b.require(d.is_int(), "dim: expected constants, got ", dims);
    shifts.push_back(sym::floor_div(x.size(d.as_int()) + extra, 2));
  }
  return dims.empty() ? clone(x) : roll(x, shifts, dims);
}

Results rotated(Build& b) {
  Tensor x = b["self"];
  Sizes dims = b.ints("dims");
  b.require(dims.size() == 2, "expected two dims, got ", dims);
  b.require(x.rank() >= 2, "expected at least 2 dimensions, got ", x.meta());
  size_t first = normal_dim(dims[0].as_int(), x.rank()), second = normal_dim(dims[1].as_int(), x.rank());
  b.require(first != second, "the two dims must differ, both are ", first);
  switch ((b.constant("k") % 4 + 4) % 4) {
    case 1: return transpose(flip(x, Sizes{dims[1]}), dims[0], dims[1]);
    case 2: return flip(x, dims);
    case 3: return transpose(flip(x, Sizes{dims[0]}), dims[0], dims[1]);
    default: return clone(x, MemoryFormat::contiguous);
  }
}

}  // namespace

void register_flip(Registry& ops) {
  ops.add(flip, {
                    .schema = "flip(Tensor self, int[] dims) -> Tensor",
                    .meta = flip_meta,
                    .lower = lower_flip,
                    .vjp = {{"self", [](Vjp& v) { return flip(v.grad(), v.arg("dims")); }}},
                    .complex = [](Build& b) { return by_parts(b, "self"); },
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
                    .vjp = {{"self",
                             [](Vjp& v) {
                               Sizes back = v.ints("shifts");
                               for (SymInt& s : back) s = -s;
                               return roll(v.grad(), back, v.arg("dims"));
                             }}},
                    .complex = [](Build& b) { return by_parts(b, "self"); },
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
}

}  // namespace tenon
