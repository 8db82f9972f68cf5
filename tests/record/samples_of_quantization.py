"""Hand-written calls of the operators that quantized programs contain. Those of torchao and ExecuTorch are called where these packages
are installed; without them their recordings stay as they are (record_ops.py --only)."""

import importlib

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  defines quantized_decomposed

from samples import aten, bf16, call, f16, f32, f64, i8, i32, i64, positive, rand, strided, u8

decomposed = torch.ops.quantized_decomposed
i16 = torch.int16


def load_packages():
    """Imports what defines operators of other namespaces, as far as it is installed."""
    found = set()
    for name in ("torchao.quantization", "executorch.exir.passes._quant_patterns_and_replacements",
                 "transformers.integrations.moe"):
        try:
            importlib.import_module(name)
            found.add(name.split(".")[0])
        except ImportError:
            pass
    return found


def near(*sizes, dtype=f32):
    """Values that a scale of 1/16 puts between integers, some beyond 8 bits."""
    return (torch.randint(-4000, 4000, sizes).to(f64) / 256 + 1 / 1024).to(dtype)


def integers(*sizes, dtype=i8):
    low, high = (0, 256) if dtype == u8 else (-128, 128)
    return torch.randint(low, high, sizes).to(dtype)


def one(value, dtype):
    return torch.tensor([value], dtype=dtype)


def whole_tensors():
    for dtype, low, high, zero in ((u8, 0, 255, 13), (i8, -128, 127, -3), (i8, -127, 127, 0), (i16, -32768, 32767, 5), (i32, -2**31, 2**31 - 1, 0)):
        for x in (near(3, 4), near(5, dtype=bf16), near(2, 3, dtype=f16), strided(3, 2), near(0, 2), torch.tensor(0.3)):
            call(decomposed.quantize_per_tensor.default, x, 0.0625, zero, low, high, dtype)
        q = integers(3, 4, dtype=u8 if dtype == u8 else i8).to(dtype)
        for out in (None, f16, bf16, f64):
            call(decomposed.dequantize_per_tensor.default, q, 0.037, zero, low, high, dtype, out_dtype=out)
        for scale, point in ((one(0.037, f64), one(zero, i64)), (torch.tensor(0.0625), torch.tensor(zero, dtype=i32))):
            call(decomposed.quantize_per_tensor.tensor, near(3, 4), scale, point, low, high, dtype)
            call(decomposed.dequantize_per_tensor.tensor, q, scale, point, low, high, dtype)
            if dtype != i32:
                ends = torch.tensor(low), torch.tensor(high)
                call(decomposed.quantize_per_tensor.tensor2, near(3, 4), scale, point, *ends, dtype)
                call(decomposed.dequantize_per_tensor.tensor2, q, scale, point, *ends, dtype)
    for x in (near(3, 4), positive(5), -positive(2, 2), near(4, dtype=bf16), near(3, dtype=f16), torch.zeros(3)):
        call(decomposed.choose_qparams.tensor, x, 0, 255, 2**-12, u8)
        call(decomposed.choose_qparams.tensor, x, -128, 127, 1e-7, i8)
        call(decomposed.choose_qparams_symmetric.tensor, x, -127, 127, 2**-12, i8)
        call(decomposed.choose_qparams_symmetric.tensor, x, 0, 255, 2**-12, u8)
    for dtype in (f32, bf16, i32, i8):
        call(decomposed.convert_element_type.no_fuse, rand(2, 3), dtype)
    call(decomposed.convert_element_type.no_fuse, integers(4), f32)


