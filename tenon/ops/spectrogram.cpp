// Transforms of windows that slide over a signal, and back; the frequencies of transforms.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/fold.h"
#include "tenon/ops/fourier.h"
#include "tenon/ops/padding.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

/// What both directions are told of the windows.
struct Windows {
  int64_t size, hop;
  Tensor window;  // of that size

  Windows(Build& b, DType real) : size(b.constant("n_fft")) {
    hop = b.given("hop_length") ? b.constant("hop_length") : size / 4;
    int64_t length = b.given("win_length") ? b.constant("win_length") : size;
    b.require(size > 0 && hop > 0 && length > 0 && length <= size,
              "expected 0 < win_length <= n_fft and hop_length > 0, got ", length, ", ", size, " and ", hop);
    window = b.given("window") ? b["window"] : Tensor(ones(Sizes{length}, kw("dtype", real)));
    b.require(window.rank() == 1 && window.sizes()[0] == SymInt(length), "window: expected ", length, " elements, got ",
              window.meta());
    int64_t left = (size - length) / 2;
    if (length < size) window = constant_pad_nd(window, Sizes{left, size - length - left});
  }
};

Results spectrogram(Build& b, bool may_center) {
  Tensor x = b["self"];
  b.require(x.rank() == 1 || x.rank() == 2, "expected a signal or a batch of them, got ", x.meta());
  b.supports(!b.flag("align_to_window"), "align_to_window is not supported yet");
  bool batched = x.rank() == 2;
  if (!batched) x = unsqueeze(x, 0);
  Windows windows(b, real_of(x.dtype()));
  if (may_center && b.flag("center")) {
    Tensor deep = unsqueeze(x, 0);  // what reflections pad: two dimensions in front
    x = squeeze_dim(pad(deep, Sizes{windows.size / 2, windows.size / 2}, b.arg("pad_mode")), 0);
  }
  bool complex = is_complex(x.dtype()) || is_complex(windows.window.dtype());
  bool onesided = b.given("onesided") ? b.flag("onesided") : !complex;
  b.require(!complex || !onesided, "onesided: the transform of complex numbers has two sides");
  b.require(complex || b.given("return_complex"), "return_complex: expected it to be given for a real signal");
  Tensor frames = mul(unfold(x, 1, windows.size, windows.hop), windows.window);
  CallArg norm = b.flag("normalized") ? CallArg(std::string("ortho")) : CallArg();
  Tensor out = onesided ? fft_rfft(frames, kw("norm", norm)) : fft_fft(frames, kw("norm", norm));
  out = transpose(out, 1, 2);
  if (!batched) out = squeeze_dim(out, 0);
  bool pairs = b.given("return_complex") ? !b.flag("return_complex") : false;
  return pairs ? view_as_real(out) : one(out);
}

// Windows added where they overlap, divided by what the squares of the windows add up to.
Results signal_of(Build& b) {
  Tensor x = b["self"];
  if (!is_complex(x.dtype())) x = view_as_complex(x);
  b.require(x.rank() == 2 || x.rank() == 3, "expected a spectrogram or a batch of them, got ", x.meta());
  bool batched = x.rank() == 3;
  if (!batched) x = unsqueeze(x, 0);
  Windows windows(b, real_of(x.dtype()));
  bool complex = b.flag("return_complex");
  int64_t half = windows.size / 2;
  SymInt given = x.sizes()[1], frames = x.sizes()[2], all = (frames - 1) * windows.hop + windows.size;
  bool onesided = b.given("onesided") ? b.flag("onesided") : !(given == SymInt(windows.size));
  b.require(given == SymInt(onesided ? half + 1 : windows.size), "expected ", onesided ? half + 1 : windows.size,
            " frequencies, got ", x.meta());
  b.require(!complex || !onesided, "onesided: complex signals have transforms of two sides");
  x = transpose(x, 1, 2);
  CallArg norm = b.flag("normalized") ? CallArg(std::string("ortho")) : CallArg();
  Tensor parts =
      complex ? fft_ifft(x, kw("norm", norm)) : fft_irfft(slice(x, 2, 0, half + 1), windows.size, kw("norm", norm));
  Tensor window = windows.window, signal = mul(parts, window);
  signal = unfold_backward(signal, Sizes{x.sizes()[0], all}, 1, windows.size, windows.hop);
  Tensor squares = expand(mul(window, window), Sizes{1, frames, windows.size});
  Tensor weight = unfold_backward(squares, Sizes{1, all}, 1, windows.size, windows.hop);
  SymInt start = b.flag("center") ? half : 0;
  SymInt end = b.given("length") ? start + b.integer("length") : b.flag("center") ? all - half : all;
  b.supports(all.is_int() && end.is_int(), "a length of ", end, " of ", all,
             " elements is supported where both are constants");
  SymInt last = std::min(end.as_int(), all.as_int());
  Tensor out = div(slice(signal, 1, start, last), slice(weight, 1, start, last));
  if (end.as_int() > all.as_int()) out = constant_pad_nd(out, Sizes{0, end - all});
  return batched ? one(out) : squeeze_dim(out, 0);
}

Results frequencies(Build& b, bool half) {
  int64_t n = b.constant("n");
  b.require(n > 0, "n: expected a positive number, got ", n);
  DType dtype = b.dtype("dtype").value_or(DType::f32);
  Tensor at = arange(0, half ? n / 2 + 1 : n, kw("dtype", dtype));
  if (!half) at = where(lt(at, static_cast<double>(n / 2 + n % 2)), at, at - static_cast<double>(n));
  return mul(at, 1 / (static_cast<double>(n) * b.number("d")));
}

}  // namespace

void register_spectrogram(Registry& ops) {
  ops.add({
      .schema =
          "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
          "normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return spectrogram(b, false); },
  });
  ops.add({
      .schema = "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
                "bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? "
                "return_complex=None, bool? align_to_window=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return spectrogram(b, true); },
  });
  ops.add({
      .schema = "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
                "center=True, bool normalized=False, bool? onesided=None, int? length=None, bool "
                "return_complex=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = signal_of,
  });
  ops.add({
      .schema = "fft_fftfreq(int n, float d=1., *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return frequencies(b, false); },
  });
  ops.add({
      .schema = "fft_rfftfreq(int n, float d=1., *, " TENON_TENSOR_OPTIONS ") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return frequencies(b, true); },
  });
}

}  // namespace tenon
