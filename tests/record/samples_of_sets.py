"""Hand-written calls: sets and counts, histograms, bags of embeddings, distances, smoothed images, segments."""

import math

import torch

from samples import aten, bf16, call, f16, f64, i32, i64, rand, strided


def counts():
    numbers = torch.tensor([[3, 1, 3], [2, 3, 1]])
    rows = torch.tensor([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0], [1.0, 2.0]])
    for overload in (aten._unique.default, aten._unique2.default):
        call(overload, numbers, True, True)
        call(overload, torch.tensor([2.0, math.nan, -0.0, math.nan, 0.0]), False, True)
        call(overload, torch.zeros(0, 3), True, True)
    for dim in (0, 1, -1):
        call(aten.unique_dim_consecutive.default, rows, dim, True, True)
        call(aten.unique_consecutive.default, rows.t(), True, True, dim)
        call(aten.unique_dim.default, rows.t(), dim)
    call(aten.bincount.default, torch.tensor([1, 4, 1], dtype=i32), None, 7)
    call(aten.bincount.default, torch.tensor([1, 4, 1]), torch.tensor([0.5, 2.0, 1.0]))
    call(aten.bincount.default, torch.zeros(0, dtype=i64), torch.zeros(0), 3)
    call(aten.allclose.default, rows, rows + 1e-9)
    call(aten.allclose.default, rows, rows + 1.0)


def histograms():
    x = torch.tensor([0.3, 1.0, 2.0, 2.5, 4.0, -1.0, 2.0])
    edges = torch.tensor([0.0, 1.0, 2.0, 4.0])
    call(aten.histogram.bins_tensor, x, edges)
    call(aten.histogram.bins_tensor, x, edges, weight=rand(7).abs(), density=True)
    call(aten.histogram.bin_ct, x, 4, range=[0.0, 2.0], density=True)
    call(aten.histogram.bin_ct, torch.ones(3, dtype=f64), 3)
    points = rand(6, 2)
    call(aten.histogramdd.int_bins, points, 3)
    call(aten.histogramdd.default, points, [2, 3], [-1.0, 1.0, 0.0, 2.0], rand(6).abs(), True)
    call(aten.histogramdd.TensorList_bins, points, [edges - 1, edges / 2])
    call(aten._histogramdd_from_bin_tensors.default, points, [edges - 1, edges / 2], density=True)


def bags():
    indices, offsets = torch.tensor([0, 2, 4, 1, 1, 3]), torch.tensor([0, 2, 2])
    with_last = torch.tensor([0, 2, 2, 5])
    for mode in (0, 1, 2):
        for dtype in (torch.float32, f64, bf16):
            table = rand(5, 3, dtype=dtype)
            call(aten._embedding_bag.default, table, indices, offsets, False, mode)
            call(aten._embedding_bag_forward_only.default, table, indices, offsets, False, mode, False, None, False, 1)
        call(aten._embedding_bag.default, strided(5, 3), indices.int(), offsets.int(), True, mode, False, None, False, 1)
        call(aten._embedding_bag.default, rand(5, 3), indices[:5], with_last, False, mode, False, None, True)
        call(aten.embedding_bag.default, rand(5, 3), indices, offsets, mode == 1, mode)
        call(aten.embedding_bag.padding_idx, rand(5, 3), indices, offsets, False, mode, False, None, False, -4)
        bag = aten._embedding_bag.default(rand(5, 3, dtype=f64), indices, offsets, False, mode)
        for by_frequency in (False, True):
            call(aten._embedding_bag_dense_backward.default, rand(3, 3, dtype=f64), indices, *bag[1:], 5, by_frequency, mode,
                 None, 1)
    call(aten._embedding_bag.default, rand(5, 3), indices, offsets, False, 0, False, rand(6))
    call(aten._embedding_bag.default, rand(5, 3), indices[:0], offsets[:1], False, 2)
    call(aten.embedding_renorm.default, rand(5, 3), indices, 0.5, math.inf)
    call(aten.embedding_renorm.default, rand(5, 3), indices, 0.5, 3.0)


def distances():
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf):
        call(aten._cdist_forward.default, rand(2, 1, 3, 2), rand(2, 4, 2), p, None)
        call(aten._pdist_forward.default, rand(4, 3), p)
        x, y = rand(3, 2), rand(2, 4, 2)
        call(aten._cdist_backward.default, rand(2, 3, 4), x, y, p, aten._cdist_forward.default(x, y, p, None))
        call(aten._pdist_backward.default, rand(3), x, p, aten._pdist_forward.default(x, p))
    call(aten._cdist_forward.default, rand(3, 0), rand(4, 0), math.inf, 2)
    call(aten.cdist.default, rand(3, 2, dtype=f64), rand(4, 2, dtype=f64), 2.0, 1)


def smoothed():
    for forward, backward in ((aten._upsample_bilinear2d_aa, aten._upsample_bilinear2d_aa_backward),
                              (aten._upsample_bicubic2d_aa, aten._upsample_bicubic2d_aa_backward)):
        for size, align in (([2, 3], False), ([7, 5], False), ([2, 9], True), ([1, 1], True), ([3, 2], True)):
            call(forward.default, rand(2, 2, 6, 7), size, align)
            call(backward.default, rand(2, 2, *size), size, [2, 2, 6, 7], align)
        call(forward.default, rand(1, 2, 6, 7, dtype=f64), [3, 3], False, 0.55, 0.45)
        call(forward.default, rand(1, 3, 6, 7).to(memory_format=torch.channels_last), [3, 3], False)
        call(forward.vec, rand(1, 2, 5, 7), None, False, [0.5, 1.5])
        call(forward.vec, rand(1, 2, 5, 7), [2, 2], False, None)


def slopes_and_segments():
    for order in (1, 2):
        places = torch.tensor([0.0, 1.0, 1.5, 3.0])
        call(aten.gradient.scalararray, rand(4, 3), spacing=2.0, dim=[1, 0], edge_order=order)
        call(aten.gradient.array, rand(4, 3), dim=[-1], edge_order=order)
        call(aten.gradient.tensorarrayint, rand(4, 4), spacing=[places, places * 2], edge_order=order)
        call(aten.gradient.scalarint, torch.tensor([1, 4, 9, 16]), edge_order=order)
    for how in ("sum", "mean", "max", "min", "prod"):
        data = torch.tensor([[2.0, 0.0], [3.0, 2.0], [0.0, 0.0], [1.0, -1.0], [4.0, 5.0]])
        lengths = torch.tensor([2, 3])
        call(aten.segment_reduce.default, data, how, lengths=lengths)
        call(aten.segment_reduce.default, data.double(), how, offsets=torch.tensor([0, 1, 1, 5]), initial=2)
        out = aten.segment_reduce.default(data, how, lengths=lengths)
        call(aten._segment_reduce_backward.default, rand(2, 2).abs(), out, data, how, lengths=lengths)
    for grid_range in (1.2, 3.0):
        for padding in (0, 1, 2):
            for mode in (0, 1, 2):
                call(aten.grid_sampler_2d_backward.default, rand(1, 2, 3, 2), rand(1, 2, 4, 5), rand(1, 3, 2, 2) * grid_range, mode,
                     padding, mode == 1, [True, True])
            call(aten.grid_sampler_3d_backward.default, rand(1, 2, 2, 1, 2), rand(1, 2, 3, 4, 2), rand(1, 2, 1, 2, 3) * grid_range, 0,
                 padding, grid_range > 2, [padding > 0, True])
