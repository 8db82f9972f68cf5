"""Modules, losses, optimizers, schedules and whole trainings of real PyTorch: record_training.py FOLDER

Writes modules.npz (state, inputs, results, gradients, state after the call), optimizers.npz (parameters after 1, 10 and 100 steps of
given gradients), schedules.npz (rates, and momenta where they change) and trainings.npz (losses after 1, 10 and 100 steps). Everything is
float64 but for the trainings.
"""

import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)


def rand(*sizes):
    return torch.randn(*sizes, dtype=torch.float64)


def ints(high, *sizes):
    return torch.randint(high, sizes)


def mha(m, q, k, v, **kw):
    return [t for t in m(q, k, v, **kw) if t is not None]


def flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for part in result for t in flat(part)]


padding = torch.tensor([[False, False, False, True], [False, True, True, True]])
modules = {
    "linear": (nn.Linear(4, 3), [rand(2, 5, 4)]),
    "linear_no_bias": (nn.Linear(4, 3, bias=False), [rand(2, 4)]),
    "bilinear": (nn.Bilinear(3, 4, 2), [rand(5, 3), rand(5, 4)]),
    "embedding": (nn.Embedding(6, 3, padding_idx=2), [ints(6, 2, 5)]),
    "conv1d": (nn.Conv1d(2, 4, 3, stride=2, padding=1), [rand(2, 2, 7)]),
    "conv2d": (nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), groups=2), [rand(2, 4, 6, 5)]),
    "conv3d": (nn.Conv3d(2, 3, 2, dilation=2, bias=False), [rand(1, 2, 4, 4, 4)]),
    "conv_transpose1d": (nn.ConvTranspose1d(3, 2, 3, stride=2, padding=1, output_padding=1), [rand(2, 3, 5)]),
    "conv_transpose2d": (nn.ConvTranspose2d(4, 2, 3, stride=2, groups=2), [rand(1, 4, 3, 4)]),
    "conv_transpose3d": (nn.ConvTranspose3d(2, 3, 2), [rand(1, 2, 3, 2, 3)]),
    "batch_norm1d": (nn.BatchNorm1d(3), [rand(4, 3, 5)]),
    "batch_norm2d": (nn.BatchNorm2d(3, momentum=None), [rand(2, 3, 4, 4)]),
    "batch_norm3d_eval": (nn.BatchNorm3d(2).eval(), [rand(2, 2, 2, 3, 2)]),
    "batch_norm_untracked": (nn.BatchNorm1d(3, affine=False, track_running_stats=False), [rand(4, 3)]),
    "layer_norm": (nn.LayerNorm((4, 3)), [rand(2, 4, 3)]),
    "layer_norm_plain": (nn.LayerNorm(3, elementwise_affine=False), [rand(2, 3)]),
    "group_norm": (nn.GroupNorm(2, 4), [rand(2, 4, 3)]),
    "rms_norm": (nn.RMSNorm(5), [rand(2, 5)]),
    "max_pool1d": (nn.MaxPool1d(2), [rand(1, 2, 7)]),
    "max_pool2d": (nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True), [rand(1, 2, 6, 7)]),
    "max_pool3d": (nn.MaxPool3d(2, dilation=2, stride=1), [rand(1, 1, 4, 4, 4)]),
    "avg_pool1d": (nn.AvgPool1d(2), [rand(1, 2, 6)]),
    "avg_pool2d": (nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), [rand(1, 2, 6, 7)]),
    "avg_pool3d": (nn.AvgPool3d(2), [rand(1, 1, 4, 4, 4)]),
    "adaptive_avg_pool1d": (nn.AdaptiveAvgPool1d(3), [rand(1, 2, 7)]),
    "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d(2), [rand(1, 2, 5, 6)]),
    "adaptive_avg_pool3d": (nn.AdaptiveAvgPool3d(2), [rand(1, 2, 4, 5, 3)]),
    "adaptive_max_pool1d": (nn.AdaptiveMaxPool1d(3), [rand(1, 2, 7)]),
    "adaptive_max_pool2d": (nn.AdaptiveMaxPool2d((2, 3)), [rand(1, 2, 5, 6)]),
    "adaptive_max_pool3d": (nn.AdaptiveMaxPool3d(2), [rand(1, 2, 4, 5, 3)]),
    "relu": (nn.ReLU(), [rand(9)]),
    "relu6": (nn.ReLU6(), [rand(9) * 5]),
    "selu": (nn.SELU(), [rand(9)]),
    "gelu": (nn.GELU(), [rand(9)]),
    "silu": (nn.SiLU(), [rand(9)]),
    "mish": (nn.Mish(), [rand(9)]),
    "sigmoid": (nn.Sigmoid(), [rand(9)]),
    "log_sigmoid": (nn.LogSigmoid(), [rand(9)]),
    "tanh": (nn.Tanh(), [rand(9)]),
    "hardtanh": (nn.Hardtanh(), [rand(9)]),
    "hardswish": (nn.Hardswish(), [rand(9) * 3]),
    "hardsigmoid": (nn.Hardsigmoid(), [rand(9) * 3]),
    "softsign": (nn.Softsign(), [rand(9)]),
    "leaky_relu": (nn.LeakyReLU(0.2), [rand(9)]),
    "elu": (nn.ELU(), [rand(9)]),
    "celu": (nn.CELU(0.7), [rand(9)]),
    "softplus": (nn.Softplus(2), [rand(9)]),
    "softshrink": (nn.Softshrink(), [rand(9)]),
    "hardshrink": (nn.Hardshrink(), [rand(9)]),
    "softmax": (nn.Softmax(1), [rand(2, 3)]),
    "log_softmax": (nn.LogSoftmax(1), [rand(2, 3)]),
    "glu": (nn.GLU(), [rand(2, 6)]),
    "prelu": (nn.PReLU(3), [rand(2, 3, 4)]),
    "flatten": (nn.Flatten(), [rand(2, 3, 4)]),
    "lstm": (nn.LSTM(3, 4, num_layers=2, bidirectional=True), [rand(5, 2, 3)]),
    "lstm_batch_first": (nn.LSTM(3, 4, batch_first=True, bias=False), [rand(2, 5, 3)]),
    "gru": (nn.GRU(3, 4, num_layers=2, bidirectional=True), [rand(5, 2, 3)]),
    "gru_batch_first": (nn.GRU(3, 4, batch_first=True), [rand(2, 5, 3)]),
    "attention": (nn.MultiheadAttention(8, 2), [rand(3, 2, 8), rand(4, 2, 8), rand(4, 2, 8)]),
    "attention_padded": (nn.MultiheadAttention(8, 2, batch_first=True), [rand(2, 3, 8), rand(2, 4, 8), rand(2, 4, 8)]),
    "attention_causal": (nn.MultiheadAttention(8, 4, batch_first=True), [rand(2, 4, 8)] * 3),
    "encoder_layer": (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), [rand(4, 2, 8)]),
    "encoder_layer_norm_first": (
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True),
        [rand(2, 4, 8)],
    ),
    "sequential": (nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)), [rand(3, 4)]),
    "cross_entropy": (nn.CrossEntropyLoss(label_smoothing=0.1), [rand(3, 4), torch.tensor([1, 3, 0])]),
    "cross_entropy_weighted": (
        nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1, 2, 1]), ignore_index=3, reduction="sum"),
        [rand(3, 4), torch.tensor([1, 3, 0])],
    ),
    "nll": (nn.NLLLoss(), [rand(3, 4), torch.tensor([1, 3, 0])]),
    "mse": (nn.MSELoss(), [rand(3, 4), rand(3, 4)]),
    "l1": (nn.L1Loss(reduction="none"), [rand(3, 4), rand(3, 4)]),
    "smooth_l1": (nn.SmoothL1Loss(beta=0.5), [rand(3, 4), rand(3, 4)]),
    "huber": (nn.HuberLoss(delta=0.5, reduction="sum"), [rand(3, 4), rand(3, 4)]),
    "bce": (nn.BCELoss(), [torch.sigmoid(rand(3, 4)), torch.sigmoid(rand(3, 4))]),
    "bce_with_logits": (nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.0, 2, 3, 4])), [rand(3, 4), torch.sigmoid(rand(3, 4))]),
    "kl_div": (nn.KLDivLoss(reduction="batchmean"), [F.log_softmax(rand(3, 4), 1), F.softmax(rand(3, 4), 1)]),
}
calls = {
    "attention": lambda m, x: mha(m, *x),
    "attention_padded": lambda m, x: mha(m, *x, key_padding_mask=padding),
    "attention_causal": lambda m, x: mha(
        m, *x, attn_mask=torch.triu(torch.ones(4, 4, dtype=torch.bool), 1), average_attn_weights=False
    ),
}


