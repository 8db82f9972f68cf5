"""Hand-written calls: convolutions, normalization, attention, pooling, activations, losses and products."""

import math

import torch

from samples import aten, b8, bf16, call, f16, f64, i32, i64, positive, rand, strided


def convolutions():
    conv = aten.conv2d.default
    call(conv, rand(2, 4, 5, 6), rand(6, 2, 3, 2), rand(6), [2, 1], [1, 0], [1, 2], 2)
    call(conv, rand(1, 3, 7, 7), rand(3, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], 3)
    call(conv, rand(4, 5, 6), rand(2, 4, 1, 1), rand(2))
    call(conv, strided(2, 2, 5, 4), strided(3, 2, 2, 3), strided(1, 3)[0], [1, 2], [2, 1])
    call(conv, rand(2, 3, 5, 5).to(memory_format=torch.channels_last), rand(4, 3, 3, 3), None, [1, 1], [1, 1])
    call(conv, rand(0, 3, 5, 5), rand(2, 3, 3, 3), rand(2))
    call(conv, rand(1, 2, 4, 4, dtype=bf16), rand(2, 2, 3, 3, dtype=bf16), rand(2, dtype=bf16), [1, 1], [1, 1])
    call(conv, rand(1, 2, 4, 4, dtype=f64), rand(2, 2, 3, 3, dtype=f64), None, [3, 3], [2, 2], [2, 2])
    for padding, stride, dilation in (("same", [1, 1], [1, 1]), ("same", [1, 1], [2, 3]), ("valid", [2, 1], [1, 2])):
        call(aten.conv2d.padding, rand(2, 2, 6, 7), rand(4, 1, 3, 2), rand(4), stride, padding, dilation, 2)
    call(aten.conv1d.default, rand(2, 4, 9), rand(6, 2, 3), rand(6), [2], [3], [2], 2)
    call(aten.conv1d.default, rand(3, 8), rand(2, 3, 4), None)
    call(aten.conv1d.padding, rand(2, 3, 8), rand(3, 1, 4), None, [1], "same", [1], 3)
    call(aten.conv3d.default, rand(1, 2, 4, 4, 3), rand(2, 1, 2, 3, 2), rand(2), [1, 2, 1], [1, 1, 0], [1, 1, 2], 2)
    call(aten.conv_transpose2d.input, rand(1, 4, 3, 3), rand(4, 2, 3, 2), rand(4), [2, 1], [1, 0], [1, 0], 2, [1, 2])
    call(aten.conv_transpose1d.default, rand(2, 3, 4), rand(3, 2, 3), None, [2], [1], [1])
    call(aten.convolution.default, rand(1, 2, 4, 4), rand(3, 2, 2, 2), rand(3), [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    call(aten.convolution.default, rand(1, 2, 3, 3), rand(2, 2, 2, 2), None, [2, 2], [0, 0], [1, 1], True, [1, 1], 1)
    for mask in ([True, True, True], [True, False, False], [False, True, True]):
        call(aten.convolution_backward.default, rand(1, 4, 3, 3), rand(1, 2, 5, 5), rand(4, 1, 3, 3), [4], [2, 2], [1, 1], [1, 1],
             False, [0, 0], 2, mask)


def norms():
    for sizes in ((4, 3), (3, 2, 4), (2, 3, 3, 2)):
        channels = sizes[1]
        for training in (True, False):
            call(aten.batch_norm.default, rand(*sizes), positive(channels), rand(channels), rand(channels), positive(channels),
                 training, 0.1, 1e-5, True)
    x = rand(3, 2, 2, 3).to(memory_format=torch.channels_last)
    call(aten.batch_norm.default, x, positive(2), rand(2), rand(2), positive(2), True, 0.3, 1e-3, True)
    call(aten.batch_norm.default, rand(3, 2, 4), None, None, None, None, True, 0.1, 1e-5, True)
    call(aten.batch_norm.default, rand(3, 2, 4), None, None, rand(2), positive(2), True, 1.0, 1e-5, False)
    call(aten.batch_norm.default, rand(3, 2, 4), positive(2), None, rand(2), positive(2), False, 0.0, 1e-5, False)
    call(aten.batch_norm.default, rand(3, 2, 4, dtype=f64), positive(2, dtype=f64), rand(2, dtype=f64), None, None, True, 0.1,
         1e-5, False)
    call(aten.batch_norm.default, rand(3, 2, 2, 2, dtype=bf16), positive(2), rand(2), rand(2), positive(2), True, 0.1, 1e-5, True)
    call(aten._native_batch_norm_legit.default, rand(3, 2, 4), positive(2), rand(2), rand(2), positive(2), True, 0.2, 1e-5)
    call(aten._native_batch_norm_legit.no_stats, rand(3, 2, 4), positive(2), rand(2), True, 0.2, 1e-5)
    call(aten._native_batch_norm_legit_no_training.default, rand(3, 2, 4), positive(2), rand(2), rand(2), positive(2), 0.1, 1e-5)
    call(aten.native_batch_norm_backward.default, rand(3, 2, 4), rand(3, 2, 4), positive(2), rand(2), positive(2), rand(2),
         positive(2), True, 1e-5, [True, True, True])
    call(aten.native_batch_norm_backward.default, rand(3, 2, 4), rand(3, 2, 4), positive(2), rand(2), positive(2), rand(2),
         positive(2), False, 1e-5, [True, True, True])
    for sizes, shape in (((3, 4), [4]), ((2, 3, 4), [3, 4]), ((5,), [5]), ((2, 1, 4, 2), [4, 2])):
        call(aten.layer_norm.default, rand(*sizes), shape, rand(*shape), rand(*shape), 1e-5, True)
        call(aten.layer_norm.default, rand(*sizes), shape)
    call(aten.layer_norm.default, strided(2, 3, 5), [5], rand(5), None, 1e-2)
    call(aten.layer_norm.default, rand(0, 4), [4], rand(4), rand(4))
    call(aten.layer_norm.default, rand(3, 8, dtype=f16), [8], rand(8, dtype=f16), rand(8, dtype=f16))
    call(aten.layer_norm.default, rand(3, 8, dtype=bf16), [8], rand(8, dtype=bf16), rand(8, dtype=bf16))
    call(aten.native_layer_norm.default, rand(2, 3, 4), [4], rand(4), rand(4), 1e-5)
    call(aten.native_layer_norm_backward.default, rand(2, 3, 4), rand(2, 3, 4), [4], rand(2, 3, 1), positive(2, 3, 1), rand(4),
         rand(4), [True, True, True])
    call(aten.group_norm.default, rand(2, 6, 3), 3, rand(6), rand(6), 1e-5)
    call(aten.group_norm.default, rand(2, 4, 2, 3), 2)
    call(aten.group_norm.default, rand(3, 4), 4, rand(4), None, 1e-2, False)
    call(aten.group_norm.default, rand(1, 4, 3, 2).to(memory_format=torch.channels_last), 1, rand(4), rand(4))
    call(aten.native_group_norm.default, rand(2, 4, 3), rand(4), rand(4), 2, 4, 3, 2, 1e-5)
    call(aten.rms_norm.default, rand(2, 3, 4), [4], rand(4), 1e-6)
    call(aten.rms_norm.default, rand(2, 6), [6])
    call(aten.instance_norm.default, rand(2, 3, 5), rand(3), rand(3), rand(3), positive(3), True, 0.1, 1e-5, True)
    call(aten._weight_norm.default, rand(4, 3, 2), positive(4, 1, 1), 0)
    call(aten._weight_norm.default, rand(4, 3), positive(1, 3), 1)
    call(aten._weight_norm.default, rand(4, 3), positive(), -1)


def attention():
    sdpa = aten.scaled_dot_product_attention.default
    q, k, v = rand(2, 3, 4, 4), rand(2, 3, 5, 4), rand(2, 3, 5, 6)
    mask = torch.ones(4, 5, dtype=b8).tril(1)
    call(sdpa, q, k, v)
    call(sdpa, q, k, v, mask)
    call(sdpa, q, k, v, rand(2, 1, 4, 5))
    call(sdpa, q, k, v, rand(1, 5), 0.0, False, scale=0.25)
    call(sdpa, q, k, v, None, 0.0, True)
    call(sdpa, q, k, v, None, 0.0, True, scale=1.0)
    call(sdpa, rand(3, 4), rand(5, 4), rand(5, 2))
    call(sdpa, rand(2, 3, 4), rand(2, 5, 4), rand(2, 5, 4), None, 0.0, True)
    call(sdpa, rand(1, 4, 3, 4), rand(1, 2, 3, 4), rand(1, 2, 3, 4), None, 0.0, True, enable_gqa=True)
    call(sdpa, rand(1, 4, 3, 4), rand(1, 1, 5, 4), rand(1, 1, 5, 4), rand(3, 5) > 0, enable_gqa=True)
    rows = torch.ones(4, 5, dtype=b8)
    rows[1] = False  # a row with nothing to attend to
    call(sdpa, q, k, v, rows)
    call(sdpa, *(strided(1, 2, 3, 4).transpose(1, 2) for _ in range(3)))
    call(sdpa, *(rand(1, 2, 3, 8, dtype=bf16) for _ in range(3)), None, 0.0, True)
    call(sdpa, *(rand(1, 2, 3, 8, dtype=f64) for _ in range(3)))
    call(sdpa, q, k, v, None, 0.5)
    call(aten._safe_softmax.default, torch.tensor([[1.0, -math.inf], [-math.inf, -math.inf]]), -1)
    for padding, scale in ((-1, False), (2, False), (2, True), (-3, False)):
        call(aten.embedding.default, rand(5, 3), torch.tensor([[0, 2, 4], [2, 2, 1]]), padding, scale)
    call(aten.embedding.default, rand(5, 3), torch.tensor(3))
    call(aten.embedding.default, rand(5, 3), torch.zeros(0, 2, dtype=i64))
    call(aten.embedding.default, strided(4, 3), torch.tensor([1, 3], dtype=i32))
    call(aten.embedding_dense_backward.default, rand(4, 3), torch.tensor([0, 2, 2, 1]), 5, 2, False)
    call(aten.embedding_dense_backward.default, rand(4, 3), torch.tensor([0, 2, 2, 1]), 5, -1, True)


def pools_and_resizing():
    for overload in (aten.max_pool2d.default, aten.max_pool2d_with_indices.default):
        call(overload, rand(1, 2, 5, 6), [2, 2])
        call(overload, rand(1, 2, 5, 7), [3, 2], [2, 3], [1, 1], [1, 1], True)
        call(overload, rand(2, 7, 7), [2, 3], [1, 2], [0, 1], [2, 2])
        call(overload, rand(1, 1, 5, 5), [3], [2], [1], [1], False)
    call(aten.max_pool2d.default, rand(1, 2, 4, 4).to(memory_format=torch.channels_last), [2, 2], [2, 2])
    call(aten.max_pool2d.default, rand(1, 1, 4, 4, dtype=bf16), [2, 2])
    call(aten.max_pool2d.default, torch.full((1, 1, 4, 4), -math.inf), [2, 2])
    for options in (([2, 2],), ([3, 2], [2, 1], [1, 1], True, True), ([3, 3], [2, 2], [1, 1], True, False),
                    ([2, 3], [2, 2], [1, 0], False, False), ([2, 2], [2, 2], [0, 0], False, True, 3)):
        call(aten.avg_pool2d.default, rand(1, 2, 5, 6), *options)
    call(aten.avg_pool2d.default, rand(2, 4, 5), [2])
    call(aten.avg_pool2d_backward.default, rand(1, 2, 2, 3), rand(1, 2, 5, 6), [2, 2], [2, 2], [0, 0], False, True, None)
    call(aten.avg_pool1d.default, rand(2, 3, 7), [3], [2], [1], True, False)
    for size in ([1, 1], [2, 3], [7, 5], [None, 2]):
        if None not in size:
            call(aten.adaptive_avg_pool2d.default, rand(2, 3, 5, 4), size)
    call(aten.adaptive_avg_pool2d.default, rand(3, 4, 4), [3, 3])
    call(aten.adaptive_avg_pool2d.default, strided(1, 2, 5, 3), [2, 2])
    call(aten.adaptive_avg_pool2d.default, rand(1, 4, 3, 3).to(memory_format=torch.channels_last), [1, 1])
    call(aten._adaptive_avg_pool2d.default, rand(1, 2, 5, 4), [2, 3])
    call(aten._adaptive_avg_pool2d_backward.default, rand(1, 2, 2, 3), rand(1, 2, 5, 4))
    for overload in (aten.upsample_bilinear2d.vec, aten.upsample_bicubic2d.vec):
        call(overload, rand(1, 2, 3, 4), [5, 3], False, None)
        call(overload, rand(1, 2, 3, 4), [6, 7], True, None)
        call(overload, rand(1, 2, 3, 4), None, False, [2.0, 1.5])
        call(overload, rand(1, 2, 3, 4), [1, 1], True, None)
    call(aten.upsample_nearest2d.vec, rand(1, 2, 3, 4), [7, 2], None)
    call(aten.upsample_nearest2d.vec, rand(1, 2, 3, 4), None, [1.7, 2.0])
    call(aten.pad.default, rand(2, 3), [1, 2])
    call(aten.pad.default, rand(2, 3), [1, -1, 0, 2], "constant", 1.5)
    call(aten.pad.default, rand(2, 3, 4), [2, 1], "reflect")
    call(aten.pad.default, rand(2, 3, 4), [2, 1], "replicate")
    call(aten.pad.default, rand(2, 3, 4), [2, 1], "circular")
    call(aten.pad.default, rand(1, 2, 3, 4), [1, 2, 2, 1], "reflect")
    call(aten.pad.default, rand(1, 2, 3, 4), [1, 0, 3, 1], "replicate")
    call(aten.pad.default, rand(3, dtype=i64), [1, 1], "constant", 7.0)
    call(aten.constant_pad_nd.default, rand(2, 3), [0, 1, 2, -1], 0.5)
    call(aten.constant_pad_nd.default, rand(2, 3, dtype=b8), [1, 1])


def activations():
    wide = torch.tensor([-30.0, -4.0, -3.0, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, 4.0, 6.0, 30.0])
    for overload in (aten.relu.default, aten.silu.default, aten.hardsigmoid.default, aten.hardswish.default, aten.gelu.default,
                     aten.softplus.default, aten.elu.default, aten.leaky_relu.default, aten.hardtanh.default, aten.relu6.default,
                     aten.selu.default, aten.mish.default, aten.log_sigmoid.default):
        call(overload, wide)
        call(overload, strided(3, 4))
        call(overload, rand(4, dtype=bf16))
        call(overload, rand(4, dtype=f16))
        call(overload, rand(0, 2))
        call(overload, torch.tensor(0.5, dtype=f64))
    call(aten.gelu.default, wide, approximate="tanh")
    call(aten.gelu.default, rand(5, dtype=f64), approximate="tanh")
    call(aten.gelu.default, rand(5, dtype=bf16), approximate="tanh")
    call(aten.softplus.default, wide, 2.0, 5.0)
    call(aten.softplus.default, wide, 0.5)
    call(aten.elu.default, wide, 0.7, 1.2, 0.9)
    call(aten.hardtanh.default, wide, 0.0, 6.0)
    call(aten.relu.default, rand(4, dtype=i64))
    call(aten.threshold_backward.default, rand(4), rand(4), 0)
    call(aten.gelu_backward.default, rand(4), rand(4))
    call(aten.gelu_backward.default, rand(4), rand(4), approximate="tanh")
    call(aten.silu_backward.default, rand(4), rand(4))
    call(aten.sigmoid_backward.default, rand(4), rand(4))
    call(aten.tanh_backward.default, rand(4), rand(4))
    call(aten.prelu.default, rand(2, 3, 2), rand(3))
    call(aten.glu.default, rand(2, 6), -1)


def losses_and_products():
    call(aten.linear.default, rand(3, 4), rand(2, 4), rand(2))
    call(aten.linear.default, rand(4), rand(2, 4), rand(2))
    call(aten.linear.default, rand(2, 3, 4), rand(2, 4))
    call(aten.linear.default, rand(0, 4), rand(2, 4), rand(2))
    call(aten.linear.default, strided(3, 4), strided(2, 4), rand(2))
    call(aten.linear.default, rand(3, 4, dtype=bf16), rand(2, 4, dtype=bf16), rand(2, dtype=bf16))
    call(aten.linear.default, rand(3, 4, dtype=f16), rand(2, 4, dtype=f16))
    call(aten.linear.default, rand(3, 0), rand(2, 0), rand(2))
    call(aten.linear.default, rand(3, 4), rand(4))
    for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 2, 3), (3, 4)), ((2, 1, 2, 3), (4, 3, 2)),
                 ((2, 2, 3), (2, 3, 1)), ((3,), (2, 3, 2)), ((2, 4, 3), (3,)), ((0, 3), (3, 2)), ((2, 0), (0, 3))):
        call(aten.matmul.default, rand(*a), rand(*b))
    call(aten.matmul.default, strided(2, 3), strided(3, 4))
    call(aten.matmul.default, rand(2, 3, dtype=i64), rand(3, 2, dtype=i64))
    call(aten.matmul.default, rand(2, 3, dtype=f16), rand(3, 2, dtype=f16))
    call(aten.mm.default, rand(2, 3), rand(3, 4))
    call(aten.mm.default, rand(2, 0), rand(0, 4))
    call(aten.bmm.default, rand(2, 2, 3), rand(2, 3, 4))
    call(aten.bmm.default, strided(2, 2, 3), strided(2, 3, 2))
    call(aten.bmm.default, rand(0, 2, 3), rand(0, 3, 2))
    call(aten.bmm.default, rand(2, 2, 3, dtype=bf16), rand(2, 3, 2, dtype=bf16))
    call(aten.addmm.default, rand(4), rand(2, 3), rand(3, 4))
    call(aten.addmm.default, rand(2, 1), rand(2, 3), rand(3, 4), beta=0.5, alpha=2)
    call(aten.addmm.default, torch.full((2, 4), math.nan), rand(2, 3), rand(3, 4), beta=0)
    call(aten.addmm.default, rand(2, 4, dtype=i64), rand(2, 3, dtype=i64), rand(3, 4, dtype=i64), beta=2, alpha=3)
    call(aten.addmm.default, rand(4), strided(2, 3), strided(3, 4))
    call(aten.baddbmm.default, rand(4), rand(2, 2, 3), rand(2, 3, 4), beta=0.5, alpha=-1)
    call(aten.einsum.default, "bij,bjk->bik", [rand(2, 2, 3), rand(2, 3, 2)])
    target = torch.tensor([1, 0, 3, -100])
    for options in ((), (rand(4).abs(),), (None, 0), (None, 2), (rand(4).abs(), 1, -100, 0.2), (None, 1, -100, 0.1)):
        call(aten.cross_entropy_loss.default, rand(4, 4), target, *options)
    call(aten.cross_entropy_loss.default, rand(2, 3, 2), torch.tensor([[0, 2], [1, 1]]))
    call(aten.cross_entropy_loss.default, rand(3, 4), torch.softmax(rand(3, 4), 1))
    call(aten.cross_entropy_loss.default, rand(4), torch.tensor(2))
    call(aten.cross_entropy_loss.default, rand(3, 4), torch.tensor([1, 0, 1]), None, 1, 1)
    call(aten.nll_loss_nd.default, torch.log_softmax(rand(4, 4), 1), target, None, 1, -100)
    for reduction in (0, 1, 2):
        call(aten.mse_loss.default, rand(2, 3), rand(2, 3), reduction)
        call(aten.l1_loss.default, rand(2, 3), rand(2, 3), reduction)
        call(aten.binary_cross_entropy_with_logits.default, rand(2, 3), positive(2, 3) / 2, None, None, reduction)


def experts():
    """Rows multiplied with the matrix of their group; PyTorch asks for rows of 16 bytes."""
    from transformers.integrations import moe  # noqa: F401  defines the operator of that namespace

    for ends in ([2, 2, 5], [0, 4, 7], [7, 7, 7]):
        offs = torch.tensor(ends, dtype=torch.int32)
        call(torch.ops.transformers.grouped_mm_fallback.default, rand(7, 4), rand(3, 4, 8), offs)
    offs = torch.tensor([2, 3, 7], dtype=torch.int32)
    call(aten._grouped_mm.default, rand(7, 4), rand(3, 4, 8), offs)
    call(aten._grouped_mm.default, rand(7, 4), rand(3, 8, 4).transpose(1, 2), offs)
    call(aten._grouped_mm.default, rand(7, 8, dtype=bf16), rand(3, 8, 8, dtype=bf16), offs)
    call(aten._grouped_mm.default, rand(3, 4, 4), rand(3, 4, 8))
    offs = torch.tensor([4, 4, 8], dtype=torch.int32)
    call(aten._grouped_mm.default, rand(3, 4, 4), rand(4, 8), offs)
    call(aten._grouped_mm.default, rand(4, 8), rand(8, 4), offs)
