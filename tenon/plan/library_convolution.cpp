#include "kernels/convolution.h"
#include "kernels/gemm.h"
#include "kernels/winograd.h"
#include "tenon/base/error.h"
#include "tenon/loop/method.h"
#include "tenon/loop/pack.h"
#include "tenon/plan/chunks.h"
#include "tenon/plan/library_matrix.h"

namespace tenon::plan {
namespace {

using loop::ConvPart;
using loop::Operand;

constexpr int64_t panel = kernels::gemm_panel;

/// A list over the convolution's own dimensions as one over three.
Sizes three(const Sizes& list, SymInt missing, size_t first = 0) {
  Sizes out(3 - (list.size() - first), missing);
  for (size_t i = first; i < list.size(); ++i) out.push_back(list[i]);
  return out;
}
Sizes places(const Operand& o) { return three(o.sizes, 1, 2); }
Sizes place_strides(const Operand& o) { return three(o.strides, 0, 2); }
SymInt product(const Sizes& list) {
  SymInt out = 1;
  for (SymInt e : list) out *= e;
  return out;
}
bool is_one(SymInt e) { return e == SymInt(1); }
bool certain(SymInt condition) { return condition.is(sym::Kind::boolean) && condition.boolean_value(); }
SymInt grain_of(SymInt work) { return sym::floor_div(1 << 14, work + 1) + 1; }
/// Where a product with so many rows has one block of them, and threads share its columns, they share channels here
/// too.
int64_t depthwise_blocks(const Operand& result) {
  constexpr int64_t many_channels = 128;
  const SymInt points = result.sizes[0] * product(places(result)), channels = result.sizes[1];
  if (!points.is_int() || !channels.is_int()) return 1;
  return points.as_int() <= kernels::gemm_block_rows && channels.as_int() >= many_channels ? 2 : 1;
}
int64_t bytes(DType dtype) { return static_cast<int64_t>(item_size(dtype)); }

/// What packing needs to know: which way the sums run, and their taps in three dimensions.
struct Taps {
  bool gradient, depthwise, winograd;
  Sizes kernel, stride, padding, dilation;
  SymInt groups, columns, inner;  // columns: channels of the result in a group; inner: channels that are summed

  Taps(ConvPart part, bool transposed, bool winograd, const Operand& w, const Sizes& stride, const Sizes& padding,
       const Sizes& dilation, SymInt groups)
      : gradient(part == ConvPart::weight_gradient ? false : (part == ConvPart::input_gradient) != transposed),
        depthwise(w.sizes[0] == groups && is_one(w.sizes[1]) && !is_one(groups)),
        winograd(winograd),
        kernel(places(w)),
        stride(three(stride, 1)),
        padding(three(padding, 0)),
        dilation(three(dilation, 1)),
        groups(groups) {
    const SymInt first = sym::floor_div(w.sizes[0], groups);
    columns = gradient ? w.sizes[1] : first;
    inner = gradient ? first : w.sizes[1];
    for (size_t d = 0; d < 3; ++d)
      if (is_one(kernel[d])) this->dilation[d] = 1;
  }
  SymInt reach(size_t d) const { return (kernel[d] - 1) * dilation[d] + 1; }
  SymInt phases(size_t d) const { return gradient ? stride[d] : SymInt(1); }
  SymInt count() const { return product(kernel); }

