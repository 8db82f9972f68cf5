#include "tenon/interp/template_anchors.h"

#include <algorithm>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/templates/attention.h"

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
  void operator()(const loop::Pack&) const { unreachable(); }
  void operator()(const loop::Gemm&) const { unreachable(); }
  void operator()(const loop::Convolution&) const { unreachable(); }

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
  void operator()(loop::Gemm&) const { unreachable(); }
  void operator()(loop::Convolution&) const { unreachable(); }
  void operator()(loop::Pack&) const { unreachable(); }
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
