"""Hand-written calls: other names of operators, forms with numbers in place of tensors, and layers that exports spell otherwise."""

import torch

from samples import aten, b8, bf16, call, f16, f32, f64, i32, i64, positive, rand, strided


def other_names():
    """Operators that are others by another name."""
    within = rand(3, 4).clamp(-0.9, 0.9)
    for name in ("absolute", "arcsinh", "arctan", "fix", "negative", "special_erf", "special_erfc", "special_exp2",
                 "special_expit", "special_expm1", "special_i0", "special_round", "special_sinc"):
        for x in (rand(3, 4) + 0.25, rand(2, 3, dtype=f64), rand(5, dtype=bf16), strided(3, 2)):
            call(getattr(aten, name).default, x)
    for name in ("arccos", "arcsin", "arctanh", "special_erfinv"):
        for x in (within, within.double(), within.half()):
            call(getattr(aten, name).default, x)
    for x in (positive(4), positive(3, dtype=f64)):
        for name in ("log1p", "digamma", "psi", "gammaln"):
            call(getattr(aten, "special_" + name).default, x)
        call(aten.arccosh.default, x + 1)
        call(aten.special_logit.default, x / 4, 1e-3)
    call(aten.special_logit.default, torch.tensor([-0.5, 0.25, 0.5, 1.5]))
    for name in ("greater", "greater_equal", "less", "less_equal", "not_equal"):
        for other in (rand(3, dtype=i64), rand(2, 1)):
            call(getattr(aten, name).Tensor, rand(3), other)
        for number in (0.5, 1):
            call(getattr(aten, name).Scalar, rand(4), number)
            call(getattr(aten, name).Scalar, rand(4, dtype=i64), number)
    for name in ("multiply", "divide", "true_divide"):
        call(getattr(aten, name).Tensor, rand(2, 3), positive(3))
        call(getattr(aten, name).Scalar, rand(2, 3), 2.5)
        call(getattr(aten, name).Scalar, rand(3, dtype=i64), 2)
    call(aten.subtract.Scalar, rand(3), 2.5, 2)
    call(aten.arctan2.default, rand(2, 3), rand(3))
    call(aten.adjoint.default, rand(2, 3, 4))
    call(aten.conj.default, rand(2, 3))
    call(aten.swapaxes.default, rand(2, 3, 4), 0, -1)
    call(aten.swapdims.default, rand(2, 3, 4), 1, 2)
    call(aten.moveaxis.int, rand(2, 3, 4), 0, 2)
    call(aten.moveaxis.intlist, rand(2, 3, 4), [0, 2], [1, 0])
    call(aten.clip.default, rand(4), -0.5, 0.5)
    call(aten.clip.default, rand(4, dtype=i64), None, 3)
    call(aten.clip.Tensor, rand(4), rand(1) - 2, rand(4) + 2)
    call(aten.concat.default, [rand(2, 3), rand(2, 1)], 1)
    call(aten.concatenate.default, [rand(2, 3), rand(1, 3, dtype=f64)])
    call(aten.row_stack.default, [rand(3), rand(3)])
    call(aten.ger.default, rand(3), rand(4))
    call(aten.special_softmax.default, rand(2, 4), 1)
    call(aten.special_log_softmax.default, rand(2, 4), 0, dtype=f64)
    call(aten.special_logsumexp.default, rand(2, 4), [1], True)
    call(aten.special_xlogy.default, rand(4), positive(4))
    for name in ("special_xlogy", ):
        call(getattr(aten, name).other_scalar, rand(4), 2.5)
        call(getattr(aten, name).self_scalar, 2.5, positive(4))
    call(aten.xlogy.Scalar_Self, 1.5, positive(4))
    call(aten.xlogy.Scalar_Other, rand(4), 1.5)