  template <class Params>
  void add_to(Words<Params>& words) const {
    words.add(SymInt(gradient ? 1 : 0), kernel, stride, padding, dilation);
  }
};

LibraryCall pack_call(std::string_view suffix, const Taps& t, const Operand& w, LibraryArg to) {
  LibraryCall call;
  call.function = text(t.winograd    ? "convolution_winograd_pack"
                       : t.depthwise ? "convolution_depthwise_pack"
                                     : "convolution_pack",
                       suffix);
  to.written = true;
  call.args = {read(w), to};
  Words<kernels::ConvolutionPackParams> words;
  t.add_to(words);
  words.add(t.groups, t.columns, t.inner, w.offset);
  if (t.depthwise) words.add(w.strides[0], SymInt(0), SymInt(0));
  else
    words.add(sym::floor_div(w.sizes[0], t.groups) * w.strides[0], w.strides[t.gradient ? 1 : 0],
              w.strides[t.gradient ? 0 : 1]);
  words.add(place_strides(w), SymInt(0));
  call.params = std::move(words).take();
  call.extent = t.depthwise ? sym::ceil_div(t.groups, panel) : t.groups * sym::ceil_div(t.columns, panel);
  call.grain = grain_of(t.count() * t.inner * SymInt(panel));
  return call;
}

SymInt packed_elements(const Taps& t) {
  if (t.depthwise) return sym::ceil_div(t.groups, panel) * t.count() * SymInt(panel);
  if (t.winograd) return sym::ceil_div(t.columns, panel) * t.inner * SymInt(kernels::winograd_positions * panel);
  return t.groups * sym::ceil_div(t.columns, panel) * t.count() * t.inner * SymInt(panel);
}

/// What a sum reads: the operand itself, or a copy with its channels side by side and zeros around.
struct Source {
  LibraryArg arg;
  SymInt offset = 0, batch = 0, channel = 1;
  Sizes strides, lo, hi;  // [lo, hi): the places that are there
};
/// What the kernel can do without: zeros where taps reach beyond, channels side by side.
struct Needs {
  bool zeros = true, channels_side_by_side = true;
};

class ConvolutionCalls {
 public:
  ConvolutionCalls(const loop::Program& program, const loop::Convolution& c)
      : checks_(program, out_),
        c_(c),
        suffix_(checks_.float_suffix(c.y)),
        dtype_(checks_.dtype(c.y)),
        taps_((check(), c.part), c.transposed, method_of(program, c) == loop::ConvMethod::winograd, c.w,
              taken_stride(c), c.padding, c.dilation, c.groups) {}

  LibraryCalls sum() && {
    const Operand &from = c_.part == ConvPart::forward ? c_.x : c_.y, &to = c_.part == ConvPart::forward ? c_.y : c_.x;
    const Sizes size = places(to);
    const Source source = staged(from, size, {.zeros = !taps_.depthwise && !taps_.winograd});
    LibraryArg weights = read(c_.w);
    SymInt weights_offset = c_.w.offset;
    if (c_.packed) checks_.packed(c_.w, dtype_, packed_elements(taps_));
    else {
      weights = temporary(packed_elements(taps_));
      weights_offset = 0;
      out_.calls.push_back(pack_call(suffix_, taps_, c_.w, weights));
    }
    LibraryCall call;
    call.function = text(taps_.winograd    ? "convolution_winograd"
                         : taps_.depthwise ? "convolution_depthwise"
                                           : "convolution",
                         suffix_);
    call.args = {source.arg, weights, written(to)};
    const SymInt flags = checks_.epilogue(c_.epilogue, to.sizes[1], to, call.args), batch = to.sizes[0];
    Words<kernels::ConvolutionParams> words;
    taps_.add_to(words);
    words.add(batch, taps_.groups, taps_.columns, taps_.inner, flags, size);
    words.add(source.offset, source.batch, source.strides, source.lo, source.hi, weights_offset);
    words.add(to.offset, to.strides[0], to.strides[1], place_strides(to));
    const loop::Epilogue& e = c_.epilogue;
    words.add(e.has_bias ? e.bias.offset : SymInt(0), e.has_bias ? e.bias.strides[0] : SymInt(0));
    if (e.has_residual)
      words.add(e.residual.offset, e.residual.strides[0], e.residual.strides[1], place_strides(e.residual));
    else words.add(Sizes(6, 0));
    const int64_t channel_blocks = taps_.depthwise ? depthwise_blocks(to) : 1;
    words.add(SymInt(channel_blocks));
    call.params = std::move(words).take();
    if (taps_.depthwise) {
      call.extent = SymInt(channel_blocks) * batch * size[0] * size[1];
      const SymInt work = size[2] * taps_.groups * taps_.count();
      call.grain = fair_grain(call.extent, sym::floor_div(work, SymInt(channel_blocks)), 1 << 17);
    } else if (taps_.winograd) {
      const int64_t inner = taps_.inner.as_int(), two = 2 * kernels::winograd_tiles(inner);
      const SymInt tiles = batch * sym::ceil_div(size[1], 2) * sym::ceil_div(size[2], 2);
      const int64_t panels = taps_.columns.as_int() / panel;
      if (tiles.is_int()) call.extent = SymInt(kernels::winograd_blocks(tiles.as_int(), inner, panels));
      else call.extent = sym::ceil_div(tiles, two) * SymInt(2 * kernels::winograd_column_blocks(panels, 1));
      call.scratch = SymInt(kernels::winograd_scratch(inner) * bytes(dtype_));
    } else {
      SymInt points = batch, phases = 1;
      for (size_t d = 0; d < 3; ++d) {
        points *= sym::ceil_div(size[d], taps_.phases(d));
        phases *= taps_.phases(d);
      }
      call.extent = phases * taps_.groups * column_blocks(points, taps_.columns, taps_.count() * taps_.inner) *
                    row_blocks(points);
      const SymInt terms = sym::floor_div(taps_.count() * taps_.inner, phases) + 1;
      const SymInt width = block_columns(points, taps_.columns, taps_.count() * taps_.inner);
      call.grain = block_grain(call.extent, points, width * terms);
      call.scratch = SymInt(kernels::gemm_scratch * bytes(dtype_));
    }
    out_.calls.push_back(std::move(call));
    return std::move(out_);
  }

