// Convolutions over one to three dimensions, and their transposes.
#pragma once
#include <tenon/nn/module.h>

namespace tenon::TENON_INLINE v0::nn {

struct ConvOptions {
  Extents stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  DType dtype = f32;
};
struct ConvTransposeOptions {
  Extents stride = 1, padding = 0, output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Extents dilation = 1;
  DType dtype = f32;
};

namespace detail {
class TENON_PUBLIC Convolution : public Module {
 public:
  Tensor operator()(const Tensor& x) const { return forward(x); }
  Tensor forward(const Tensor& x) const;
  Parameter weight, bias;

 protected:
  Convolution(std::size_t dims, std::int64_t in, std::int64_t out, const Extents& kernel, const ConvOptions& options);

 private:
  std::size_t dims_;
  ConvOptions options_;
};
class TENON_PUBLIC TransposedConvolution : public Module {
 public:
  Tensor operator()(const Tensor& x) const { return forward(x); }
  Tensor forward(const Tensor& x) const;
  Parameter weight, bias;

 protected:
  TransposedConvolution(std::size_t dims, std::int64_t in, std::int64_t out, const Extents& kernel,
                        const ConvTransposeOptions& options);

 private:
  std::size_t dims_;
  ConvTransposeOptions options_;
};
template <std::size_t dims>
class Conv : public Convolution {
 public:
  Conv(std::int64_t in_channels, std::int64_t out_channels, const Extents& kernel_size, const ConvOptions& options = {})
      : Convolution(dims, in_channels, out_channels, kernel_size, options) {}
};
template <std::size_t dims>
class ConvTranspose : public TransposedConvolution {
 public:
  ConvTranspose(std::int64_t in_channels, std::int64_t out_channels, const Extents& kernel_size,
                const ConvTransposeOptions& options = {})
      : TransposedConvolution(dims, in_channels, out_channels, kernel_size, options) {}
};
}  // namespace detail

using Conv1d = detail::Conv<1>;
using Conv2d = detail::Conv<2>;
using Conv3d = detail::Conv<3>;
using ConvTranspose1d = detail::ConvTranspose<1>;
using ConvTranspose2d = detail::ConvTranspose<2>;
using ConvTranspose3d = detail::ConvTranspose<3>;

}  // namespace tenon::TENON_INLINEv0::nn
