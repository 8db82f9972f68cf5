#include "tenon/interp/template_anchors.h"

#include <algorithm>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/templates/attention.h"
#include "tenon/templates/convolution.h"
#include "tenon/templates/gemm.h"

namespace tenon::interp {
namespace {

using loop::Operand;

struct Runner {
  std::span<const loop::Buffer> buffers;
  std::byte* const* places;

  DType dtype(const Operand& o) const { return buffers[o.buffer].dtype; }

  // The elements of an operand: they are of this type and lie within its buffer, whatever a program made of it.
  template <class T>
  T* data(const Operand& o, std::string_view what) const {
    check(o, element<T>(), what);
    return reinterpret_cast<T*>(places[o.buffer]) + o.offset.as_int();
  }
  template <class T>
  static DType element() {
    if constexpr (std::is_same_v<T, float>) return DType::f32;
    else if constexpr (std::is_same_v<T, double>) return DType::f64;
    else if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
    else return DType::boolean;
  }
  void check(const Operand& o, DType wanted, std::string_view what) const {
    const loop::Buffer& b = buffers[o.buffer];
    require(b.dtype == wanted, "dtypes that do not belong together: expected ", what, " of ", wanted, ", got ",
            b.dtype);
    int64_t last = reach(o.sizes, o.strides), end = reach(b.sizes, b.strides), at = o.offset.as_int();
    require(last < 0 || (at >= 0 && at <= end && last <= end - at), "sizes that do not belong together: ", what, " ",
            o.sizes, " is read from ", b.dtype, b.sizes);
  }
  // The offset of the last element; -1 where there is none.
  static int64_t reach(const Sizes& sizes, const Sizes& strides) {
    int64_t last = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i].as_int() <= 0) return -1;
      last = sym::checked_add(last, sym::checked_mul(sizes[i].as_int() - 1, strides[i].as_int()));
    }
    return last;
  }
  static void same(SymInt a, SymInt b, std::string_view what) {
    require(a == b, "sizes that do not belong together: ", what, " is ", a, " and ", b);
  }
  static void same(const Operand& o, const Sizes& wanted, std::string_view what) {
    require(o.sizes == wanted, "sizes that do not belong together: expected ", what, " of ", wanted, ", got ", o.sizes);
  }

  // f(T) with the operand's element type.
  template <class F>
  void with(const Operand& o, F&& f) const {
    switch (dtype(o)) {
      case DType::f32: f(float{}); return;
      case DType::f64: f(double{}); return;
      case DType::i64: f(int64_t{}); return;
      default: fail_internal(Check(false).at, text("an anchor over ", dtype(o)));
    }
  }
  template <class F>
  void with_float(const Operand& o, F&& f) const {
    with(o, [&](auto type) {
      if constexpr (std::is_same_v<decltype(type), int64_t>)
        fail("this operation needs floating point tensors, got i64");
      else f(type);
    });
  }

  void operator()(const loop::Stage&) const { unreachable(); }
  void operator()(const loop::Call&) const { unreachable(); }
  void operator()(const loop::Bind&) const { unreachable(); }
  void operator()(const loop::Check&) const { unreachable(); }
  void operator()(const loop::Pack&) const { fail_packed(); }
  [[noreturn]] static void fail_packed() { fail("packed operands and epilogues are for compiled programs alone"); }
  static void plain(bool packed, const loop::Epilogue& e) {
    if (packed || e.has_bias || e.has_residual || e.relu) fail_packed();
  }

  void operator()(const loop::Gemm& g) const {
    plain(g.packed, g.epilogue);
    same(g.a.sizes[0], g.out.sizes[0], "the batch");
    same(g.b.sizes[0], g.out.sizes[0], "the batch");
    same(g.a.sizes[1], g.out.sizes[1], "the number of rows");
    same(g.b.sizes[2], g.out.sizes[2], "the number of columns");
    same(g.a.sizes[2], g.b.sizes[1], "the inner size");
    with(g.out, [&](auto type) {
      using T = decltype(type);
      templates::GemmArgs<T> a;
      a.batch = g.out.sizes[0].as_int();
      a.m = g.out.sizes[1].as_int();
      a.n = g.out.sizes[2].as_int();
      a.k = g.a.sizes[2].as_int();
      auto strides = [](const Operand& o, int64_t& batch, int64_t& row, int64_t& col) {
        batch = o.strides[0].as_int();
        row = o.strides[1].as_int();
        col = o.strides[2].as_int();
      };
      a.a = data<T>(g.a, "the left matrix");
      a.b = data<T>(g.b, "the right matrix");
      a.c = data<T>(g.out, "the product");
      strides(g.a, a.a_batch, a.a_row, a.a_col);
      strides(g.b, a.b_batch, a.b_row, a.b_col);
      strides(g.out, a.c_batch, a.c_row, a.c_col);
      a.alpha = static_cast<T>(g.alpha);
      a.beta = static_cast<T>(g.beta);
      templates::gemm(a);
    });
  }

  template <class T>
  templates::Volume<T> volume(const Operand& o, std::string_view what) const {
    templates::Volume<T> v;
    v.data = data<std::remove_const_t<T>>(o, what);
    size_t spatial = o.sizes.size() - 2;
    v.stride[0] = o.strides[0].as_int();
    v.stride[1] = o.strides[1].as_int();
    for (size_t i = 0; i < spatial; ++i) v.stride[2 + 3 - spatial + i] = o.strides[2 + i].as_int();
    return v;
  }

  void operator()(const loop::Convolution& c) const {
    plain(c.packed, c.epilogue);
    require(c.groups.as_int() > 0, "a convolution needs at least one group, got ", c.groups);
    same(c.x.sizes[0], c.y.sizes[0], "the batch of a convolution");
    same((c.transposed ? c.y : c.x).sizes[1], c.w.sizes[1] * c.groups, "the number of channels times groups");
    same((c.transposed ? c.x : c.y).sizes[1], c.w.sizes[0], "the number of channels");
    templates::ConvShape s;
    size_t spatial = c.stride.size(), first = 3 - spatial;
    s.batch = c.x.sizes[0].as_int();
    s.in_channels = c.x.sizes[1].as_int();
    s.out_channels = c.y.sizes[1].as_int();
    s.groups = c.groups.as_int();
    s.transposed = c.transposed;
    for (size_t i = 0; i < spatial; ++i) {
      s.in[first + i] = c.x.sizes[2 + i].as_int();
      s.out[first + i] = c.y.sizes[2 + i].as_int();
      s.kernel[first + i] = c.w.sizes[2 + i].as_int();
      s.stride[first + i] = c.stride[i].as_int();
      s.padding[first + i] = c.padding[i].as_int();
      s.dilation[first + i] = c.dilation[i].as_int();
    }
    // The kernels trust the output's size: it is the one that the rest gives, up to what output_padding may add.
    templates::ConvShape computed = s;
    int64_t extra[3] = {0, 0, 0};
    for (size_t i = 0; i < c.output_padding.size(); ++i) extra[first + i] = c.output_padding[i].as_int();
    computed.set_out(extra);
    for (size_t i = 0; i < 3; ++i)
      require(computed.out[i] == s.out[i], "sizes that do not belong together: a convolution gives ", computed.out[i],
              " places where ", s.out[i], " are expected");
    for (size_t i = 0; i < 3; ++i) {  // a step that is never taken may be of any size
      if (s.kernel[i] == 1) s.dilation[i] = 1;
      if ((s.transposed ? s.in : s.out)[i] == 1) s.stride[i] = 1;
    }
    with_float(c.y, [&](auto type) {
      using T = decltype(type);
      auto x = volume<T>(c.x, "the input"), w = volume<T>(c.w, "the weight"), y = volume<T>(c.y, "the output");
      auto read = [](const templates::Volume<T>& v) {
        templates::Volume<const T> same;
        same.data = v.data;
        std::copy(std::begin(v.stride), std::end(v.stride), std::begin(same.stride));
        return same;
      };
      switch (c.part) {
        case loop::ConvPart::forward: templates::convolution<T>(s, read(x), read(w), nullptr, y); return;
        case loop::ConvPart::input_gradient: templates::convolution_input_gradient<T>(s, read(y), read(w), x); return;
        case loop::ConvPart::weight_gradient: templates::convolution_weight_gradient<T>(s, read(x), read(y), w); return;
      }
    });
  }

  template <class T>
  templates::Heads<T> heads(const Operand& o, std::string_view what) const {
    templates::Heads<T> h;
    h.data = data<std::remove_const_t<T>>(o, what);
    for (size_t i = 0; i < 4; ++i) h.stride[i] = o.strides[i].as_int();
    return h;
  }

  template <class T, class A>
  templates::AttentionArgs<T> attention_args(const A& a) const {
    same(a.q.sizes[0], a.k.sizes[0], "the batch of query and key");
    same(a.k.sizes[0], a.v.sizes[0], "the batch of key and value");
    same(a.k.sizes[1], a.v.sizes[1], "the number of heads of key and value");
    same(a.k.sizes[2], a.v.sizes[2], "the length of key and value");
    same(a.q.sizes[3], a.k.sizes[3], "the width of query and key");
    same(a.out, {a.q.sizes[0], a.q.sizes[1], a.q.sizes[2], a.v.sizes[3]}, "the output");
    same(a.logsumexp, {a.q.sizes[0], a.q.sizes[1], a.q.sizes[2]}, "the logsumexp");
    require(a.k.sizes[1].as_int() > 0 && a.q.sizes[1].as_int() % a.k.sizes[1].as_int() == 0, "the heads of the query, ",
            a.q.sizes[1], ", are no multiple of the key's, ", a.k.sizes[1]);
    templates::AttentionArgs<T> args;
    args.batch = a.q.sizes[0].as_int();
    args.heads = a.q.sizes[1].as_int();
    args.key_heads = a.k.sizes[1].as_int();
    args.queries = a.q.sizes[2].as_int();
    args.keys = a.k.sizes[2].as_int();
    args.width = a.q.sizes[3].as_int();
    args.value_width = a.v.sizes[3].as_int();
    args.q = heads<const T>(a.q, "the query");
    args.k = heads<const T>(a.k, "the key");
    args.v = heads<const T>(a.v, "the value");
    args.scale = static_cast<T>(a.scale);
    args.causal = a.causal;
    if (a.has_mask) {
      same(a.mask, {a.q.sizes[0], a.q.sizes[1], a.q.sizes[2], a.k.sizes[2]}, "the mask");
      if (dtype(a.mask) == DType::boolean) args.keep = data<unsigned char>(a.mask, "the mask");
      else args.mask = data<T>(a.mask, "the mask");
      for (size_t i = 0; i < 4; ++i) args.mask_stride[i] = a.mask.strides[i].as_int();
    }
    return args;
  }

  void operator()(const loop::Attention& a) const {
    with_float(a.out, [&](auto type) {
      using T = decltype(type);
      auto args = attention_args<T>(a);
      int64_t strides[3];
      for (size_t i = 0; i < 3; ++i) strides[i] = a.logsumexp.strides[i].as_int();
      templates::attention<T>(args, heads<T>(a.out, "the output"), data<T>(a.logsumexp, "the logsumexp"), strides);
    });
  }

  void operator()(const loop::AttentionGradient& a) const {
    with_float(a.out, [&](auto type) {
      using T = decltype(type);
      auto args = attention_args<T>(a);
      same(a.grad, a.out.sizes, "the gradient of the output");
      same(a.grad_q, a.q.sizes, "the gradient of the query");
      same(a.grad_k, a.k.sizes, "the gradient of the key");
      same(a.grad_v, a.v.sizes, "the gradient of the value");
      templates::AttentionGradient<T> g;
      g.out_gradient = heads<const T>(a.grad, "the gradient of the output");
      g.out = heads<const T>(a.out, "the output");
      g.logsumexp = data<T>(a.logsumexp, "the logsumexp");
      for (size_t i = 0; i < 3; ++i) g.logsumexp_stride[i] = a.logsumexp.strides[i].as_int();
      g.q = heads<T>(a.grad_q, "the gradient of the query");
      g.k = heads<T>(a.grad_k, "the gradient of the key");
      g.v = heads<T>(a.grad_v, "the gradient of the value");
      templates::attention_gradient<T>(args, g);
    });
  }

  void operator()(const loop::Sort&) const { unreachable(); }
  void operator()(const loop::TopK&) const { unreachable(); }
  void operator()(const loop::Scan&) const { unreachable(); }
};

}  // namespace