  /// The gradient of the weights: x against the gradient of y, which is put into panels.
  LibraryCalls weight_gradient() && {
    const loop::Epilogue& e = c_.epilogue;
    expect(!c_.packed && !e.has_bias && !e.has_residual && !e.relu, "the gradient of weights has no epilogue");
    if (weight_gradient_method(checks_.program(), c_) == loop::ConvMethod::winograd) return winograd_weight_gradient();
    const Operand &from = c_.transposed ? c_.y : c_.x, &y = c_.transposed ? c_.x : c_.y;
    const Sizes size = places(y);
    const SymInt batch = y.sizes[0];
    const Source source = staged(from, size, {.channels_side_by_side = taps_.depthwise});
    const SymInt groups = taps_.depthwise ? SymInt(1) : taps_.groups;
    const SymInt columns = taps_.depthwise ? taps_.groups : taps_.columns, panels = sym::ceil_div(columns, panel);
    const LibraryArg points = temporary(groups * panels * batch * product(size) * SymInt(panel));
    LibraryCall pack;
    pack.function = text("convolution_points", suffix_);
    pack.args = {read(y), points};
    pack.args[1].written = true;
    Words<kernels::ConvolutionPointsParams> pack_words;
    pack_words.add(batch, groups, columns, size, y.offset, y.strides[0], y.strides[1], place_strides(y), SymInt(0));
    pack.params = std::move(pack_words).take();
    pack.extent = groups * panels * batch * size[0] * size[1];
    pack.grain = grain_of(size[2] * SymInt(panel));
    out_.calls.push_back(std::move(pack));

    LibraryCall call;
    call.function = text(taps_.depthwise ? "convolution_depthwise_weight" : "convolution_weight", suffix_);
    call.args = {source.arg, points, written(c_.w)};
    Words<kernels::ConvolutionWeightParams> words;
    taps_.add_to(words);
    words.add(batch, taps_.groups, taps_.columns, taps_.inner, size);
    words.add(source.offset, source.batch, source.channel, source.strides, SymInt(0), c_.w.offset);
    words.add(sym::floor_div(c_.w.sizes[0], taps_.groups) * c_.w.strides[0], c_.w.strides[0], c_.w.strides[1]);
    words.add(place_strides(c_.w));
    call.params = std::move(words).take();
    if (taps_.depthwise) {
      call.extent = panels * taps_.kernel[0] * taps_.kernel[1];
    } else {
      call.extent = taps_.groups * sym::ceil_div(taps_.columns, kernels::gemm_block_columns) *
                    row_blocks(taps_.count() * taps_.inner);
      call.scratch = SymInt(kernels::convolution_weight_scratch * bytes(dtype_));
    }
    out_.calls.push_back(std::move(call));
    return std::move(out_);
  }

