// Reductions over runs of elements of given lengths.
#include "tenon/rules/guards.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle segment_backward;

namespace {

constexpr const char* no_fit = "a segment of {} elements from {} on does not fit into {} elements";

void require_reduce(const ArgsView& m) {
  const std::string& name = m.string("reduce");
  for (const char* known : {"sum", "mean", "max", "amax", "min", "amin", "prod"})
    if (name == known) return;
  m.require(false, "reduce: expected sum, mean, max, min or prod, got ", quoted(name));
}

// The sizes of the result; the checks that both directions share.
Sizes reduced(const ArgsView& m) {
  const TensorMeta& x = m.meta("data");
  m.require(is_floating(x.dtype) && x.rank() > 0, "expected a floating point tensor with dimensions, got ", x);
  require_reduce(m);
  m.require(m.given("lengths") || m.given("offsets"), "expected lengths or offsets");
  const TensorMeta& by = m.meta(m.given("lengths") ? "lengths" : "offsets");
  m.require(by.dtype == DType::i64 || by.dtype == DType::i32, "expected i64 or i32 lengths or offsets, got ", by);
  m.require(by.rank() >= 1 && by.rank() <= x.rank(), "expected lengths or offsets for the leading dimensions of ", x,
            ", got ", by);
  size_t axis = m.dim("axis", x.rank());
  m.require(axis + 1 == by.rank(), "axis: expected the last dimension of ", by, ", got ", axis);
  Sizes sizes = x.sizes;
  for (size_t d = 0; d < axis; ++d)
    relies_on_equal(m, by.sizes[d], x.sizes[d], "lengths or offsets ", by, " do not fit ", x);
  sizes[axis] = m.given("lengths") ? by.sizes[axis] : by.sizes[axis] - 1;
  m.require(!sizes[axis].is_int() || sizes[axis].as_int() >= 0, "expected at least one offset, got ", by);
  return sizes;
}

}  // namespace

void register_segment_reduce(Registry& ops) {
  ops.add({
      .schema = "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? "
                "offsets=None, int axis=0, bool "
                "unsafe=False, Scalar? initial=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(!m.given("indices"), "indices are not supported, in PyTorch neither; give lengths or offsets");
        return like(m.meta("data"), reduced(m));
      },
      .vjp = {{"data",
               [](Vjp& v) {
                 return segment_backward(v.grad(), v.out(), v["data"], v.arg("reduce"), kw("lengths", v["lengths"]),
                                         kw("offsets", v["offsets"]), kw("axis", v.arg("axis")),
                                         kw("initial", v.arg("initial")));
               }}},
      .host = {"segment_reduce", {no_fit}},
  });
  ops.add(segment_backward, {
                                .schema = "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str "
                                          "reduce, *, Tensor? lengths=None, Tensor? offsets=None, int "
                                          "axis=0, Scalar? initial=None) -> Tensor",
                                .meta = [](MetaCall& m) -> Metas {
                                  Sizes sizes = reduced(m);
                                  for (const char* arg : {"grad", "output"})
                                    m.require(m.meta(arg).sizes == sizes && m.meta(arg).dtype == m.meta("data").dtype,
                                              arg, ": expected ", make_meta(m.meta("data").dtype, sizes), ", got ",
                                              m.meta(arg));
                                  return like(m.meta("data"), m.meta("data").sizes);
                                },
                                .host = {"segment_reduce_backward", {no_fit}},
                            });
}

}  // namespace tenon
