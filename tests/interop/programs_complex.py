"""r: complex numbers and Fourier transforms."""

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

from programs import Function, Program, program


class Mixing(nn.Module):
    """A layer of FNet: tokens and features are mixed by their transform."""

    def __init__(self):
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        x = self.norm(x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real)
        return x + self.narrow(F.gelu(self.wide(x)))


@program("r")
def fnet():
    return Program(Mixing(), (torch.randn(2, 12, 16),), dynamic_shapes=({0: Dim("batch"), 1: Dim("tokens")},),
                   more=[((torch.randn(3, 7, 16),), {})])


@program("r")
def spectrogram():
    class Spectrogram(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.hann_window(64))

        def forward(self, x):
            spectrum = torch.stft(x, 64, hop_length=16, window=self.window, return_complex=True)
            return spectrum.abs().pow(2).log1p(), torch.istft(spectrum, 64, hop_length=16, window=self.window), spectrum

    return Program(Spectrogram(), (torch.randn(2, 400),))


@program("r")
def rotary():
    def forward(x):
        angles = torch.outer(torch.arange(x.shape[1], dtype=torch.float32), 10000 ** (-torch.arange(0, 8, 2).float() / 8))
        turns = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns[None, :, None, :]).flatten(3).type_as(x)

    return Program(Function(forward), (torch.randn(2, 7, 3, 8),), dynamic_shapes=({1: Dim("tokens")},),
                   more=[((torch.randn(2, 5, 3, 8),), {})])


@program("r")
def spectral_convolution():
    class Spectral(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(0.2 * torch.randn(3, 4, 6, dtype=torch.cfloat))
            self.bias = nn.Parameter(torch.randn(4, 1))

        def forward(self, x):
            spectrum = torch.fft.rfft(x)
            out = torch.zeros(x.shape[0], 4, x.shape[-1] // 2 + 1, dtype=torch.cfloat)
            out[:, :, :6] = torch.einsum("bix,iox->box", spectrum[:, :, :6], self.weight)
            return torch.fft.irfft(out, n=x.shape[-1]) + self.bias

    return Program(Spectral(), (torch.randn(2, 3, 20),))


@program("r")
def fourier_operator():
    class Operator(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(0.2 * torch.randn(2, 2, 4, 4, 2))

        def forward(self, x):
            spectrum = torch.fft.rfft2(x, norm="ortho")
            out = torch.zeros_like(spectrum)
            out[..., :4, :4] = torch.einsum("bixy,ioxy->boxy", spectrum[..., :4, :4], torch.view_as_complex(self.weight))
            return torch.fft.irfft2(out, s=x.shape[-2:], norm="ortho")

    return Program(Operator(), (torch.randn(2, 2, 10, 11),))


@program("r")
def arithmetic_and_writes():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("matrix", torch.randn(5, 5, dtype=torch.cdouble))
            self.register_buffer("seen", torch.zeros(5, dtype=torch.cdouble))

        def forward(self, z, x):
            a = (z @ self.matrix.conj().T) * (1.5 - 2j) + x
            self.seen.add_(a.mean(0).detach())
            total = a.abs().sum()
            a = a.clone()
            a.imag.mul_(2)
            a[0] = 1j
            turned = torch.exp(1j * a.angle()) / (a + 0.5)
            return total + turned.real.sum(), turned, torch.stack([a, a.mH]).mean(0), torch.complex(x, x).T.contiguous(), a == a.conj()

    return Program(Mixed(), (torch.randn(5, 5, dtype=torch.cdouble), torch.randn(5, 5, dtype=torch.double)))


@program("r")
def writes_meet_conjugates():
    def forward(z):
        z = z.clone()
        conjugate = z.conj()
        z.mul_(2)
        conjugate[0].add_(1 + 1j)
        return torch.real(conjugate) + z.imag, conjugate, z, conjugate.resolve_conj()

    return Program(Function(forward), (torch.randn(4, 3, dtype=torch.cfloat),))


@program("r")
def filters_of_any_length():
    def forward(x, h):
        n = x.shape[-1] + h.shape[-1] - 1
        filtered = torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(h, n), n)
        return filtered, torch.fft.fftshift(torch.fft.fft2(x)), torch.fft.fftfreq(10), torch.fft.hfft(torch.fft.ihfft(x), x.shape[-1])

    return Program(Function(forward), (torch.randn(3, 50), torch.randn(3, 12)))
