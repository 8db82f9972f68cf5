#include "kernels/attention.h"
#include "tenon/base/error.h"
#include "tenon/plan/library_parts.h"

namespace tenon::plan {
namespace {

using kernels::AttentionGradientParams;
using kernels::AttentionParams;
using loop::Operand;

/// What both passes have in common: a loop::Attention or a loop::AttentionGradient.
template <class Anchor>
class Common {
 public:
  Common(const loop::Program& program, const Anchor& anchor, LibraryCalls& out)
      : anchor_(anchor), checks_(program, out), dtype_(checks_.dtype(anchor.out)) {}

  std::string_view suffix() const { return checks_.float_suffix(anchor_.out); }
  SymInt item_bytes() const { return SymInt(item_size(dtype_)); }
  kernels::AttentionSizes<SymInt> sizes() const {
    const Anchor& a = anchor_;
    return {a.q.sizes[0], a.q.sizes[1], a.k.sizes[1], a.q.sizes[2], a.k.sizes[2], a.q.sizes[3], a.v.sizes[3]};
  }
  Checks& checks() { return checks_; }
  void operand(const Operand& o, std::string_view what) { checks_.operand(o, dtype_, what); }

  void check() {
    const Anchor& a = anchor_;
    checks_.same(a.q.sizes[0], a.k.sizes[0], "the batch of query and key");
    checks_.same(a.k.sizes[0], a.v.sizes[0], "the batch of key and value");
    checks_.same(a.k.sizes[1], a.v.sizes[1], "the number of heads of key and value");
    checks_.same(a.k.sizes[2], a.v.sizes[2], "the length of key and value");
    checks_.same(a.q.sizes[3], a.k.sizes[3], "the width of query and key");
    checks_.same(a.out, {a.q.sizes[0], a.q.sizes[1], a.q.sizes[2], a.v.sizes[3]}, "the output");
    checks_.same(a.logsumexp, {a.q.sizes[0], a.q.sizes[1], a.q.sizes[2]}, "the logsumexp");
    std::string multiple =
        text("the heads of the query, ", a.q.sizes[1], ", are no multiple of the key's, ", a.k.sizes[1]);
    checks_.holds(sym::gt(a.k.sizes[1], 0), multiple);
    checks_.holds(sym::eq(sym::mod(a.q.sizes[1], a.k.sizes[1]), 0), multiple);
    operand(a.q, "the query");
    operand(a.k, "the key");
    operand(a.v, "the value");
    operand(a.out, "the output");
    operand(a.logsumexp, "the logsumexp");
    if (!a.has_mask) return;
    checks_.same(a.mask, {a.q.sizes[0], a.q.sizes[1], a.q.sizes[2], a.k.sizes[2]}, "the mask");
    checks_.operand(a.mask, is_keep() ? DType::boolean : dtype_, "the mask");
  }

  template <class Params>
  void set(ParamsOf<Params>& p) const {
    const Anchor& a = anchor_;
    const kernels::AttentionSizes<SymInt> s = sizes();
    p.set(&Params::batch, s.batch);
    p.set(&Params::heads, s.heads);
    p.set(&Params::key_heads, s.key_heads);
    p.set(&Params::queries, s.queries);
    p.set(&Params::keys, s.keys);
    p.set(&Params::width, s.width);
    p.set(&Params::value_width, s.value_width);
    p.set(&Params::causal, a.causal);
    p.set(&Params::mask_kind, SymInt(!a.has_mask ? kernels::mask_none
                                     : is_keep() ? kernels::mask_keep
                                                 : kernels::mask_added));
    p.set(&Params::scale, a.scale);
    place(p, a.q, &Params::q, &Params::q_strides);
    place(p, a.k, &Params::k, &Params::k_strides);
    place(p, a.v, &Params::v, &Params::v_strides);
    place(p, a.out, &Params::out, &Params::out_strides);
    place(p, a.logsumexp, &Params::logsumexp, &Params::logsumexp_strides);
    if (a.has_mask) place(p, a.mask, &Params::mask, &Params::mask_strides);
  }
  template <class Params, class Offset, class Strides>
  static void place(ParamsOf<Params>& p, const Operand& o, Offset offset, Strides strides) {
    p.set(offset, o.offset);
    p.set(strides, o.strides);
  }

 private:
  bool is_keep() const { return checks_.dtype(anchor_.mask) == DType::boolean; }

