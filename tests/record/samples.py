"""How hand-written calls are noted down, and tensors to call operators with."""

import torch

aten = torch.ops.aten
f32, f64, f16, bf16, i64, i32, i8, u8, b8 = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64,
                                             torch.int32, torch.int8, torch.uint8, torch.bool)
DTYPES = (f32, f64, f16, bf16, i64, i32, b8)
calls = []


def call(overload, *args, **kwargs):
    calls.append((overload, args, kwargs))


def rand(*sizes, dtype=f32):
    """Values on a grid of eighths, so that they are exact in every floating dtype."""
    if dtype == b8:
        return torch.rand(sizes) > 0.5
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == u8 else -4, 9, sizes, dtype=dtype)
    return torch.randint(-16, 17, sizes).to(f64).div(8).to(dtype)


def positive(*sizes, dtype=f32):
    return torch.randint(1, 17, sizes).to(f64).div(8).to(dtype)


def strided(*sizes, dtype=f32):
    """A tensor with gaps, an offset and its last two dimensions swapped in memory."""
    wide = rand(*sizes[:-2], sizes[-1] * 2, sizes[-2] + 1, dtype=dtype)
    return wide[..., ::2, 1:].transpose(-1, -2)