namespace {

/// Replaces the sizes in an anchor by numbers.
struct Resolver {
  const Resolved& program;
  void number(SymInt& e) const { e = program.value(e); }
  void list(Sizes& sizes) const {
    for (SymInt& e : sizes) number(e);
  }
  void operand(Operand& o) const {
    list(o.sizes);
    list(o.strides);
    number(o.offset);
  }
  template <class... Operands>
  void all(Operands&... operands) const {
    (operand(operands), ...);
  }
  void operator()(loop::Stage&) const { unreachable(); }
  void operator()(loop::Call&) const { unreachable(); }
  void operator()(loop::Bind&) const { unreachable(); }
  void operator()(loop::Check&) const { unreachable(); }
  void epilogue(loop::Epilogue& e) const { all(e.bias, e.residual); }
  void operator()(loop::Gemm& g) const {
    all(g.a, g.b, g.out);
    epilogue(g.epilogue);
  }
  void operator()(loop::Pack& p) const {
    operand(p.from);
    for (Sizes* s : {&p.stride, &p.padding, &p.dilation}) list(*s);
    number(p.groups);
  }
  void operator()(loop::Convolution& c) const {
    all(c.x, c.w, c.y);
    epilogue(c.epilogue);
    for (Sizes* s : {&c.stride, &c.padding, &c.dilation, &c.output_padding}) list(*s);
    number(c.groups);
  }
  void operator()(loop::Attention& a) const { all(a.q, a.k, a.v, a.out, a.logsumexp, a.mask); }
  void operator()(loop::AttentionGradient& a) const {
    all(a.grad, a.q, a.k, a.v, a.out, a.logsumexp, a.grad_q, a.grad_k, a.grad_v, a.mask);
  }
  void operator()(loop::Sort&) const { unreachable(); }
  void operator()(loop::TopK&) const { unreachable(); }
  void operator()(loop::Scan&) const { unreachable(); }
};

}  // namespace

loop::Step resolve_anchor(const loop::Step& step, const Resolved& program) {
  loop::Step resolved = step;
  std::visit(Resolver{program}, resolved);
  return resolved;
}

void run_template(std::span<const loop::Buffer> buffers, const loop::Step& step, std::byte* const* places) {
  std::visit(Runner{buffers, places}, step);
}

}  // namespace tenon::interp
