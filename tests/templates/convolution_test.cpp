#include "tenon/templates/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "numbers.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;

struct Case {
  const char* name;
  ConvShape shape;
  Int output_padding[3] = {0, 0, 0};
};

ConvShape make(Int batch, Int in, Int out, Int groups, bool transposed = false) {
  ConvShape s;
  s.batch = batch, s.in_channels = in, s.out_channels = out, s.groups = groups, s.transposed = transposed;
  return s;
}
void set(Int (&field)[3], Int z, Int y, Int x) { field[0] = z, field[1] = y, field[2] = x; }

std::vector<Case> cases() {
  std::vector<Case> result;
  for (bool transposed : {false, true}) {
    auto add = [&](const char* name, ConvShape s, Int pad_out = 0) {
      Case c{name, s, {0, 0, pad_out}};
      c.shape.transposed = transposed;
      if (transposed) c.shape.set_out(c.output_padding);
      else c.shape.set_out();
      result.push_back(c);
    };
    ConvShape s = make(2, 3, 5, 1);
    set(s.in, 1, 9, 11), set(s.kernel, 1, 3, 3), set(s.padding, 0, 1, 1);
    add("3x3", s);
    set(s.stride, 1, 2, 2);
    add("3x3 stride 2", s, 1);
    s = make(1, 40, 70, 1);
    set(s.in, 1, 13, 12), set(s.kernel, 1, 3, 3), set(s.padding, 0, 1, 1);
    add("deeper than one block", s);
    set(s.stride, 1, 2, 3), set(s.dilation, 1, 2, 1);
    add("strides and dilations differ", s, 2);
    s = make(2, 24, 30, 1);
    set(s.in, 1, 7, 7);
    add("1x1", s);
    set(s.stride, 1, 2, 2);
    add("1x1 stride 2", s);
    s = make(1, 3, 8, 1);
    set(s.in, 1, 20, 23), set(s.kernel, 1, 7, 7), set(s.stride, 1, 2, 2), set(s.padding, 0, 3, 3);
    add("stem", s);
    s = make(2, 12, 18, 3);
    set(s.in, 1, 6, 8), set(s.kernel, 1, 3, 2), set(s.padding, 0, 2, 0);
    add("groups", s);
    s = make(2, 6, 6, 6);
    set(s.in, 1, 10, 37), set(s.kernel, 1, 3, 3), set(s.padding, 0, 1, 1);
    add("depthwise", s);
    set(s.stride, 1, 2, 2);
    add("depthwise stride 2", s, 1);
    s = make(1, 4, 8, 4);
    set(s.in, 1, 5, 9), set(s.kernel, 1, 2, 5), set(s.padding, 0, 1, 4), set(s.dilation, 1, 1, 2);
    add("depthwise with two outputs a channel", s);
    s = make(3, 5, 7, 1);
    set(s.in, 1, 1, 50), set(s.kernel, 1, 1, 4), set(s.stride, 1, 1, 3), set(s.padding, 0, 0, 2);
    add("one dimension", s, 1);
    s = make(1, 6, 10, 2);
    set(s.in, 4, 5, 6), set(s.kernel, 3, 2, 3), set(s.stride, 2, 1, 2), set(s.padding, 1, 0, 1);
    set(s.dilation, 1, 2, 1);
    add("three dimensions", s);
    s = make(1, 5, 6, 1);
    set(s.in, 1, 4, 4), set(s.kernel, 1, 1, 1), set(s.padding, 0, transposed ? 0 : 2, transposed ? 0 : 3);
    add("more padding than kernel", s);
    s = make(1, 5, 6, 1);
    set(s.in, 1, 9, 9), set(s.kernel, 1, 2, 2), set(s.stride, 1, 4, 5);
    add("stride beyond the kernel", s);
    s = make(0, 5, 6, 1);
    set(s.in, 1, 9, 9), set(s.kernel, 1, 3, 3);
    add("no images", s);
  }
  return result;
}

