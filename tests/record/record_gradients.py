"""Second gradients of functions, by real PyTorch: record_gradients.py FILE.npz

For inputs x_i, a weight c for the output and weights d_i for the first gradients:
g = grad(sum(c * f(x)), x), then h = grad(sum_i(sum(d_i * g_i)), x). Everything is float64.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)


def rand(*sizes):
    return torch.randn(*sizes, dtype=torch.float64)


bags = torch.tensor([[0, 1, 1], [2, 0, 3]])
labels = torch.tensor([1, 0, 2])
cases = {
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4, 3), w, b), [rand(2, 4, 3), rand(4, 3), rand(4, 3)]),
    "layer_norm_plain": (lambda x: F.layer_norm(x, (5,)), [rand(3, 5)]),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [rand(2, 4, 3), rand(4), rand(4)]),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [rand(4, 3, 2), rand(3), rand(3)]),
    "batch_norm_eval": (
        lambda x, w, b: F.batch_norm(x, torch.zeros(3).double(), torch.full((3,), 2.0).double(), w, b, False),
        [rand(4, 3, 2), rand(3), rand(3)],
    ),
    "rms_norm": (lambda x, w: F.rms_norm(x, (5,), w), [rand(3, 5), rand(5)]),
    "attention": (F.scaled_dot_product_attention, [rand(2, 2, 4, 3), rand(2, 2, 5, 3), rand(2, 2, 5, 3)]),
    "attention_causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [rand(1, 2, 4, 3), rand(1, 2, 4, 3), rand(1, 2, 4, 3)],
    ),
    "mse_loss": (F.mse_loss, [rand(3, 4), rand(3, 4)]),
    "smooth_l1_loss": (F.smooth_l1_loss, [rand(3, 4), rand(3, 4)]),
    "huber_loss": (lambda x, y: F.huber_loss(x, y, reduction="sum"), [rand(3, 4), rand(3, 4)]),
    "cross_entropy": (lambda x: F.cross_entropy(x, labels), [rand(3, 4)]),
    "max_pool2d": (lambda x: F.max_pool2d(x * x, 2), [rand(1, 2, 4, 4)]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x * x, 2), [rand(1, 2, 4, 4)]),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), [rand(2, 3, 5, 5), rand(4, 3, 3, 3), rand(4)]),
    "linear": (F.linear, [rand(3, 4), rand(5, 4), rand(5)]),
    "gelu": (F.gelu, [rand(7)]),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), [rand(7)]),
    "silu": (F.silu, [rand(7)]),
    "softplus": (F.softplus, [rand(7)]),
    "logit": (lambda x: torch.logit(torch.sigmoid(x)), [rand(7)]),
    "softmax": (lambda x: F.softmax(x, 1), [rand(3, 4)]),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=1), [rand(3, 4)]),
    "cdist": (torch.cdist, [rand(3, 4), rand(5, 4)]),
    "cdist_of_order_3": (lambda x, y: torch.cdist(x, y, p=3.0), [rand(2, 3, 4), rand(2, 5, 4)]),
    "pdist": (F.pdist, [rand(4, 3)]),
    "pdist_of_order_1_5": (lambda x: F.pdist(x, p=1.5), [rand(4, 3)]),
    "grid_sample": (lambda x, g: F.grid_sample(x, torch.tanh(g), align_corners=False), [rand(1, 2, 4, 4), rand(1, 3, 3, 2)]),
    "grid_sample_3d": (lambda x, g: F.grid_sample(x, torch.tanh(g), align_corners=True), [rand(1, 1, 3, 3, 3), rand(1, 2, 2, 2, 3)]),
    # PyTorch has no second gradient of embedding_bag: the same from the operators that it stands for.
    "embedding_bag": (lambda w: w[bags].sum(1) ** 2, [rand(4, 3)]),
    "embedding_bag_mean": (lambda w: w[bags].mean(1) ** 2, [rand(4, 3)]),
    "embedding_bag_max": (lambda w: w[bags].amax(1) ** 2, [rand(4, 3)]),
    "embedding_bag_weighted": (lambda w, s: (w[bags] * s[:, :, None]).sum(1) ** 2, [rand(4, 3), rand(2, 3)]),
}


def main(path):
    out = {}
    for name, (function, inputs) in cases.items():
        inputs = [x.requires_grad_() for x in inputs]
        with sdpa_kernel(SDPBackend.MATH):  # the other one has no second gradient in PyTorch
            y = function(*inputs)
        c = torch.randn_like(y)
        first = torch.autograd.grad((c * y).sum(), inputs, create_graph=True)
        d = [torch.randn_like(g) for g in first]
        second = torch.autograd.grad(sum((u * g).sum() for u, g in zip(d, first)), inputs, allow_unused=True)
        out[f"{name}.y"], out[f"{name}.c"] = y, c
        for i, x in enumerate(inputs):
            out[f"{name}.x{i}"], out[f"{name}.d{i}"], out[f"{name}.g{i}"] = x, d[i], first[i]
            if second[i] is not None:
                out[f"{name}.h{i}"] = second[i]
    np.savez_compressed(path, **{k: v.detach().numpy() for k, v in out.items()})


main(sys.argv[1])