  const Anchor& anchor_;
  Checks checks_;
  DType dtype_;
};

/// Enough heads for threads to share, small enough for a packed one to stay in the second cache.
bool whole_heads(const kernels::AttentionSizes<SymInt>& sizes) {
  constexpr int64_t least_heads = 8, most_elements = 65536;
  SymInt heads = sizes.head_iterations(), elements = sizes.packed_head();
  return heads.is_int() && heads.as_int() >= least_heads && elements.is_int() && elements.as_int() <= most_elements;
}

}  // namespace

LibraryCalls calls_of(const loop::Program& program, const loop::Attention& a) {
  LibraryCalls out;
  Common common(program, a, out);
  std::string_view suffix = common.suffix();
  common.check();
  ParamsOf<AttentionParams> p;
  common.set(p);
  std::vector<loop::Param> params = std::move(p).words();
  kernels::AttentionSizes<SymInt> sizes = common.sizes();
  // Where few queries are known to come, nothing will be packed.
  bool in_place = sizes.queries.is_int() && sizes.queries.as_int() <= kernels::attention_in_place;
  bool by_heads = !in_place && whole_heads(sizes);
  out.temporaries = {in_place || by_heads ? SymInt(0) : sizes.packed() * common.item_bytes()};
  if (!in_place && !by_heads) {
    LibraryCall pack;
    pack.function = text("attention_pack", suffix);
    pack.args = {read(a.k), read(a.v), temporary(0, true)};
    pack.params = params;
    pack.extent = sizes.pack_iterations();
    pack.grain = sym::floor_div(16384, SymInt(16) * sym::max(sizes.width, sizes.keys) + SymInt(1)) + SymInt(1);
    out.calls.push_back(std::move(pack));
  }
  LibraryCall run;
  run.function = text(by_heads ? "attention_heads" : "attention", suffix);
  run.args = {read(a.q), read(a.k), read(a.v), temporary(0, false), written(a.out), written(a.logsumexp)};
  if (a.has_mask) run.args.push_back(read(a.mask));
  run.params = std::move(params);
  run.extent = by_heads ? sizes.head_iterations() : sizes.iterations();
  SymInt queries = by_heads ? sizes.queries : sym::min(sizes.queries, SymInt(kernels::attention_block));
  SymInt work = queries * sizes.keys * (sizes.width + sizes.value_width);
  run.grain = sym::floor_div(1 << 17, work + SymInt(1)) + SymInt(1);
  run.scratch = (by_heads ? sizes.head_scratch() : sizes.scratch()) * common.item_bytes();
  out.calls.push_back(std::move(run));
  return out;
}

LibraryCalls calls_of(const loop::Program& program, const loop::AttentionGradient& a) {
  LibraryCalls out;
  Common common(program, a, out);
  LibraryCall run;
  run.function = text("attention_gradient", common.suffix());
  common.check();
  common.checks().same(a.grad, a.out.sizes, "the gradient of the output");
  common.checks().same(a.grad_q, a.q.sizes, "the gradient of the query");
  common.checks().same(a.grad_k, a.k.sizes, "the gradient of the key");
  common.checks().same(a.grad_v, a.v.sizes, "the gradient of the value");
  common.operand(a.grad, "the gradient of the output");
  common.operand(a.grad_q, "the gradient of the query");
  common.operand(a.grad_k, "the gradient of the key");
  common.operand(a.grad_v, "the gradient of the value");
  using Params = AttentionGradientParams;
  ParamsOf<Params> p;
  common.set(p);
  common.place(p, a.grad, &Params::grad, &Params::grad_strides);
  common.place(p, a.grad_q, &Params::grad_q, &Params::grad_q_strides);
  common.place(p, a.grad_k, &Params::grad_k, &Params::grad_k_strides);
  common.place(p, a.grad_v, &Params::grad_v, &Params::grad_v_strides);
  run.params = std::move(p).words();
  run.args = {read(a.grad),      read(a.q),         read(a.k),         read(a.v),        read(a.out),
              read(a.logsumexp), written(a.grad_q), written(a.grad_k), written(a.grad_v)};
  if (a.has_mask) run.args.push_back(read(a.mask));
  kernels::AttentionSizes<SymInt> sizes = common.sizes();
  run.extent = sizes.gradient_iterations();
  run.scratch = sizes.gradient_scratch() * common.item_bytes();
  out.calls.push_back(std::move(run));
  return out;
}

}  // namespace tenon::plan
