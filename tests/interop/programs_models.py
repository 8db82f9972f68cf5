"""a: multilayer perceptrons. b: the digits network and its relatives. c: a GPT-style transformer."""

import pathlib
import sys

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

from programs import Function, Program, jitter, program

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "digits"))
from export_digits import DigitsCnn  # noqa: E402


@program("a", small=True)
def mlp():
    module = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))
    return Program(module, (torch.randn(5, 6),))


@program("a", small=True)
def mlp_dynamic():
    module = nn.Sequential(nn.Linear(7, 9), nn.GELU(), nn.Linear(9, 4, bias=False), nn.Sigmoid(), nn.Linear(4, 1))
    return Program(module, (torch.randn(4, 7),), dynamic_shapes=({0: Dim("batch")},),
                   more=[((torch.randn(1, 7),), {}), ((torch.randn(13, 7),), {}), ((torch.randn(0, 7),), {})])


@program("a", small=True)
def mlp_loss():
    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Linear(5, 11)
            self.norm = nn.LayerNorm(11)
            self.out = nn.Linear(11, 4)

        def forward(self, x, target):
            y = self.out(F.silu(self.norm(self.hidden(x))))
            return F.cross_entropy(y, target), y

    return Program(jitter(Mlp()), (torch.randn(6, 5), torch.randint(0, 4, (6,))))


@program("a", small=True)
def mlp_three_dimensions():
    module = nn.Sequential(nn.Linear(3, 5), nn.Softplus(), nn.Linear(5, 5), nn.Hardswish(), nn.Linear(5, 2),
                           nn.LogSoftmax(dim=-1))
    x = torch.randn(3, 4, 2).transpose(1, 2).transpose(0, 1)[..., :3]
    return Program(module, (x,))


@program("a", small=True)
def mlp_f64():
    module = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 2)).double()
    return Program(module, (torch.randn(3, 4, dtype=torch.float64),), mixed=True)


@program("a", small=True)
def mlp_bf16():
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).bfloat16()
    return Program(module, (torch.randn(3, 4, dtype=torch.bfloat16),), mixed=True)


@program("a", small=True)
def mlp_tied():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(6, 6)
            self.second = nn.Linear(6, 6)
            self.second.weight = self.first.weight
            self.view = nn.Parameter(self.first.bias.detach()[1:4])

        def forward(self, x):
            y = self.second(torch.tanh(self.first(x)))
            return (y[:, 1:4] * self.view).sum(), y

    return Program(Tied(), (torch.randn(4, 6),))


@program("b", small=True)
def digits_eval():
    return Program(jitter(DigitsCnn()).eval(), (torch.rand(3, 1, 8, 8),), dynamic_shapes=({0: Dim("batch")},),
                   more=[((torch.rand(1, 1, 8, 8),), {}), ((torch.rand(7, 1, 8, 8),), {})])


@program("b", small=True)
def digits_train():
    return Program(jitter(DigitsCnn(dropout=0.0)).train(), (torch.rand(4, 1, 8, 8),),
                   dynamic_shapes=({0: Dim("batch")},), more=[((torch.rand(9, 1, 8, 8),), {})])


@program("b", small=True)
def digits_train_random():
    return Program(jitter(DigitsCnn(dropout=0.25)).train(), (torch.rand(4, 1, 8, 8),),
                   dynamic_shapes=({0: Dim("batch")},), random=True)


class OddCnn(nn.Module):
    """Convolutions and pools with every option away from its default."""

    def __init__(self, momentum=0.3):
        super().__init__()
        self.grouped = nn.Conv2d(4, 8, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2)
        self.norm = nn.BatchNorm2d(8, momentum=momentum, eps=1e-3)
        self.depthwise = nn.Conv2d(8, 8, 3, padding="same", groups=8, bias=False)
        self.plain_norm = nn.BatchNorm2d(8, affine=False)
        self.point = nn.Conv2d(8, 5, 1)
        self.free_norm = nn.BatchNorm2d(5, track_running_stats=False)
        self.head = nn.Linear(5 * 6, 3)

    def forward(self, x):
        x = F.relu6(self.norm(self.grouped(x)))
        x = F.max_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)
        x = F.leaky_relu(self.plain_norm(self.depthwise(x)), 0.2)
        x = F.avg_pool2d(x, (2, 3), stride=1, padding=1, count_include_pad=False)
        x = self.free_norm(self.point(x))
        x = F.adaptive_avg_pool2d(x, (2, 3))
        return self.head(x.flatten(1))


@program("b", small=True)
def odd_cnn_eval():
    return Program(jitter(OddCnn()).eval(), (torch.randn(2, 4, 11, 9),))


@program("b", small=True)
def odd_cnn_train():
    return Program(jitter(OddCnn()).train(), (torch.randn(3, 4, 10, 13),))