/// A volume with its memory; `last` lays channels innermost.
template <class T>
struct Tensor {
  std::vector<T> memory;
  Volume<T> volume;
  Tensor(Int n, Int channels, const Int (&sizes)[3], bool last, Numbers& numbers)
      : memory(numbers.vector<T>(n * channels * sizes[0] * sizes[1] * sizes[2])) {
    volume = contiguous_volume(memory.data(), channels, sizes);
    if (last) {
      Int plane = sizes[1] * sizes[2] * channels;
      volume = {memory.data(), {sizes[0] * plane, 1, plane, sizes[2] * channels, channels}};
    }
  }
  Volume<const T> read() const {
    Volume<const T> v{volume.data, {}};
    for (int i = 0; i < 5; ++i) v.stride[i] = volume.stride[i];
    return v;
  }
  Int at(Int n, Int c, const Int (&p)[3]) const {
    const Int(&s)[5] = volume.stride;
    return n * s[0] + c * s[1] + p[0] * s[2] + p[1] * s[3] + p[2] * s[4];
  }
};

template <class T>
struct Problem {
  ConvShape s;
  Numbers numbers{7};
  Tensor<T> x, w, y;
  std::vector<T> bias;

  Problem(const ConvShape& shape, bool last)
      : s(shape),
        x(s.batch, s.in_channels, s.in, last, numbers),
        w(s.transposed ? s.in_channels : s.out_channels, (s.transposed ? s.out_channels : s.in_channels) / s.groups,
          s.kernel, last, numbers),
        y(s.batch, s.out_channels, s.out, last, numbers),
        bias(numbers.vector<T>(s.out_channels)) {}

  /// Every triple of elements that meet: visit(x, w, y) with their places in memory.
  template <class Visit>
  void meet(Visit visit) const {
    const Int(&wide)[3] = s.transposed ? s.out : s.in;
    const Int(&grid)[3] = s.transposed ? s.in : s.out;
    const Int ig = s.in_channels / s.groups, og = s.out_channels / s.groups;
    Int o[3], k[3], i[3];
    for (Int n = 0; n < s.batch; ++n)
      for (Int g = 0; g < s.groups; ++g)
        for (Int a = 0; a < ig; ++a)
          for (Int b = 0; b < og; ++b)
            for (o[0] = 0; o[0] < grid[0]; ++o[0])
              for (o[1] = 0; o[1] < grid[1]; ++o[1])
                for (o[2] = 0; o[2] < grid[2]; ++o[2])
                  for (k[0] = 0; k[0] < s.kernel[0]; ++k[0])
                    for (k[1] = 0; k[1] < s.kernel[1]; ++k[1])
                      for (k[2] = 0; k[2] < s.kernel[2]; ++k[2]) {
                        bool inside = true;
                        for (int d = 0; d < 3; ++d) {
                          i[d] = o[d] * s.stride[d] - s.padding[d] + k[d] * s.dilation[d];
                          inside = inside && i[d] >= 0 && i[d] < wide[d];
                        }
                        if (!inside) continue;
                        if (s.transposed) visit(x.at(n, g * ig + a, o), w.at(g * ig + a, b, k), y.at(n, g * og + b, i));
                        else visit(x.at(n, g * ig + a, i), w.at(g * og + b, a, k), y.at(n, g * og + b, o));
                      }
  }
};

/// Compares with sums made in double: error at most (terms + 2) * eps * sum |term|, and as much for the reference.
template <class T>
struct Sums {
  std::vector<double> value, size;
  std::vector<int> terms;
  explicit Sums(std::size_t n) : value(n), size(n), terms(n) {}
  void add(Int at, double term) {
    auto i = static_cast<std::size_t>(at);
    value[i] += term, size[i] += std::fabs(term), ++terms[i];
  }
  void compare(const std::vector<T>& got, const char* what) const {
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], value[i], 2 * (terms[i] + 2) * double{std::numeric_limits<T>::epsilon()} * size[i])
          << what << " at " << i;
  }
};

template <class T>
void check_forward(const ConvShape& shape, bool last, bool with_bias) {
  Problem<T> p(shape, last);
  Sums<T> sums(p.y.memory.size());
  p.meet([&](Int x, Int w, Int y) {
    sums.add(y, static_cast<double>(p.x.volume.data[x]) * static_cast<double>(p.w.volume.data[w]));
  });
  if (with_bias) {
    Int at[3];
    for (Int n = 0; n < shape.batch; ++n)
      for (Int c = 0; c < shape.out_channels; ++c)
        for (at[0] = 0; at[0] < shape.out[0]; ++at[0])
          for (at[1] = 0; at[1] < shape.out[1]; ++at[1])
            for (at[2] = 0; at[2] < shape.out[2]; ++at[2])
              sums.add(p.y.at(n, c, at), static_cast<double>(p.bias[static_cast<std::size_t>(c)]));
  }
  convolution<T>(shape, p.x.read(), p.w.read(), with_bias ? p.bias.data() : nullptr, p.y.volume);
  sums.compare(p.y.memory, "output");
}