 private:
  LibraryCalls winograd_weight_gradient() {
    const SymInt inner = c_.w.sizes[1], columns = c_.w.sizes[0];
    const int64_t each_inner = inner.as_int(), each_columns = columns.as_int();
    const LibraryArg sums = temporary(SymInt(kernels::winograd_positions) * inner * columns);
    auto two = [](const Sizes& three) { return Sizes{three[1], three[2]}; };
    Words<kernels::WinogradWeightParams> words;
    words.add(c_.y.sizes[0], inner, columns, two(places(c_.y)), two(places(c_.x)), two(taps_.padding));
    words.add(c_.x.offset, c_.x.strides[0], two(place_strides(c_.x)));
    words.add(c_.y.offset, c_.y.strides[0], two(place_strides(c_.y)));
    words.add(c_.w.offset, c_.w.strides[0], c_.w.strides[1], two(place_strides(c_.w)));
    LibraryCall add;
    add.function = text("convolution_winograd_weight", suffix_);
    add.args = {read(c_.x), read(c_.y), sums};
    add.args[2].written = true;
    add.params = std::move(words).take();
    add.extent = SymInt(kernels::winograd_weight_blocks(each_inner, each_columns));
    add.scratch = SymInt(kernels::winograd_weight_scratch(each_inner, each_columns) * bytes(dtype_));
    LibraryCall finish;
    finish.function = text("convolution_winograd_weight_finish", suffix_);
    finish.args = {sums, written(c_.w)};
    finish.params = add.params;
    finish.extent = SymInt(each_inner / panel * (each_columns / panel));
    finish.grain = grain_of(panel * panel * 25);
    out_.calls.push_back(std::move(add));
    out_.calls.push_back(std::move(finish));
    return std::move(out_);
  }

  void check() {
    const SymInt groups = c_.groups;
    checks_.holds(sym::gt(groups, 0), text("a convolution needs at least one group, got ", groups));
    checks_.same(c_.x.sizes[0], c_.y.sizes[0], "the batch of a convolution");
    checks_.same((c_.transposed ? c_.y : c_.x).sizes[1], c_.w.sizes[1] * groups, "the number of channels times groups");
    checks_.same((c_.transposed ? c_.x : c_.y).sizes[1], c_.w.sizes[0], "the number of channels");
    checks_.holds(sym::eq(sym::mod(c_.w.sizes[0], groups), 0),
                  text("sizes that do not belong together: ", c_.w.sizes[0], " channels in ", groups, " groups"));
    checks_.operand(c_.x, dtype_, "the input");
    checks_.operand(c_.y, dtype_, "the output");
    if (!c_.packed) checks_.operand(c_.w, dtype_, "the weight");
    // The kernels trust the output's size: it is the one that the rest gives, up to what output_padding may add.
    for (size_t i = 0; i < c_.stride.size(); ++i) {
      const SymInt in = c_.x.sizes[2 + i], out = c_.y.sizes[2 + i];
      checks_.holds(sym::gt(c_.stride[i], 0), text("a convolution's stride is at least 1, got ", c_.stride));
      const SymInt reach = c_.dilation[i] * (c_.w.sizes[2 + i] - 1) + 1;
      const SymInt more = c_.output_padding.empty() ? SymInt(0) : c_.output_padding[i];
      const SymInt given = c_.transposed
                               ? (in - 1) * c_.stride[i] - c_.padding[i] * SymInt(2) + reach + more
                               : sym::max(0, sym::floor_div(in + c_.padding[i] * SymInt(2) - reach, c_.stride[i]) + 1);
      if (given == out) continue;
      checks_.holds(sym::eq(given, out), text("sizes that do not belong together: a convolution gives ", given,
                                              " places where ", out, " are expected"));
    }
  }

  LibraryArg temporary(SymInt elements) {
    out_.temporaries.push_back(elements * SymInt(bytes(dtype_)));
    return plan::temporary(out_.temporaries.size() - 1, false);
  }