@program("b", small=True)
def odd_cnn_channels_last():
    return Program(jitter(OddCnn(momentum=1.0)).train(), (torch.randn(2, 4, 9, 8).to(memory_format=torch.channels_last),))


class ShuffleUnit(nn.Module):
    """One half of the channels goes through convolutions; then both halves are shuffled."""

    def __init__(self, channels):
        super().__init__()
        half = channels // 2
        self.branch = nn.Sequential(nn.Conv2d(half, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU(),
                                    nn.Conv2d(half, half, 3, padding=1, groups=half), nn.BatchNorm2d(half),
                                    nn.Conv2d(half, half, 1), nn.ReLU())

    def forward(self, x):
        kept, changed = x.chunk(2, dim=1)
        x = torch.cat([kept, self.branch(changed)], dim=1)
        n, c, h, w = x.shape
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


@program("b")
def groups_of_experts():
    def forward(x, stack, offs):
        rows = torch._grouped_mm(x, stack, offs=offs)
        columns = torch._grouped_mm(stack, x.t(), offs=offs)
        sums = torch._grouped_mm(x.t(), x, offs=offs)
        return rows, columns, sums, torch._grouped_mm(stack, stack.mT.contiguous())

    x = torch.randn(8, 4)
    return Program(Function(forward), (x, torch.randn(3, 4, 4), torch.tensor([4, 4, 8], dtype=torch.int32)), mixed=True,
                   gradient=False)  # not of float64, not differentiated


@program("b")
def shuffled_channels():
    module = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1), ShuffleUnit(16), ShuffleUnit(16), nn.Conv2d(16, 24, 1))
    return Program(jitter(module).eval(), (torch.randn(1, 3, 12, 12),))


@program("b", small=True)
def conv1d_groupnorm():
    module = nn.Sequential(nn.Conv1d(3, 6, 4, stride=2, padding=2, dilation=2), nn.GroupNorm(3, 6), nn.SiLU(),
                           nn.Conv1d(6, 6, 3, groups=3), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(24, 2))
    return Program(jitter(module), (torch.randn(2, 3, 23),))


@program("b", small=True)
def conv2d_without_batch():
    module = nn.Sequential(nn.Conv2d(2, 3, 3, padding="valid"), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                           nn.Upsample(scale_factor=2, mode="nearest"),
                           nn.Upsample(size=(7, 5), mode="bilinear", align_corners=True))
    return Program(module, (torch.randn(1, 2, 8, 7),))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.after = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(y.transpose(1, 2).contiguous().view(batch, length, width))
        return x + self.down(F.gelu(self.up(self.after(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary=37, width=24, heads=3, layers=2, length=32):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1), device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class GptLoss(Gpt):
    def forward(self, tokens, targets):
        logits = super().forward(tokens)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1), logits


@program("c")
def gpt():
    shapes = ({0: Dim("batch"), 1: Dim("length", max=32)},)
    return Program(jitter(Gpt()), (torch.randint(0, 37, (2, 9)),), dynamic_shapes=shapes,
                   more=[((torch.randint(0, 37, (1, 1)),), {}), ((torch.randint(0, 37, (3, 32)),), {})])


@program("c")
def gpt_loss():
    batch, length = Dim("batch"), Dim("length", max=32)
    targets = torch.randint(0, 37, (2, 11))
    targets[0, 3:5] = -1
    return Program(jitter(GptLoss()), (torch.randint(0, 37, (2, 11)), targets),
                   dynamic_shapes=({0: batch, 1: length}, {0: batch, 1: length}),
                   more=[((torch.randint(0, 37, (4, 5)), torch.randint(0, 37, (4, 5))), {})])


@program("c")
def masked_attention():
    def forward(q, k, v, mask, bias):
        full = F.scaled_dot_product_attention(q, k, v)
        boolean = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        scaled = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.3)
        return (full * 0.5 + boolean - scaled).sum(), boolean

    mask = torch.rand(2, 1, 5, 7) > 0.3
    mask[..., 0] = True
    return Program(Function(forward), (torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4), torch.randn(2, 3, 7, 6), mask,
                                       torch.randn(3, 5, 7)))


@program("c")
def grouped_query_attention():
    def forward(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    return Program(Function(forward), (torch.randn(2, 6, 4, 8), torch.randn(2, 2, 4, 8), torch.randn(2, 2, 4, 8)))


@program("c")
def encoder():
    layer = nn.TransformerEncoderLayer(16, 4, 20, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return Program(jitter(module).train(), (torch.randn(3, 6, 16),),
                   dynamic_shapes=({0: Dim("batch"), 1: Dim("length")}, ), more=[((torch.randn(2, 4, 16),), {})])
