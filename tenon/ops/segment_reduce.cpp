// Reductions over runs of elements of given lengths.
#include <cmath>
#include <limits>

#include "tenon/ops/elements.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle segment_backward;

namespace {

enum class Reduce { sum, mean, max, min, prod };

Reduce reduce_of(const ArgsView& m) {
  const std::string& name = m.string("reduce");
  if (name == "sum") return Reduce::sum;
  if (name == "mean") return Reduce::mean;
  if (name == "max" || name == "amax") return Reduce::max;
  if (name == "min" || name == "amin") return Reduce::min;
  m.require(name == "prod", "reduce: expected sum, mean, max, min or prod, got ", quoted(name));
  return Reduce::prod;
}

// The sizes of the result; the checks that both directions share.
Sizes reduced(const ArgsView& m) {
  const TensorMeta& x = m.meta("data");
  m.require(is_floating(x.dtype) && x.rank() > 0, "expected a floating point tensor with dimensions, got ", x);
  reduce_of(m);
  m.require(m.given("lengths") || m.given("offsets"), "expected lengths or offsets");
  const TensorMeta& by = m.meta(m.given("lengths") ? "lengths" : "offsets");
  m.require(by.dtype == DType::i64 || by.dtype == DType::i32, "expected i64 or i32 lengths or offsets, got ", by);
  m.require(by.rank() >= 1 && by.rank() <= x.rank(), "expected lengths or offsets for the leading dimensions of ", x,
            ", got ", by);
  size_t axis = m.dim("axis", x.rank());
  m.require(axis + 1 == by.rank(), "axis: expected the last dimension of ", by, ", got ", axis);
  Sizes sizes = x.sizes;
  for (size_t d = 0; d < axis; ++d) m.require(by.sizes[d] == x.sizes[d], "lengths or offsets ", by, " do not fit ", x);
  sizes[axis] = m.given("lengths") ? by.sizes[axis] : by.sizes[axis] - 1;
  m.require(!sizes[axis].is_int() || sizes[axis].as_int() >= 0, "expected at least one offset, got ", by);
  return sizes;
}

// One run: where it begins among the elements of its row, and its length.
struct Run {
  int64_t begin, length;
};

std::vector<Run> runs_of(const ArgsView& call, int64_t rows, int64_t segments, int64_t elements_per_row) {
  std::vector<Run> out;
  bool by_length = call.given("lengths");
  std::vector<int64_t> numbers = elements<int64_t>(call[by_length ? "lengths" : "offsets"]);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t begin = 0;
    for (int64_t s = 0; s < segments; ++s) {
      auto at = static_cast<size_t>(by_length ? r * segments + s : r * (segments + 1) + s);
      Run run{by_length ? begin : numbers[at], by_length ? numbers[at] : numbers[at + 1] - numbers[at]};
      call.require(run.begin >= 0 && run.length >= 0 && run.begin <= elements_per_row &&
                       run.length <= elements_per_row - run.begin,
                   "a segment of ", run.length, " elements from ", run.begin, " on does not fit into ",
                   elements_per_row, " elements");
      begin = run.begin + run.length;
      out.push_back(run);
    }
  }
  return out;
}

struct Shape {
  int64_t rows = 1, segments = 1, along = 1, inner = 1;
  Shape(const Sizes& data, const Sizes& result, size_t axis) {
    for (size_t d = 0; d < axis; ++d) rows *= data[d].as_int();
    for (size_t d = axis + 1; d < data.size(); ++d) inner *= data[d].as_int();
    segments = result[axis].as_int();
    along = data[axis].as_int();
  }
};

double start_of(const ArgsView& call, Reduce how) {
  if (call.given("initial")) return call.number("initial");
  switch (how) {
    case Reduce::sum:
    case Reduce::mean: return 0;
    case Reduce::max: return -std::numeric_limits<double>::infinity();
    case Reduce::min: return std::numeric_limits<double>::infinity();
    case Reduce::prod: return 1;
  }
  unreachable();
}

double combined(Reduce how, double a, double b) {
  switch (how) {
    case Reduce::sum:
    case Reduce::mean: return a + b;
    case Reduce::max: return std::isnan(a) || a > b ? a : b;
    case Reduce::min: return std::isnan(a) || a < b ? a : b;
    case Reduce::prod: return a * b;
  }
  unreachable();
}

CallResults reduce_segments(ArgsView& call) {
  TensorMeta meta = own_meta(call);
  Reduce how = reduce_of(call);
  Shape shape(call.meta("data").sizes, meta.sizes, call.dim("axis", meta.rank()));
  std::vector<double> x = elements<double>(call["data"]), out;
  std::vector<Run> runs = runs_of(call, shape.rows, shape.segments, shape.along);
  double start = start_of(call, how);
  for (size_t k = 0; k < runs.size(); ++k)
    for (int64_t i = 0; i < shape.inner; ++i) {
      double total = start;
      int64_t row = static_cast<int64_t>(k) / shape.segments;
      for (int64_t j = runs[k].begin; j < runs[k].begin + runs[k].length; ++j)
        total = combined(how, total, x[static_cast<size_t>((row * shape.along + j) * shape.inner + i)]);
      bool divides = how == Reduce::mean && (runs[k].length > 0 || !call.given("initial"));
      out.push_back(divides ? total / static_cast<double>(runs[k].length) : total);
    }
  return {CallArg(made(meta, out))};
}

CallResults reduce_segments_backward(ArgsView& call) {
  TensorMeta meta = own_meta(call);
  Reduce how = reduce_of(call);
  Shape shape(meta.sizes, call.meta("grad").sizes, call.dim("axis", meta.rank()));
  std::vector<double> grad = elements<double>(call["grad"]), y = elements<double>(call["output"]),
                      x = elements<double>(call["data"]), out(x.size());
  std::vector<Run> runs = runs_of(call, shape.rows, shape.segments, shape.along);
  double start = start_of(call, how);
  for (size_t k = 0; k < runs.size(); ++k)
    for (int64_t i = 0; i < shape.inner; ++i) {
      auto at = [&](int64_t j) {
        return static_cast<size_t>((static_cast<int64_t>(k) / shape.segments * shape.along + j) * shape.inner + i);
      };
      size_t to = k * static_cast<size_t>(shape.inner) + static_cast<size_t>(i);
      int64_t first = runs[k].begin, end = first + runs[k].length, reaching = 0;
      auto reaches = [&](int64_t j) { return x[at(j)] == y[to] || std::isnan(x[at(j)]); };
      for (int64_t j = first; j < end; ++j) reaching += reaches(j);
      for (int64_t j = first; j < end; ++j) {
        double g = grad[to];
        if (how == Reduce::mean) g /= static_cast<double>(end - first);
        if (how == Reduce::max || how == Reduce::min) g = reaches(j) ? g / static_cast<double>(reaching) : 0;
        if (how == Reduce::prod) {  // the product of the others; those at zero rule out a division
          g *= start;
          for (int64_t other = first; other < end; ++other)
            if (other != j) g *= x[at(other)];
        }
        out[at(j)] = g;
      }
    }
  return {CallArg(made(meta, out))};
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
      .kernel = reduce_segments,
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
                                .kernel = reduce_segments_backward,
                            });
}

}  // namespace tenon
