"""Hand-written calls of torchvision's operators, and of windows and ranges that few programs make."""

import torch
import torchvision  # noqa: F401  defines torch.ops.torchvision

from samples import aten, bf16, call, f32, f64, i64, positive, rand, strided

vision = torch.ops.torchvision


def boxes(n, size=8.0, dtype=f32):
    corners = torch.rand(n, 2, dtype=f64) * size
    return torch.cat([corners, corners + 0.5 + torch.rand(n, 2, dtype=f64) * size], 1).to(dtype)


def regions(n, images, dtype=f32, size=6.0):
    return torch.cat([torch.randint(0, images, (n, 1)).to(dtype), boxes(n, size, dtype)], 1)


def detection():
    for dtype in (f32, f64):
        for threshold in (0.1, 0.3, 0.7):
            call(vision.nms.default, boxes(9, dtype=dtype), torch.rand(9, dtype=dtype), threshold)
    call(vision.nms.default, boxes(6), torch.tensor([0.5, 0.5, 0.25, 0.5, 1.0, 0.25]), 0.2)
    call(vision.nms.default, boxes(4)[::2], torch.rand(4)[1::2], 0.5)
    call(vision.nms.default, torch.zeros(0, 4), torch.zeros(0), 0.5)
    call(vision.nms.default, torch.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2], [1, 0, 3, 2], [5, 5, 5, 5]]), torch.tensor([0.1, 0.2, 0.3, 0.4]), 1 / 3)
    for dtype in (f32, f64):
        for samples, aligned in ((2, True), (2, False), (-1, True), (0, False), (1, True)):
            call(vision.roi_align.default, rand(2, 3, 5, 6, dtype=dtype), regions(4, 2, dtype), 0.5, 2, 3, samples, aligned)
            call(vision._roi_align_backward.default, rand(3, 2, 2, 2, dtype=dtype), regions(3, 2, dtype), 0.75, 2, 2, 2, 2, 4, 5, samples, aligned)
    call(vision.roi_align.default, strided(2, 1, 5, 4), regions(2, 2), 1.0, 1, 1, -1, False)
    call(vision.roi_align.default, rand(1, 2, 4, 4), torch.tensor([[0.0, -3, -3, 9, 9], [0, 3, 3, 3, 3], [0, 3, 3, 1, 1]]), 1.0, 2, 2, 2, False)
    call(vision.roi_align.default, rand(1, 2, 4, 4), torch.zeros(0, 5), 1.0, 2, 2, 2, True)
    for dtype in (f32, f64):
        for groups, moved, masked in ((1, 1, True), (2, 1, False), (1, 2, True), (2, 2, True)):
            x, weight = rand(2, 4, 5, 6, dtype=dtype), rand(4, 4 // groups, 3, 2, dtype=dtype)
            offset = (torch.rand(2, moved * 12, 3, 4, dtype=f64) * 4 - 2).to(dtype)
            mask = torch.rand(2, moved * 6, 3, 4, dtype=dtype) if masked else torch.zeros(2, 0, dtype=dtype)
            call(vision.deform_conv2d.default, x, weight, offset, mask, rand(4, dtype=dtype), 2, 2, 1, 1, 1, 1, groups, moved, masked)


def windows_and_ranges():
    for n in (0, 1, 2, 5, 8):
        call(aten.bartlett_window.default, n)
        call(aten.bartlett_window.periodic, n, False)
        call(aten.kaiser_window.default, n)
        call(aten.kaiser_window.periodic, n, False)
        call(aten.kaiser_window.beta, n, n % 2 == 0, 3.5)
    for dtype in (f64, bf16):
        call(aten.bartlett_window.periodic, 7, True, dtype=dtype)
        call(aten.kaiser_window.beta, 7, True, 0.0, dtype=dtype)
    call(aten.range.default, 0, 5)
    call(aten.range.default, -2.5, 3, dtype=f64)
    call(aten.range.step, 1, 2, 0.25)
    call(aten.range.step, 5, -4, -3, dtype=i64)
    call(aten.range.step, 1.0, 1.0, 1)


def products_and_norms():
    for a, b in ((rand(3), rand(3)), (rand(2, 3), rand(3, 4)), (rand(2, 1, 3, 2, dtype=f64), rand(4, 2, 3, dtype=f64))):
        call(aten.linalg_matmul.default, a, b)
    call(aten.frobenius_norm.dim, rand(2, 3, 4), [1, 2])
    call(aten.frobenius_norm.dim, rand(3, 4), [0], True)
    call(aten.frobenius_norm.dim, rand(3, 4, dtype=f64), [])
    for dtype in (f32, f64):
        call(aten.special_gammainc.default, positive(4, dtype=dtype), positive(3, 1, dtype=dtype))
        call(aten.special_gammaincc.default, positive(4, dtype=dtype), positive(3, 1, dtype=dtype))
        call(aten.special_multigammaln.default, positive(2, 3, dtype=dtype) + 2, 3)
    for number in (2, 0.5, 0):
        call(aten.special_xlog1py.self_scalar, number, positive(3))
        call(aten.special_xlog1py.other_scalar, rand(3, dtype=f64), number)
    call(aten.special_xlog1py.self_scalar, 1.5, torch.tensor([1, 0, 3]))
    call(aten.special_zeta.self_scalar, 3.0, positive(3))
    call(aten.special_zeta.other_scalar, positive(3) + 1, 2)
    how = ([2], [1], [1], False, [0], 1)
    call(aten._convolution.default, rand(2, 3, 7), rand(4, 3, 3), rand(4), *how, False, False, True, True)
    call(aten._convolution.default, rand(1, 2, 5, 5), rand(2, 2, 3, 2), None, [1, 2], [0, 1], [2, 1], True, [0, 1], 1, False, False, False, False)
    call(aten._convolution.deprecated, rand(2, 4, 7, dtype=f64), rand(4, 2, 3, dtype=f64), None, [1], [0], [2], False, [0], 2, False, False, True)
    call(aten._convolution_mode.default, rand(2, 3, 7), rand(4, 3, 3), rand(4), [1], "same", [2], 1)
    call(aten._convolution_mode.default, rand(2, 3, 5, 6), rand(2, 3, 2, 4), None, [1, 1], "same", [1, 1], 1)
    call(aten._convolution_mode.default, rand(1, 2, 4, 4, 4), rand(2, 2, 2, 2, 2), None, [2, 1, 1], "valid", [1, 1, 1], 1)
    call(aten.conv_tbc.default, rand(5, 2, 3), rand(3, 3, 4), rand(4), 1)
    call(aten.conv_tbc.default, rand(5, 2, 3, dtype=f64), rand(2, 3, 4, dtype=f64), rand(4, dtype=f64))
