// Reductions over runs of elements of given lengths.
#include "kernels/host/call.h"

namespace tenon::kernels {
namespace {

enum class Reduce { sum, mean, max, min, prod };

bool reduce_of(Params::Text name, Reduce& out) {
  if (name.is("sum")) out = Reduce::sum;
  else if (name.is("mean")) out = Reduce::mean;
  else if (name.is("max") || name.is("amax")) out = Reduce::max;
  else if (name.is("min") || name.is("amin")) out = Reduce::min;
  else if (name.is("prod")) out = Reduce::prod;
  else return false;
  return true;
}

double start_of(Reduce how) {
  switch (how) {
    case Reduce::sum:
    case Reduce::mean: return 0;
    case Reduce::max: return -__builtin_inf();
    case Reduce::min: return __builtin_inf();
    case Reduce::prod: return 1;
  }
  return 0;
}

double combined(Reduce how, double a, double b) {
  switch (how) {
    case Reduce::sum:
    case Reduce::mean: return a + b;
    case Reduce::max: return is_nan(a) || a > b ? a : b;
    case Reduce::min: return is_nan(a) || a < b ? a : b;
    case Reduce::prod: return a * b;
  }
  return 0;
}

/// [rows, along, inner] in runs along the middle, `segments` in each row.
struct Segments {
  int64_t rows = 1, segments = 0, along = 0, inner = 1;
  int64_t *begins, *lengths;

  int prepare(Call& call, const tenon_tensor& data, const tenon_tensor& lengths_given, const tenon_tensor& offsets,
              int64_t axis) {
    bool by_length = is_present(lengths_given);
    const tenon_tensor& by = by_length ? lengths_given : offsets;
    if (axis < 0) axis += data.rank;
    if (!is_present(by) || axis < 0 || axis >= data.rank || by.rank != axis + 1) return TENON_KERNEL_ARITHMETIC;
    for (int64_t d = 0; d < axis; ++d) {
      if (by.sizes[d] != data.sizes[d]) return TENON_KERNEL_ARITHMETIC;
      rows *= data.sizes[d];
    }
    for (int64_t d = axis + 1; d < data.rank; ++d) inner *= data.sizes[d];
    along = data.sizes[axis];
    segments = by.sizes[axis] - (by_length ? 0 : 1);
    if (segments < 0) return TENON_KERNEL_ARITHMETIC;
    int64_t* numbers = elements<int64_t>(call, by);
    begins = work<int64_t>(call, rows * segments);
    lengths = work<int64_t>(call, rows * segments);
    if (!numbers || !begins || !lengths) return TENON_KERNEL_MEMORY;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t s = 0, begin = 0; s < segments; ++s) {
        int64_t k = r * segments + s, at = by_length ? k : r * (segments + 1) + s;
        begins[k] = by_length ? begin : numbers[at];
        lengths[k] = by_length ? numbers[at] : numbers[at + 1] - numbers[at];
        if (begins[k] < 0 || lengths[k] < 0 || begins[k] > along || lengths[k] > along - begins[k])
          return refuse(call, 1, lengths[k], begins[k], along);
        begin = begins[k] + lengths[k];
      }
    return 0;
  }
};

}  // namespace

// data, lengths, indices, offsets; reduce, axis, unsafe, initial or none
TENON_HOST_FUNCTION(segment_reduce) {
  (void)lo, (void)hi;
  const tenon_tensor& data = call->inputs[0];
  tenon_tensor& result = call->results[0];
  Params params(*call);
  Reduce how;
  if (!reduce_of(params.text(), how)) return TENON_KERNEL_ARITHMETIC;
  int64_t axis = params.integer();
  params.flag();
  bool given = params.present();
  double start = given ? params.real() : start_of(how);
  Segments runs;
  if (int status = runs.prepare(*call, data, call->inputs[1], call->inputs[3], axis)) return status;
  double *x = elements<double>(*call, data), *out = work<double>(*call, runs.rows * runs.segments * runs.inner);
  if (!x || !out) return TENON_KERNEL_MEMORY;
  if (count(result) != runs.rows * runs.segments * runs.inner) return TENON_KERNEL_ARITHMETIC;
  for (int64_t k = 0; k < runs.rows * runs.segments; ++k)
    for (int64_t i = 0; i < runs.inner; ++i) {
      double total = start;
      int64_t row = k / runs.segments, length = runs.lengths[k];
      for (int64_t j = runs.begins[k]; j < runs.begins[k] + length; ++j)
        total = combined(how, total, x[(row * runs.along + j) * runs.inner + i]);
      bool divides = how == Reduce::mean && (length > 0 || !given);
      out[k * runs.inner + i] = divides ? total / static_cast<double>(length) : total;
    }
  write(result, out);
  return 0;
}

// grad, output, data, lengths, offsets; reduce, axis, initial or none
TENON_HOST_FUNCTION(segment_reduce_backward) {
  (void)lo, (void)hi;
  const tenon_tensor& data = call->inputs[2];
  tenon_tensor& result = call->results[0];
  Params params(*call);
  Reduce how;
  if (!reduce_of(params.text(), how)) return TENON_KERNEL_ARITHMETIC;
  int64_t axis = params.integer();
  double start = params.present() ? params.real() : start_of(how);
  Segments runs;
  if (int status = runs.prepare(*call, data, call->inputs[3], call->inputs[4], axis)) return status;
  double *grad = elements<double>(*call, call->inputs[0]), *y = elements<double>(*call, call->inputs[1]),
         *x = elements<double>(*call, data), *out = zeroed_work<double>(*call, count(data));
  if (!grad || !y || !x || !out) return TENON_KERNEL_MEMORY;
  int64_t reduced = runs.rows * runs.segments * runs.inner;
  if (count(call->inputs[0]) != reduced || count(call->inputs[1]) != reduced || !same_sizes(data, result))
    return TENON_KERNEL_ARITHMETIC;
  for (int64_t k = 0; k < runs.rows * runs.segments; ++k)
    for (int64_t i = 0; i < runs.inner; ++i) {
      const double* line = x + k / runs.segments * runs.along * runs.inner + i;
      double* to = out + (line - x);
      double value = y[k * runs.inner + i];
      int64_t first = runs.begins[k], end = first + runs.lengths[k], reaching = 0;
      auto reaches = [&](int64_t j) { return line[j * runs.inner] == value || is_nan(line[j * runs.inner]); };
      for (int64_t j = first; j < end; ++j) reaching += reaches(j);
      for (int64_t j = first; j < end; ++j) {
        double g = grad[k * runs.inner + i];
        if (how == Reduce::mean) g /= static_cast<double>(end - first);
        if (how == Reduce::max || how == Reduce::min) g = reaches(j) ? g / static_cast<double>(reaching) : 0;
        if (how == Reduce::prod) {  // the product of the others; those at zero rule out a division
          g *= start;
          for (int64_t other = first; other < end; ++other)
            if (other != j) g *= line[other * runs.inner];
        }
        to[j * runs.inner] = g;
      }
    }
  write(result, out);
  return 0;
}

}  // namespace tenon::kernels