  /// `from` for results of this size.
  Source staged(const Operand& from, const Sizes& size, Needs needs) {
    const Sizes places_from = places(from), strides = place_strides(from);
    const SymInt batch = from.sizes[0], channels = from.sizes[1];
    Sizes lo(3, 0), span(3, 0);
    const bool side_by_side = is_one(from.strides[1]) || is_one(channels);
    bool inside = true;
    for (size_t d = 0; d < 3; ++d) {
      if (taps_.gradient) {
        lo[d] = sym::floor_div(taps_.padding[d] - taps_.reach(d) + taps_.stride[d], taps_.stride[d]);
        span[d] = sym::floor_div(size[d] - 1 + taps_.padding[d], taps_.stride[d]) - lo[d] + 1;
      } else {
        lo[d] = -taps_.padding[d];
        span[d] = (size[d] - 1) * taps_.stride[d] + taps_.reach(d);
      }
      inside = inside && certain(sym::ge(lo[d], 0)) && certain(sym::le(lo[d] + span[d], places_from[d]));
      span[d] = sym::max(span[d], 0);
    }
    if ((inside || !needs.zeros) && (side_by_side || !needs.channels_side_by_side))
      return {read(from), from.offset, from.strides[0], from.strides[1], strides, Sizes(3, 0), places_from};
    const bool planar = !needs.channels_side_by_side && !side_by_side;
    LibraryCall call;
    call.function = text("convolution_stage", suffix_);
    const LibraryArg to = temporary(batch * product(span) * channels);
    call.args = {read(from), to};
    call.args[1].written = true;
    Words<kernels::ConvolutionStageParams> words;
    words.add(batch, channels, SymInt(planar ? 1 : 0), places_from, lo, span);
    words.add(from.offset, from.strides[0], from.strides[1], strides, SymInt(0));
    call.params = std::move(words).take();
    call.extent = batch * span[0] * span[1] * (planar ? channels : SymInt(1));
    call.grain = grain_of(span[2] * (planar ? SymInt(1) : channels));
    out_.calls.push_back(std::move(call));
    const SymInt step = planar ? SymInt(1) : channels, plane = product(span);
    const Sizes made = {span[1] * span[2] * step, span[2] * step, step};
    Sizes hi = lo;
    SymInt offset = 0;
    for (size_t d = 0; d < 3; ++d) {
      offset -= lo[d] * made[d];
      hi[d] += span[d];
    }
    return {to, offset, plane * channels, planar ? plane : SymInt(1), made, lo, hi};
  }

  LibraryCalls out_;
  MatrixChecks checks_;
  const loop::Convolution& c_;
  std::string_view suffix_;
  DType dtype_;
  Taps taps_;
};

}  // namespace

LibraryCalls calls_of(const loop::Program& program, const loop::Convolution& c) {
  ConvolutionCalls calls(program, c);
  return c.part == ConvPart::weight_gradient ? std::move(calls).weight_gradient() : std::move(calls).sum();
}

std::optional<ResultBlocks> blocks_of(const loop::Program& program, const loop::Convolution& c) {
  if (c.part != ConvPart::forward || c.transposed || method_of(program, c) != loop::ConvMethod::direct)
    return std::nullopt;
  const SymInt channels = c.y.sizes[1], points = c.y.sizes[0] * product(places(c.y));
  if (is_depthwise(c)) return ResultBlocks{depthwise_blocks(c.y) == 1};
  return ResultBlocks{is_one(c.groups) && has_whole_rows(points, channels, c.w.sizes[1] * product(places(c.w)))};
}

LibraryCalls convolution_pack(const loop::Program& program, const loop::Pack& p) {
  LibraryCalls out;
  MatrixChecks checks(program, out);
  const loop::Buffer& to = program.buffers[p.to];
  const std::string_view suffix = checks.float_suffix(p.from);
  checks.operand(p.from, to.dtype, "the weight");
  const Taps taps(p.part, p.transposed, method_of(program, p) == loop::ConvMethod::winograd, p.from, p.stride,
                  p.padding, p.dilation, p.groups);
  checks.holds(sym::ge(count(to.sizes), packed_elements(taps)),
               text("sizes that do not belong together: ", packed_sizes(p), " are packed into ", to.sizes));
  out.calls.push_back(pack_call(suffix, taps, p.from, {p.to, 0, true}));
  return out;
}

}  // namespace tenon::plan