def record_modules():
    out = {}
    for name, (module, inputs) in modules.items():
        module = module.double()
        for key, value in module.state_dict().items():
            out[f"{name}.state.{key}"] = value.clone()
        inputs = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
        results = flat(calls.get(name, lambda m, x: m(*x))(module, inputs))
        weights = [torch.randn_like(y) for y in results]
        sum((c * y).sum() for c, y in zip(weights, results)).backward()
        for i, x in enumerate(inputs):
            out[f"{name}.x{i}"] = x
            if x.grad is not None:
                out[f"{name}.gx{i}"] = x.grad
        for i, (c, y) in enumerate(zip(weights, results)):
            out[f"{name}.c{i}"], out[f"{name}.y{i}"] = c, y
        for key, value in module.named_parameters():
            out[f"{name}.grad.{key}"] = value.grad
        for key, value in module.named_buffers():
            out[f"{name}.after.{key}"] = value
    return out


optimizers = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.9), amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, weight_decay=0.01),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.01, weight_decay=0.01, initial_accumulator_value=0.1),
}


def record_optimizers():
    start = [rand(3, 4), rand(5)]
    out = {f"start{i}": p for i, p in enumerate(start)}
    grads = [[rand(3, 4), rand(5)] for _ in range(100)]
    for i in range(2):
        out[f"grads{i}"] = torch.stack([g[i] for g in grads])
    for name, make in optimizers.items():
        parameters = [p.clone().requires_grad_() for p in start]
        optimizer = make(parameters)
        for step, given in enumerate(grads):
            for p, g in zip(parameters, given):
                p.grad = g.clone()
            optimizer.step()
            if step + 1 in (1, 10, 100):
                for i, p in enumerate(parameters):
                    out[f"{name}.{step + 1}.p{i}"] = p.clone()
    g = [rand(3, 4) * 3, rand(5)]
    parameters = [torch.zeros_like(x).requires_grad_() for x in g]
    for norm_type, label in ((2.0, "2"), (float("inf"), "inf"), (1.0, "1")):
        for p, x in zip(parameters, g):
            p.grad = x.clone()
        out[f"clip.{label}.norm"] = torch.nn.utils.clip_grad_norm_(parameters, 1.5, norm_type)
        for i, p in enumerate(parameters):
            out[f"clip.{label}.g{i}"] = p.grad.clone()
    for i, x in enumerate(g):
        out[f"clip.g{i}"] = x
    return out