def channels_tokens_and_groups():
    for axis, count, zeros in ((0, 3, i64), (1, 4, i32), (2, 2, i8)):
        scales, points = positive(count) / 16, torch.randint(-5, 6, (count,)).to(zeros)
        for low, high, dtype in ((-128, 127, i8), (-127, 127, i8)):
            call(decomposed.quantize_per_channel.default, near(3, 4, 2), scales, points, axis, low, high, dtype)
            call(decomposed.dequantize_per_channel.default, integers(3, 4, 2), scales, points, axis, low, high, dtype)
        call(decomposed.dequantize_per_channel.default, integers(3, 4, 2), scales.double(), None, axis, -128, 127, i8, out_dtype=bf16)
        call(decomposed.fake_quant_per_channel.default, near(3, 4, 2), scales, points, axis, -8, 7)
    call(decomposed.quantize_per_channel.default, near(3, 4, dtype=bf16), positive(3).double() / 16, torch.zeros(3, dtype=i64), 0, 0, 255, u8)
    for x in (near(2, 3, 4), near(5, 8)):
        tokens = (*x.shape[:-1], 1)
        scales, points = positive(*tokens).double() / 16, torch.randint(-5, 6, tokens)
        call(decomposed.quantize_per_token.default, x, scales, points, -128, 127, i8)
        call(decomposed.dequantize_per_token.default, integers(*x.shape), scales, points, -128, 127, i8, f32)
        call(decomposed.dequantize_per_token.default, integers(*x.shape), scales.float(), points, -128, 127, i8, bf16)
        call(decomposed.choose_qparams_per_token_asymmetric.default, x, i8)
        call(decomposed.choose_qparams_per_token_asymmetric.default, x.abs(), i8)
        call(decomposed._choose_qparams_per_token_asymmetric_impl.default, x, i8)
        call(decomposed.choose_qparams_per_token.default, x, i8)
    for group, rows, columns in ((4, 3, 8), (2, 2, 2), (8, 2, 4)):
        count = max(1, columns // group)
        scales, points = positive(rows, count) / 16, torch.randint(-5, 6, (rows, count)).to(i32)
        call(decomposed.quantize_per_channel_group.default, near(rows, columns), scales, points, -8, 7, i8, group)
        call(decomposed.dequantize_per_channel_group.default, integers(rows, columns), scales, points, -128, 127, i8, group, f32)
        call(decomposed.dequantize_per_channel_group.default, integers(rows, columns), scales, None, -128, 127, i8, group, bf16)


def simulated():
    for x in (near(3, 4), strided(3, 2), near(4, dtype=bf16), near(3, dtype=f16), near(0, 2)):
        for scale, zero, low, high in ((0.0625, 3, 0, 255), (0.11, -2, -8, 7)):
            call(aten.fake_quantize_per_tensor_affine.default, x, scale, zero, low, high)
            call(aten.fake_quantize_per_tensor_affine_cachemask.default, x, scale, zero, low, high)
            call(aten.fake_quantize_per_tensor_affine.tensor_qparams, x, one(scale, f32), one(zero, i32), low, high)
            for on in (0, 1):
                call(aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default, x, one(scale, f32), one(zero, i32), one(on, i64), low, high)
    call(aten.fake_quantize_per_tensor_affine_cachemask_backward.default, rand(3, 4), rand(3, 4) > 0)
    call(aten.fake_quantize_per_channel_affine_cachemask_backward.default, rand(3, 4), rand(3, 4) > 0)
    for axis, count in ((0, 3), (1, 4), (-1, 2)):
        scales, points = positive(count) / 16, torch.randint(-3, 4, (count,))
        if axis >= 0:
            for zeros in (i32, f32):
                call(aten.fake_quantize_per_channel_affine.default, near(3, 4, 2), scales, points.to(zeros), axis, -8, 7)
                call(aten.fake_quantize_per_channel_affine_cachemask.default, near(3, 4, 2), scales, points.to(zeros), axis, -128, 127)
            for factor in (1.0, 0.25):
                learned = scales, points.to(f32) + 0.25
                call(aten._fake_quantize_learnable_per_channel_affine.default, near(3, 4, 2), *learned, axis, -8, 7, factor)
                call(aten._fake_quantize_learnable_per_channel_affine_backward.default, rand(3, 4, 2), near(3, 4, 2), *learned, axis, -8, 7, factor)
    for factor in (1.0, 0.25):
        learned = one(0.11, f32), one(1.25, f32)
        call(aten._fake_quantize_learnable_per_tensor_affine.default, near(3, 4), *learned, -8, 7, factor)
        call(aten._fake_quantize_learnable_per_tensor_affine_backward.default, rand(3, 4), near(3, 4), *learned, -8, 7, factor)


def observed():
    for overload in (aten.fused_moving_avg_obs_fake_quant.default, aten._fused_moving_avg_obs_fq_helper.default,
                     aten._fused_moving_avg_obs_fq_helper_functional.default):
        for observing, simulating in ((1, 1), (1, 0), (0, 1), (0, 0)):
            on = one(observing, i64), one(simulating, i64)
            for symmetric, low, high in ((False, 0, 255), (True, -128, 127), (False, -8, 7)):
                for minimum, maximum in ((-0.5, 0.75), (torch.inf, -torch.inf)):
                    call(overload, near(3, 4), *on, torch.tensor(minimum), torch.tensor(maximum), one(0.11, f32), one(2, i32), 0.01, low, high, 0,
                         False, symmetric)
                call(overload, near(3, 4), *on, torch.full((3,), -0.5), torch.full((3,), 0.75), torch.full((3,), 0.11),
                     torch.zeros(3, dtype=i32), 0.25, low, high, 0, True, symmetric)
        for x in (positive(3, 4), -positive(3), torch.zeros(2, 2), near(2, 2) / 65536):
            call(overload, x, one(1, i64), one(1, i64), torch.tensor(torch.inf), torch.tensor(-torch.inf), one(0.11, f32), one(0, i32), 0.01, 0, 255, 0,
                 False, False)


def packed():
    for rows, columns in ((8, 16), (5, 32)):
        for dtype in (f32, bf16, f16):
            call(aten._weight_int8pack_mm.default, rand(3, columns, dtype=dtype), integers(rows, columns), positive(rows, dtype=dtype) / 16)
    call(aten._int_mm.default, integers(18, 16), integers(16, 8))
    call(aten._int_mm.default, integers(17, 8), integers(24, 8).t())
    for rows, columns in ((16, 16), (64, 16), (80, 16), (112, 16), (16, 64), (48, 64), (64, 32), (112, 32)):
        weight = torch.randint(0, 16, (rows, columns), dtype=i32)
        if columns == 16:  # what other operators take begins with a group of 32
            call(aten._convert_weight_to_int4pack_for_cpu.default, weight, 2)
            continue
        bytes_ = torch.ops.aten._convert_weight_to_int4pack_for_cpu(weight, 2)
        for dtype in (f32, bf16, f16):
            parameters = positive(columns // 32, rows, 2, dtype=dtype)
            call(aten._weight_int4pack_mm_for_cpu.default, rand(3, columns, dtype=dtype), bytes_, 32, parameters)
    for x in (rand(2, 3), rand(3, dtype=bf16), rand(3, dtype=f64)):
        call(aten.dequantize.self, x)


def hashes():
    for dtype in (f32, f64, f16, bf16, i64, i32, i8, u8, torch.bool):
        call(aten.hash_tensor.default, rand(2, 3, dtype=dtype))
        call(aten.hash_tensor.default, rand(2, 3, 4, dtype=dtype), [1])
    call(aten.hash_tensor.default, strided(3, 2), [0, 1], keepdim=True)
    call(aten.hash_tensor.default, rand(2, 3, 4), [0, -1], keepdim=True)
    call(aten.hash_tensor.default, torch.tensor(1.5))
    call(aten.hash_tensor.default, rand(0, 3), [1])


def torchao():
    if "torchao" not in load_packages():
        return
    ops = torch.ops.torchao
    for x, block in ((near(4, 8), [4, 8]), (near(4, 8), [1, 8]), (near(4, 8), [1, 4]), (near(2, 4, 6), [2, 1, 3]), (near(4, 8, dtype=bf16), [1, 8])):
        shape = [s // b for s, b in zip(x.shape, block)]
        scale, zero = positive(*shape) / 16, torch.randint(-5, 6, shape)
        for zeros in (i32, i8):
            call(ops.quantize_affine.default, x, block, scale, zero.to(zeros), i8, -128, 127)
            call(ops.dequantize_affine.default, integers(*x.shape), block, scale, zero.to(zeros), i8, -128, 127)
        call(ops.quantize_affine.default, x, block, scale, zero, u8)
        call(ops.dequantize_affine.default, integers(*x.shape), block, scale, None, i8, output_dtype=bf16)
        for mapping in ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC"):
            call(ops.choose_qparams_affine.default, x, mapping, block, i8, -128, 127, 1e-5, f32, i8 if mapping != "ASYMMETRIC" else None)
            call(ops.choose_qparams_affine.default, x, mapping, block, i8, keepdim=True, zero_point_dtype=i32)


def executorch():
    if "executorch" not in load_packages():
        return
    rows = torch.tensor([[0, 2], [4, 1]])
    for scales, zeros in ((positive(5) / 16, None), (positive(5, 2) / 16, rand(5, 2)), (positive(5, dtype=bf16) / 16, None)):
        for packet, weight, low, high in ((decomposed.embedding_byte, integers(5, 8), -128, 127), (decomposed.embedding_4bit, integers(5, 4, dtype=u8), -8, 7),
                                          (decomposed.embedding_2bit, integers(5, 2, dtype=u8), -2, 1)):
            call(packet.default, weight, scales, zeros, low, high, rows)
            call(packet.dtype, weight, scales, zeros, low, high, rows, dtype=f32)
