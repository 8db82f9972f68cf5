// Convolutions and their gradients as calls of the kernel library, against loops over every tap. Values are small
// integers, so every order of summation gives the same number; a second run with other values compares the targets.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "run_library.h"
#include "tenon/loop/method.h"
#include "tenon/loop/pack.h"
#include "tests/kernels/numbers.h"

namespace tenon::plan {
namespace {

using loop::Convolution;
using loop::ConvPart;
using loop::Operand;
using Int = int64_t;
using List = std::vector<Int>;

struct Case {
  Int batch, in_channels, out_channels;
  List in, kernel, stride, padding, dilation;
  Int groups = 1;
  bool transposed = false;
  List output_padding = {};
  bool channels_last = false, bias = false, residual = false, relu = false, winograd = false;
};

Sizes sizes(const List& list) {
  Sizes out;
  for (Int e : list) out.push_back(e);
  return out;
}
Sizes with_places(Int first, Int second, const List& places) {
  Sizes out = {first, second};
  for (Int e : places) out.push_back(e);
  return out;
}
List out_places(const Case& c) {
  List out;
  for (size_t i = 0; i < c.in.size(); ++i) {
    const Int reach = c.dilation[i] * (c.kernel[i] - 1) + 1;
    out.push_back(c.transposed ? (c.in[i] - 1) * c.stride[i] - 2 * c.padding[i] + reach +
                                     (c.output_padding.empty() ? 0 : c.output_padding[i])
                               : (c.in[i] + 2 * c.padding[i] - reach) / c.stride[i] + 1);
  }
  return out;
}
Int at(const Operand& o, const List& index) {
  Int out = o.offset.as_int();
  for (size_t i = 0; i < index.size(); ++i) out += index[i] * o.strides[i].as_int();
  return out;
}
/// Channels last: a row-major [n, places..., c] seen as [n, c, places...].
template <class T, class Value>
Operand add_tensor(Buffers<T>& to, Int batch, Int channels, const List& places, bool channels_last, Value value) {
  if (!channels_last) return to.add(with_places(batch, channels, places), value);
  Sizes memory = {batch};
  for (Int e : places) memory.push_back(e);
  memory.push_back(channels);
  Operand o = to.add(memory, value);
  Operand out{o.buffer, {o.sizes.front(), o.sizes.back()}, {o.strides.front(), o.strides.back()}, 0};
  for (size_t i = 0; i < places.size(); ++i) {
    out.sizes.push_back(o.sizes[1 + i]);
    out.strides.push_back(o.strides[1 + i]);
  }
  return out;
}

template <class T>
struct Made {
  Buffers<T> buffers;
  Convolution step;
  Operand out;