TEST(Convolution, ForwardAgreesWithPlainLoops) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::Message() << c.name << (c.shape.transposed ? ", transposed" : ""));
    for (bool last : {false, true}) {
      check_forward<float>(c.shape, last, true);
      check_forward<float>(c.shape, last, false);
      check_forward<double>(c.shape, last, true);
    }
    if (HasFatalFailure()) return;
  }
}

template <class T>
void check_input_gradient(const ConvShape& shape, bool last) {
  Problem<T> p(shape, last);
  Sums<T> sums(p.x.memory.size());
  p.meet([&](Int x, Int w, Int y) {
    sums.add(x, static_cast<double>(p.y.volume.data[y]) * static_cast<double>(p.w.volume.data[w]));
  });
  convolution_input_gradient<T>(shape, p.y.read(), p.w.read(), p.x.volume);
  sums.compare(p.x.memory, "input gradient");
}

TEST(Convolution, InputGradientAgreesWithPlainLoops) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::Message() << c.name << (c.shape.transposed ? ", transposed" : ""));
    for (bool last : {false, true}) {
      check_input_gradient<float>(c.shape, last);
      check_input_gradient<double>(c.shape, last);
    }
    if (HasFatalFailure()) return;
  }
}

template <class T>
void check_weight_gradient(const ConvShape& shape, bool last) {
  Problem<T> p(shape, last);
  Sums<T> sums(p.w.memory.size());
  p.meet([&](Int x, Int w, Int y) {
    sums.add(w, static_cast<double>(p.y.volume.data[y]) * static_cast<double>(p.x.volume.data[x]));
  });
  convolution_weight_gradient<T>(shape, p.x.read(), p.y.read(), p.w.volume);
  sums.compare(p.w.memory, "weight gradient");
}

TEST(Convolution, WeightGradientAgreesWithPlainLoops) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::Message() << c.name << (c.shape.transposed ? ", transposed" : ""));
    for (bool last : {false, true}) {
      check_weight_gradient<float>(c.shape, last);
      check_weight_gradient<double>(c.shape, last);
    }
    if (HasFatalFailure()) return;
  }
}

TEST(Convolution, BitsDoNotDependOnTheNumberOfThreads) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::Message() << c.name << (c.shape.transposed ? ", transposed" : ""));
    std::vector<float> results[2];
    for (int count : {1, 2}) {
      WithThreads with(count);
      Problem<float> p(c.shape, false), q(c.shape, false), r(c.shape, false);
      convolution<float>(c.shape, p.x.read(), p.w.read(), p.bias.data(), p.y.volume);
      convolution_input_gradient<float>(c.shape, q.y.read(), q.w.read(), q.x.volume);
      convolution_weight_gradient<float>(c.shape, r.x.read(), r.y.read(), r.w.volume);
      for (auto* part : {&p.y.memory, &q.x.memory, &r.w.memory})
        results[count - 1].insert(results[count - 1].end(), part->begin(), part->end());
    }
    ASSERT_EQ(0, std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)));
  }
}

TEST(Convolution, OutputSizesFollowFromTheRest) {
  ConvShape s = make(1, 1, 1, 1);
  set(s.in, 1, 224, 10), set(s.kernel, 1, 7, 3), set(s.stride, 1, 2, 1), set(s.padding, 0, 3, 0);
  set(s.dilation, 1, 1, 5);
  s.set_out();
  EXPECT_EQ(s.out[1], 112);
  EXPECT_EQ(s.out[2], 0);
  s.transposed = true;
  s.set_out({0, 1, 0});
  EXPECT_EQ(s.out[1], 223 * 2 - 6 + 7 + 1);
  EXPECT_EQ(s.out[2], 9 + 11);
}

}  // namespace
}  // namespace tenon::templates