def numbers_in_place_of_tensors():
    whole, bits = rand(4, dtype=i64), torch.tensor([0, 1, 2, 3])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        for x in (whole, rand(4, dtype=i32), rand(4, dtype=b8)):
            number = True if x.dtype == b8 else 5
            call(getattr(aten, name).Scalar, x, number)
            call(getattr(aten, name).Scalar_Tensor, number, x)
    for name in ("__or__", "__xor__"):
        call(getattr(aten, name).Scalar, whole, 5)
    call(aten.__xor__.Tensor, whole, bits)
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        call(getattr(aten, name).Tensor_Scalar, whole, 2)
        call(getattr(aten, name).Scalar_Tensor, 37, bits)
    for name in ("__lshift__", "__rshift__"):
        call(getattr(aten, name).Scalar, whole, 2)
        call(getattr(aten, name).Tensor, whole, bits)
    for mode in (None, "floor", "trunc"):
        for name in ("div", "divide"):
            call(getattr(aten, name).Scalar_mode, rand(4), 1.5, rounding_mode=mode)
            call(getattr(aten, name).Scalar_mode, whole, -2, rounding_mode=mode)
        call(aten.divide.Tensor_mode, rand(4), positive(4), rounding_mode=mode)
    call(aten.floor_divide.Scalar, torch.tensor([-7, 7, 8]), 2)
    call(aten.floor_divide.Scalar, rand(4), -1.5)
    call(aten.fmod.Scalar, torch.tensor([-7, 7, 8]), 3)
    call(aten.fmod.Scalar, torch.tensor([-1.5, 2.5]), -1.0)
    call(aten.remainder.Scalar_Tensor, 7, torch.tensor([-3, 2, 5]))
    call(aten.float_power.Scalar, 2, rand(4))
    call(aten.float_power.Tensor_Scalar, positive(4, dtype=i64), 2.5)
    call(aten.isin.Scalar_Tensor, 2, whole)
    call(aten.isin.Tensor_Scalar, whole, 2, invert=True)
    call(aten.bucketize.Scalar, 0.5, torch.tensor([0.0, 0.5, 1.0]), right=True)
    call(aten.searchsorted.Scalar, torch.tensor([0.0, 0.5, 1.0]), 0.5)
    call(aten.fill.Tensor, rand(2, 3), torch.tensor(2.5))
    call(aten.zero.default, rand(2, 3))
    for name in ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
                 "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
                 "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
                 "shifted_chebyshev_polynomial_w"):
        overloads = getattr(aten, "special_" + name)
        call(overloads.n_scalar, rand(4, dtype=f64), 3)
        call(overloads.x_scalar, 0.375, torch.tensor([0.0, 1.0, 2.0, 5.0], dtype=f64))