  template <class Value>
  Made(const Case& c, ConvPart part, Value value) {
    step.part = part;
    step.transposed = c.transposed;
    step.groups = c.groups;
    step.stride = sizes(c.stride), step.padding = sizes(c.padding), step.dilation = sizes(c.dilation);
    step.output_padding = c.output_padding.empty() ? Sizes(c.in.size(), 0) : sizes(c.output_padding);
    step.x = add_tensor(buffers, c.batch, c.in_channels, c.in, c.channels_last, value);
    step.w = buffers.add(c.transposed ? with_places(c.in_channels, c.out_channels / c.groups, c.kernel)
                                      : with_places(c.out_channels, c.in_channels / c.groups, c.kernel),
                         value);
    step.y = add_tensor(buffers, c.batch, c.out_channels, out_places(c), c.channels_last, value);
    out = part == ConvPart::forward ? step.y : part == ConvPart::input_gradient ? step.x : step.w;
    if (part == ConvPart::weight_gradient) return;
    step.epilogue.relu = c.relu;
    if (c.bias) {
      step.epilogue.has_bias = true;
      step.epilogue.bias = buffers.add({out.sizes[1]}, value);
    }
    if (c.residual) {
      step.epilogue.has_residual = true;
      List places;
      for (size_t i = 2; i < out.sizes.size(); ++i) places.push_back(out.sizes[i].as_int());
      step.epilogue.residual = add_tensor(buffers, c.batch, out.sizes[1].as_int(), places, c.channels_last, value);
    }
  }
};

/// An operand's strides as numbers; dims that it does not have are of size 1.
struct Steps {
  std::array<Int, 5> stride = {};
  Int offset = 0;
  explicit Steps(const Operand& o) : offset(o.offset.as_int()) {
    for (size_t i = 0; i < o.strides.size(); ++i) stride[i] = o.strides[i].as_int();
  }
  Int at(Int first, Int second, const std::array<Int, 3>& places) const {
    return offset + first * stride[0] + second * stride[1] + places[0] * stride[2] + places[1] * stride[3] +
           places[2] * stride[4];
  }
};
std::array<Int, 3> three(const List& list, Int missing) {
  std::array<Int, 3> out = {missing, missing, missing};
  std::copy(list.begin(), list.end(), out.begin());
  return out;
}

/// f(place of x, of w, of y in their memory) for every product of the forward sum.
template <class F>
void for_each_term(const Case& c, const Convolution& step, F&& f) {
  const Int in_group = c.in_channels / c.groups, out_group = c.out_channels / c.groups;
  const List out = out_places(c);
  const auto steps = three(c.transposed ? c.in : out, 1);  // places that are `stride` apart
  const auto reached = three(c.transposed ? out : c.in, 1);
  const auto kernel = three(c.kernel, 1), stride = three(c.stride, 1), padding = three(c.padding, 0),
             dilation = three(c.dilation, 1);
  const Steps x(step.x), w(step.w), y(step.y);
  std::array<Int, 3> s, k, r;
  auto taps = [&](Int n, Int o, Int i) {
    const Int g = o / out_group;
    for (size_t e = 0; e < 3; ++e) {
      r[e] = s[e] * stride[e] - padding[e] + k[e] * dilation[e];
      if (r[e] < 0 || r[e] >= reached[e]) return;
    }
    f(x.at(n, g * in_group + i, c.transposed ? s : r),
      c.transposed ? w.at(g * in_group + i, o % out_group, k) : w.at(o, i, k), y.at(n, o, c.transposed ? r : s));
  };
  for (Int n = 0; n < c.batch; ++n)
    for (Int o = 0; o < c.out_channels; ++o)
      for (Int i = 0; i < in_group; ++i)
        for (s[0] = 0; s[0] < steps[0]; ++s[0])
          for (s[1] = 0; s[1] < steps[1]; ++s[1])
            for (s[2] = 0; s[2] < steps[2]; ++s[2])
              for (k[0] = 0; k[0] < kernel[0]; ++k[0])
                for (k[1] = 0; k[1] < kernel[1]; ++k[1])
                  for (k[2] = 0; k[2] < kernel[2]; ++k[2]) taps(n, o, i);
}

template <class T>
std::vector<T> expected(const Made<T>& m, const Case& c) {
  const Convolution& s = m.step;
  std::vector<T> out(m.buffers.values(m.out).size(), 0);
  const auto &xs = m.buffers.values(s.x), &ws = m.buffers.values(s.w), &ys = m.buffers.values(s.y);
  for_each_term(c, s, [&](Int x, Int w, Int y) {
    switch (s.part) {
      case ConvPart::forward: out[y] += xs[x] * ws[w]; break;
      case ConvPart::input_gradient: out[x] += ys[y] * ws[w]; break;
      case ConvPart::weight_gradient: out[w] += xs[x] * ys[y]; break;
    }
  });
  if (s.part == ConvPart::weight_gradient) return out;
  List index(m.out.sizes.size(), 0);
  for (size_t done = 0; done < out.size(); ++done) {
    T& v = out[at(m.out, index)];
    if (s.epilogue.has_bias) v += m.buffers.values(s.epilogue.bias)[static_cast<size_t>(index[1])];
    if (s.epilogue.has_residual) v += m.buffers.values(s.epilogue.residual)[at(s.epilogue.residual, index)];
    if (s.epilogue.relu && v < 0) v = 0;
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < m.out.sizes[d].as_int()) break;
      index[d] = 0;
    }
  }
  return out;
}