S = torch.optim.lr_scheduler
schedules = {
    "step": lambda o: S.StepLR(o, 5, 0.5),
    "multi_step": lambda o: S.MultiStepLR(o, [3, 7, 20], 0.3),
    "exponential": lambda o: S.ExponentialLR(o, 0.9),
    "linear": lambda o: S.LinearLR(o, 0.25, 0.75, 10),
    "cosine": lambda o: S.CosineAnnealingLR(o, 15, 0.01),
    "one_cycle": lambda o: S.OneCycleLR(o, 0.5, total_steps=40),
    "one_cycle_linear": lambda o: S.OneCycleLR(o, 0.5, total_steps=40, anneal_strategy="linear", three_phase=True),
    "sequential": lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 5), S.CosineAnnealingLR(o, 30, 0.02)], [5]),
}


def record_schedules():
    out = {}
    for name, make in schedules.items():
        optimizer = torch.optim.SGD([{"params": [rand(1)]}, {"params": [rand(1)], "lr": 0.4}], lr=0.1, momentum=0.9)
        schedule = make(optimizer)
        rates = []
        for _ in range(39):
            rates.append([g["lr"] for g in optimizer.param_groups] + [optimizer.param_groups[0]["momentum"]])
            optimizer.step()
            schedule.step()
        out[name] = torch.tensor(rates, dtype=torch.float64)
    return out


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 8, batch_first=True)
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(4, 8)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        x = self.embedding(x)
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        for layer in self.layers:
            x = layer(x, src_mask=mask)
        return self.out(x).transpose(1, 2)


trainings = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4)), lambda: torch.randn(12, 6), (12,)),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 4)
        ),
        lambda: torch.randn(12, 1, 8, 8),
        (12,),
    ),
    "lstm": (Recurrent, lambda: torch.randn(12, 5, 3), (12,)),
    "transformer": (Transformer, lambda: ints(4, 6, 5), (6, 5)),
}
trained_by = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.003),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.003),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.001),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
}


def record_trainings():
    out = {}
    for name, (make, inputs, labels) in trainings.items():
        start, x, y = make().state_dict(), inputs(), ints(4, *labels)
        out[f"{name}.x"], out[f"{name}.y"] = x, y
        for key, value in start.items():
            out[f"{name}.state.{key}"] = value
        for optimizer_name, make_optimizer in trained_by.items():
            for dtype in (torch.float32, torch.float64):
                model = make()
                model.load_state_dict(start)
                model = model.to(dtype)
                data = x.to(dtype) if x.is_floating_point() else x
                optimizer = make_optimizer(model.parameters())
                losses = []
                for _ in range(100):
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(data), y)
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                out[f"{name}.{optimizer_name}.{str(dtype)[6:]}"] = torch.tensor(losses, dtype=torch.float64)
    return out


def main(folder):
    torch.use_deterministic_algorithms(True)
    for what in (record_modules, record_optimizers, record_schedules, record_trainings):
        torch.manual_seed(0)
        name = what.__name__.removeprefix("record_")
        np.savez_compressed(f"{folder}/{name}.npz", **{k: v.detach().numpy() for k, v in what().items()})


main(sys.argv[1])