def spelled_otherwise():
    """What exports decompose or name otherwise, so that op_db does not show it."""
    x = rand(2, 3, 4)
    for split in (aten.split.sizes, aten.unsafe_split_with_sizes.default):
        call(split, x, [1, 3], 2)
    call(aten.split_copy.Tensor, x, 2, 2)
    call(aten.select_copy.int, x, 1, -1)
    call(aten.slice_copy.Tensor, x, 2, 0, 4, 2)
    call(aten.squeeze_copy.dims, rand(1, 3, 1), [0, 2])
    call(aten.detach_copy.default, x)
    call(aten._reshape_copy.default, x, [6, 4])
    call(aten.view_copy.dtype, x, i32)
    call(aten.narrow.Tensor, x, 2, torch.tensor(1), 2)
    call(aten.meshgrid.default, [rand(2), rand(3)])
    call(aten.chain_matmul.default, [rand(2, 3), rand(3, 4), rand(4, 2)])
    call(aten._unsafe_index.Tensor, x, [None, torch.tensor([0, 2])])
    call(aten._unsafe_index_put.default, x, [torch.tensor([1, 0])], rand(2, 3, 4), True)
    call(aten.index_select_backward.default, rand(2, 2, 4), [2, 3, 4], 1, torch.tensor([2, 0]))
    call(aten.gather_backward.default, rand(2, 2), rand(2, 3), 1, torch.tensor([[0, 0], [2, 1]]), False)
    call(aten.cumprod_backward.default, rand(2, 3), positive(2, 3), 1, positive(2, 3).cumprod(1))
    call(aten.soft_margin_loss_backward.default, rand(3), rand(3), rand(3).sign(), 0)
    call(aten._is_all_true.default, rand(3, dtype=b8))
    call(aten._is_any_true.default, rand(3, dtype=b8))
    for norm in ((aten.norm.Scalar, (3.0,)), (aten.norm.ScalarOpt_dtype, (2.0,)), (aten.norm.ScalarOpt_dim_dtype, (1.0, [1], True))):
        call(norm[0], x, *norm[1], **({} if norm[0] is aten.norm.Scalar else {"dtype": f64}))
    call(aten.norm_except_dim.default, x, 2, 1)
    call(aten._weight_norm_interface.default, rand(3, 4), positive(3, 1), 0)
    for pad, space in ((aten.reflection_pad2d, 2), (aten.reflection_pad3d, 3), (aten.replication_pad3d, 3)):
        image = rand(1, 2, *([4] * space))
        padding = [1, 2] + [0, 1] * (space - 1)
        call(pad.default, image, padding)
        call(getattr(aten, str(pad).split(".")[1] + "_backward").default, pad.default(image, padding) + 1, image, padding)
    call(aten._pad_circular.default, rand(1, 2, 4), [1, 2])
    for mode in (0, 1, 2):
        call(aten._pad_enum.default, rand(1, 2, 4), [1, 2], mode)
    call(aten._pad_enum.default, rand(2, 4), [1, 2], 3, 0.5)
    call(aten.affine_grid_generator.default, rand(1, 2, 3), [1, 2, 3, 4], False)
    call(aten.affine_grid_generator.default, rand(1, 3, 4), [1, 2, 2, 3, 4], True)
    for name, space in (("upsample_nearest3d", 3), ("_upsample_nearest_exact2d", 2), ("_upsample_nearest_exact3d", 3)):
        image, size = rand(1, 2, *([3] * space)), [5, 4, 7][:space]
        call(getattr(aten, name).default, image, size)
        call(getattr(aten, name + "_backward").default, rand(1, 2, *size), size, list(image.shape))
    call(aten.nll_loss.default, rand(3, 4), torch.tensor([0, 3, 1]), positive(4), 1, 3)
    call(aten.nll_loss.default, rand(3, 4), torch.tensor([0, 3, -100]), None, 2)
    call(aten.nll_loss2d.default, rand(2, 3, 2, 2), torch.randint(0, 3, (2, 2, 2)), None, 0)
    for name, count in (("hamming_window", 3), ("blackman_window", 1), ("hann_window", 1)):
        overloads = getattr(aten, name)
        call(overloads.default, 7)
        call(overloads.periodic, 6, False)
        if count == 3:
            call(overloads.periodic_alpha, 6, True, 0.5)
            call(overloads.periodic_alpha_beta, 6, False, 0.5, 0.4)
    call(aten._fused_rms_norm.default, rand(2, 4), [4], positive(4), 1e-5)
    call(aten._batch_norm_no_update.default, rand(2, 3, 4), positive(3), rand(3), rand(3), positive(3), 0.1, 1e-5)
    call(aten._native_batch_norm_legit_functional.default, rand(2, 3, 4), positive(3), rand(3), rand(3), positive(3), True, 0.1, 1e-5)


def recurrent():
    """Layers over sequences [time, batch, features], and their cells."""
    for gates, name in ((1, "rnn_tanh"), (1, "rnn_relu"), (3, "gru"), (4, "lstm")):
        h, c, weights = rand(2, 3), rand(2, 3), (rand(3 * gates, 4), rand(3 * gates, 3), rand(3 * gates), rand(3 * gates))
        call(getattr(aten, name + "_cell").default, rand(2, 4), [h, c] if name == "lstm" else h, *weights)
        if name == "lstm":
            continue
        layers = [w for i in range(4) for w in (rand(3 * gates, 4 if i < 2 else 6), rand(3 * gates, 3), rand(3 * gates), rand(3 * gates))]
        call(getattr(aten, name).input, rand(5, 2, 4), rand(4, 2, 3), layers, True, 2, 0.0, False, True, False)
        call(getattr(aten, name).input, rand(2, 5, 4), rand(1, 2, 3), [weights[0], weights[1]], False, 1, 0.0, False, False, True)