template <class T>
void check_part(const Case& c, ConvPart part) {
  SCOPED_TRACE(testing::Message() << "part " << int(part) << (c.transposed ? " transposed" : "") << " channels "
                                  << c.in_channels << " to " << c.out_channels << " groups " << c.groups);
  kernels::Numbers numbers(7);
  Made<T> exact(c, part, [&] { return numbers.below(9) - 4; });
  const std::vector<T> wanted = expected(exact, c);
  Made<T> any(c, part, [&] { return numbers.unit(); });
  std::vector<loop::Step> packed, any_packed;
  if (part != ConvPart::weight_gradient)
    for (auto* m : {&exact, &any}) {
      loop::Pack pack = loop::pack_of(m->step, 0);
      const Sizes packed_as = c.winograd ? loop::transformed_sizes(pack) : loop::packed_sizes(pack);
      pack.to = m->buffers.add(packed_as, [] { return 1e30; }).buffer;
      (m == &exact ? packed : any_packed) = std::vector<loop::Step>{pack, loop::with_packed(m->step, pack.to)};
    }
  std::vector<T> first;
  for (tenon_target target : kernels::targets()) {
    EXPECT_EQ(exact.buffers.run({exact.step}, exact.out.buffer, target, 1), wanted) << "target " << target;
    const std::vector<T> got =
        any.buffers.run(c.winograd ? any_packed : std::vector<loop::Step>{any.step}, any.out.buffer, target, 3);
    if (first.empty()) first = got;
    EXPECT_EQ(got, first) << "target " << target;
    if (packed.empty()) continue;
    EXPECT_EQ(exact.buffers.run(packed, exact.out.buffer, target, 1000), wanted) << "packed, target " << target;
    EXPECT_EQ(any.buffers.run(any_packed, any.out.buffer, target, 1), first) << "packed, target " << target;
  }
}
void check(Case c) {
  for (bool channels_last : {false, true}) {
    c.channels_last = channels_last;
    for (ConvPart part : {ConvPart::forward, ConvPart::input_gradient, ConvPart::weight_gradient}) {
      check_part<float>(c, part);
      check_part<double>(c, part);
    }
  }
}

