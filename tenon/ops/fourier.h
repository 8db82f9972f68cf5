// Fourier transforms.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle fft_fft, fft_ifft, fft_rfft, fft_irfft;

}  // namespace tenon