TEST(LibraryConvolution, AKernelOfThreeByThreeWithPadding) { check({2, 5, 7, {6, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}); }

TEST(LibraryConvolution, OnlyTheChannelsAreSummed) {
  check({2, 20, 33, {5, 5}, {1, 1}, {1, 1}, {0, 0}, {1, 1}});
  check({1, 4, 3, {5, 6}, {1, 1}, {2, 2}, {0, 0}, {1, 1}});
}

TEST(LibraryConvolution, StridesDilationsAndPaddingOfAllKinds) {
  check({1, 3, 17, {11, 8}, {3, 2}, {2, 3}, {1, 0}, {1, 2}});
  check({1, 3, 2, {9, 9}, {2, 3}, {3, 2}, {2, 4}, {2, 3}});
  check({1, 2, 3, {7, 7}, {2, 2}, {3, 3}, {0, 0}, {1, 1}});
  check({1, 2, 2, {10}, {3}, {2}, {5}, {4}});
}

TEST(LibraryConvolution, ManyChannelsUnderTapsAreBroughtTogetherForTheGradientOfWeights) {
  check({2, 20, 35, {9, 13}, {3, 3}, {2, 2}, {1, 1}, {1, 1}});
  check({9, 9, 18, {20, 20}, {3, 3}, {2, 2}, {1, 1}, {1, 1}});  // sums of two chunks
  check({1, 40, 3, {6, 5}, {2, 1}, {1, 1}, {0, 0}, {1, 1}});
}

TEST(LibraryConvolution, OneAndThreeDimensions) {
  check({2, 4, 6, {13}, {5}, {2}, {2}, {1}});
  check({1, 3, 4, {4, 5, 6}, {2, 3, 3}, {1, 2, 1}, {1, 1, 0}, {1, 1, 2}});
}

TEST(LibraryConvolution, GroupsAreConvolutionsOfTheirOwn) {
  check({2, 6, 9, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 3});
  check({1, 4, 40, {5, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 2});
}

TEST(LibraryConvolution, EveryChannelByItself) {
  check({2, 19, 19, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 19});
  check({1, 32, 32, {9, 9}, {3, 5}, {2, 2}, {1, 2}, {1, 1}, 32});
  check({1, 16, 16, {9}, {3}, {1}, {2}, {2}, 16});
  check({1, 4, 8, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 4});
}

TEST(LibraryConvolution, EveryChannelByItselfInPairsOfRowsAndRowsOfSevenTaps) {
  for (Int channels : {5, 40})
    for (Int places : {1, 2, 5, 9})
      for (Int taps : {3, 7})
        for (Int padding : {Int{0}, taps / 2})
          if (places + 2 * padding >= taps) {
            Case c{2,      channels, channels, {places, places + 1}, {taps, taps}, {1, 1}, {padding, padding},
                   {1, 1}, channels};
            c.channels_last = c.bias = true;
            c.residual = places % 2 == 1;
            c.relu = channels == 40;
            check(c);
          }
}

TEST(LibraryConvolution, OfFewPlacesThreadsShareTheChannels) {
  for (Int channels : {128, 150})
    for (Int residual : {0, 1}) {
      Case c{1, channels, channels, {7, 7}, {5, 5}, {1, 1}, {2, 2}, {1, 1}, channels};
      c.channels_last = c.bias = c.relu = true;
      c.residual = residual == 1;
      check(c);
    }
}

TEST(LibraryConvolution, TransposedOnesSpreadTheirInput) {
  check({2, 5, 6, {4, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, true, {1, 1}});
  check({1, 4, 6, {5}, {3}, {3}, {0}, {2}, 2, true});
  check({1, 18, 18, {4, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 18, true, {1, 0}});
}

TEST(LibraryConvolution, ManyPointsChannelsAndTerms) {
  check_part<float>({1, 90, 200, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, ConvPart::forward);
  Case c{1, 90, 70, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  c.channels_last = true;
  check_part<float>(c, ConvPart::forward);
  check_part<float>(c, ConvPart::input_gradient);
  check_part<float>({3, 20, 10, {17, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, ConvPart::weight_gradient);
  check_part<float>({1, 800, 20, {2, 2}, {1, 1}, {1, 1}, {0, 0}, {1, 1}}, ConvPart::forward);
}

TEST(LibraryConvolution, AStepThatIsNeverTakenMayBeOfAnySize) {
  check({1, 2, 3, {4, 4}, {3, 3}, {1000000000, 1}, {0, 1}, {1, 1}});
}

TEST(LibraryConvolution, TheEpilogueAddsBiasAndResidualAndCutsBelowZero) {
  for (Int groups : {1, 18})
    for (bool relu : {false, true}) {
      Case c{2, 18, 18, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, groups};
      c.bias = true, c.residual = true, c.relu = relu;
      check(c);
    }
  Case c{1, 90, 20, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};  // several chunks of terms
  c.bias = true, c.residual = true, c.relu = true;
  check(c);
}

TEST(LibraryConvolution, RowsOfOneChannelEachComeInRunsWithEdges) {
  for (Int taps : {3, 5})
    for (Int stride : {1, 2})
      for (Int width : {1, 2, 5, 7, 9, 14, 16, 23, 31}) {
        Case c{1, 40, 40, {6, width}, {taps, taps}, {stride, stride}, {taps / 2, taps / 2}, {1, 1}, 40};
        c.channels_last = true, c.bias = true, c.relu = true;
        check_part<float>(c, ConvPart::forward);
      }
}

void check_winograd(Case c) {
  c.winograd = c.channels_last = true;
  check_part<float>(c, ConvPart::forward);
  check_part<float>(c, ConvPart::input_gradient);
}

TEST(LibraryConvolution, WinogradGivesTheSameSums) {
  for (Int padding : {0, 1, 2})
    for (List places : {List{6, 8}, List{7, 5}, List{4, 3}})
      check_winograd({2, 16, 32, places, {3, 3}, {1, 1}, {padding, padding}, {1, 1}});
  check_winograd({1, 48, 224, {9, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
  check_winograd({3, 16, 16, {15, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
}

TEST(LibraryConvolution, WinogradHasTheSameEpilogue) {
  for (bool relu : {false, true}) {
    Case c{1, 32, 48, {7, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
    c.bias = true, c.residual = true, c.relu = relu;
    check_winograd(c);
  }
}

TEST(LibraryConvolution, WinogradStaysWithinTheErrorOfDirectSums) {
  Case c{1, 128, 64, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  c.channels_last = true;
  kernels::Numbers numbers(11);
  Made<float> m(c, ConvPart::forward, [&] { return numbers.unit(); });
  std::vector<double> wanted(m.buffers.values(m.out).size(), 0);
  const auto &xs = m.buffers.values(m.step.x), &ws = m.buffers.values(m.step.w);
  for_each_term(c, m.step, [&](Int x, Int w, Int y) { wanted[y] += double(xs[x]) * double(ws[w]); });
  auto error = [&](auto sizes_of) {
    loop::Pack pack = loop::pack_of(m.step, 0);
    pack.to = m.buffers.add(sizes_of(pack), [] { return 0; }).buffer;
    const std::vector<float> got =
        m.buffers.run({pack, loop::with_packed(m.step, pack.to)}, m.out.buffer, kernels::targets().front(), 1);
    double sum = 0;
    for (size_t i = 0; i < got.size(); ++i) sum += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    return std::sqrt(sum);
  };
  EXPECT_LT(error(loop::transformed_sizes), 3 * error(loop::packed_sizes));
}

TEST(LibraryConvolution, TheGradientOfWeightsByWinogradGivesTheSameSums) {
  auto check_weights = [](Case c) {
    c.channels_last = true;
    Made<float> m(c, ConvPart::weight_gradient, [] { return 0; });
    ASSERT_EQ(weight_gradient_method(m.buffers.program, m.step), loop::ConvMethod::winograd);
    check_part<float>(c, ConvPart::weight_gradient);
  };
  for (Int padding : {0, 1, 2})
    check_weights({3, 32, 48, padding == 1 ? List{17, 15} : List{16, 18}, {3, 3}, {1, 1}, {padding, padding}, {1, 1}});
  check_weights({8, 208, 16, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});  // two blocks of channels
  check_weights({7, 16, 208, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
  check_weights({10, 32, 32, {16, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});  // several blocks of tiles
}

// Images whose mean is not 0, as behind a relu: Winograd takes differences of large sums.
TEST(LibraryConvolution, TheGradientOfWeightsByWinogradStaysWithinTheErrorOfPlainSums) {
  auto error = [](bool channels_last, Int batch, List places) {
    Case c{batch, 32, 32, places, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
    c.channels_last = channels_last;
    kernels::Numbers numbers(12);
    Made<float> m(c, ConvPart::weight_gradient, [&] { return numbers.unit() + 0.5; });
    EXPECT_EQ(weight_gradient_method(m.buffers.program, m.step),
              channels_last ? loop::ConvMethod::winograd : loop::ConvMethod::direct);
    std::vector<double> wanted(m.buffers.values(m.out).size(), 0);
    const auto &xs = m.buffers.values(m.step.x), &ys = m.buffers.values(m.step.y);
    for_each_term(c, m.step, [&](Int x, Int w, Int y) { wanted[w] += double(xs[x]) * double(ys[y]); });
    const std::vector<float> got = m.buffers.run({m.step}, m.out.buffer, kernels::targets().front(), 1);
    double sum = 0, all = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      sum += (got[i] - wanted[i]) * (got[i] - wanted[i]);
      all += wanted[i] * wanted[i];
    }
    return std::sqrt(sum / all);
  };
  for (auto [batch, places] : {std::pair<Int, List>{8, {8, 8}}, {8, {14, 14}}, {4, {40, 40}}})
    EXPECT_LT(error(true, batch, places), 1.5 * error(false, batch, places)) << batch << " images of " << places[0];
}

TEST(LibraryConvolution, TheGradientOfWeightsByWinogradNeedsImages) {
  Case c{0, 64, 64, {16, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  c.channels_last = true;
  Made<float> m(c, ConvPart::weight_gradient, [] { return 1; });
  for (Operand* o : {&m.step.x, &m.step.y}) o->sizes[0] = 0;
  for (float v : m.buffers.run({m.step}, m.out.buffer, kernels::targets().front(), 1)) ASSERT_EQ(v, 0);
}

TEST(LibraryConvolution, TheGradientOfWeightsIsDirectWhereChannelsLieApart) {
  Case c{2, 64, 64, {28, 28}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  Made<float> m(c, ConvPart::weight_gradient, [] { return 0; });
  EXPECT_EQ(weight_gradient_method(m.buffers.program, m.step), loop::ConvMethod::direct);
}

TEST(LibraryConvolution, WhoeverAsksHearsTheSameMethod) {
  Case c{1, 64, 64, {28, 28}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  c.channels_last = true;
  Made<float> m(c, ConvPart::forward, [] { return 0; });
  EXPECT_EQ(method_of(m.buffers.program, m.step), loop::ConvMethod::winograd);
  EXPECT_EQ(method_of(m.buffers.program, m.step, {.tile = 1e6}), loop::ConvMethod::direct);
  loop::Pack pack = loop::pack_of(m.step, 0);
  for (bool winograd : {false, true}) {
    pack.to =
        m.buffers.add(winograd ? loop::transformed_sizes(pack) : loop::packed_sizes(pack), [] { return 0; }).buffer;
    const auto wanted = winograd ? loop::ConvMethod::winograd : loop::ConvMethod::direct;
    EXPECT_EQ(method_of(m.buffers.program, pack), wanted);
    EXPECT_EQ(method_of(m.buffers.program, loop::with_packed(m.step, pack.to)), wanted);
  }
  m.step.stride = {2, 2};
  EXPECT_EQ(method_of(m.buffers.program, m.step), loop::ConvMethod::direct);
}

TEST(LibraryConvolution, NoImagesGiveNothingAndNoGradient) { check({0, 3, 4, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}); }

TEST(LibraryConvolution, SizesMayBeSymbols) {
  const SymInt n = SymInt::symbol("s0"), h = SymInt::symbol("s1");
  Case c{2, 5, 6, {7, 7}, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
  for (ConvPart part : {ConvPart::forward, ConvPart::input_gradient, ConvPart::weight_gradient}) {
    kernels::Numbers numbers(3);
    Made<float> m(c, part, [&] { return numbers.below(9) - 4; });
    const std::vector<float> wanted = expected(m, c);
    auto sized = [&](Operand& o, SymInt places) {
      o.sizes = {n, o.sizes[1], places, places};
      o.strides = {o.sizes[1] * places * places, places * places, places, 1};
      loop::Buffer& b = m.buffers.program.buffers[o.buffer];
      b.sizes = o.sizes, b.strides = o.strides;
    };
    sized(m.step.x, h);
    sized(m.step.y, sym::floor_div(h - 1, 2) + 1);
    for (tenon_target target : kernels::targets())
      EXPECT_EQ(m.buffers.run({m.step}, m.out.buffer, target, 1, {{n, 2}, {h, 7}}), wanted);
  }
}

void expect_error(const Convolution& step, const Buffers<float>& buffers, const char* message) {
  try {
    library_calls(buffers.program, step);
    FAIL() << "expected: " << message;
  } catch (const Error& e) { EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what(); }
}

TEST(LibraryConvolution, SizesThatDoNotBelongTogetherAreRefused) {
  Case c{1, 4, 6, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  Made<float> m(c, ConvPart::forward, [] { return 0; });
  Convolution step = m.step;
  step.padding = {0, 0};
  expect_error(step, m.buffers, "a convolution gives 3 places where 5 are expected");
  step = m.step;
  step.groups = 0;
  expect_error(step, m.buffers, "at least one group");
  step = m.step;
  step.w.sizes[1] = 3;
  expect_error(step, m.buffers, "the number of channels times groups is 4 and 3");
  step = m.step;
  step.y.offset = 1;
  expect_error(step, m.buffers, "the output [1, 6, 5, 5] is read from f32[1, 6, 5, 5]");
  step = m.step;
  step.stride = {0, 1};
  expect_error(step, m.buffers, "stride is at least 1");
  step = loop::with_packed(m.step, m.step.x.buffer);
  expect_error(step, m.buffers, "packed elements are read from");
}

}  // namespace
}  // namespace tenon::plan
