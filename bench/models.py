"""The models of the table: modules, sample inputs, and for training steps what they learn."""

import dataclasses
import typing

import torch

from compiled import SmallCnn
from measures import bert, mlp

nn = torch.nn


class Gpt2(nn.Module):
    """GPT-2 of 124 million parameters: a prompt, or one more token with the keys and values of the past as inputs."""

    layers, heads, width, vocabulary = 12, 12, 768, 50257

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.vocabulary, self.width)
        self.places = nn.Embedding(1024, self.width)
        self.blocks = nn.ModuleList(Gpt2Block(self.width, self.heads) for _ in range(self.layers))
        self.norm = nn.LayerNorm(self.width)

    def forward(self, tokens, *past):
        offset = past[0].shape[2] if past else 0
        x = self.words(tokens) + self.places(torch.arange(offset, offset + tokens.shape[1]))
        kept = []
        for i, block in enumerate(self.blocks):
            x, *pair = block(x, *past[2 * i:2 * i + 2])
            kept += pair
        return nn.functional.linear(self.norm(x[:, -1:]), self.words.weight), *kept


class Gpt2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past_keys=None, past_values=None):
        batch, length, width = x.shape
        split = self.attention(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
        if past_keys is not None:
            keys, values = torch.cat([past_keys, keys], 2), torch.cat([past_values, values], 2)
        mixed = nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=past_keys is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        x = x + self.down(nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return x, keys, values


class Llama(nn.Module):
    """Two layers 512 wide: root mean squares, rotated queries and keys, gated units."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(32000, 512)
        self.blocks = nn.ModuleList(LlamaBlock(512, 8) for _ in range(2))
        self.norm = nn.RMSNorm(512, eps=1e-5)
        self.head = nn.Linear(512, 32000, bias=False)

    def forward(self, tokens, *past):
        offset = past[0].shape[2] if past else 0
        x, kept = self.words(tokens), []
        for i, block in enumerate(self.blocks):
            x, *pair = block(x, offset, *past[2 * i:2 * i + 2])
            kept += pair
        return self.head(self.norm(x[:, -1:])), *kept


class LlamaBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.queries, self.keys = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.values, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 1376, bias=False), nn.Linear(width, 1376, bias=False)
        self.down = nn.Linear(1376, width, bias=False)

    def rotated(self, x, offset):
        half = x.shape[-1] // 2
        angle = torch.arange(offset, offset + x.shape[2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def forward(self, x, offset, past_keys=None, past_values=None):
        batch, length, width = x.shape
        heads = lambda t: t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        y = self.norm1(x)
        queries, keys = self.rotated(heads(self.queries(y)), offset), self.rotated(heads(self.keys(y)), offset)
        values = heads(self.values(y))
        if past_keys is not None:
            keys, values = torch.cat([past_keys, keys], 2), torch.cat([past_values, values], 2)
        mixed = nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=past_keys is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y)), keys, values


class Classifier(nn.Module):
    """BERT of four layers 256 wide, and two classes."""

    def __init__(self):
        super().__init__()
        self.body, self.head = bert(), nn.Linear(256, 2)

    def forward(self, tokens):
        return self.head(self.body(tokens)[1])


def vision(name):
    def make():
        import torchvision

        return getattr(torchvision.models, name)()

    return make


def bert_base():
    import transformers

    return transformers.BertModel(transformers.BertConfig(return_dict=False))


def tokens(*shape):
    return torch.randint(0, 1000, shape)


def past(layers, heads, length):
    return tuple(torch.randn(1, heads, length, 64) for _ in range(2 * layers))


@dataclasses.dataclass
class Model:
    name: str
    make: typing.Callable
    inputs: typing.Callable  # of a batch
    asked: float = 0         # times as fast as the best peer
    batch: int = 1
    classes: int = 0         # of a training step: cross entropy and AdamW
    quick: bool = False
    huge_pages: bool = False  # of Tenon's weights


def image(batch):
    return (torch.randn(batch, 3, 224, 224),)


INFERENCE = [
    Model("MLP 64-256-256-10", mlp, lambda b: (torch.randn(b, 64),), 3.0, quick=True),
    Model("small CNN 28x28", SmallCnn, lambda b: (torch.randn(b, 1, 28, 28),), 1.5, quick=True),
    Model("ResNet-50", vision("resnet50"), image, 1.1),
    Model("ResNet-18", vision("resnet18"), image, 1.2),
    Model("VGG11-BN", vision("vgg11_bn"), image, 1.3),
    Model("MobileNetV3-L", vision("mobilenet_v3_large"), image, 1.3),
    Model("EfficientNet-B0", vision("efficientnet_b0"), image, 1.15),
    Model("BERT-base 128", bert_base, lambda b: (tokens(b, 128),), 1.07),
    Model("BERT 4x256 128", bert, lambda b: (tokens(b, 128),), quick=True),
    Model("ViT-B/16", vision("vit_b_16"), image, 1.04),
    Model("GPT-2 prefill 128", Gpt2, lambda b: (tokens(b, 128),), 1.03),
    Model("GPT-2 decode, 128 past", Gpt2, lambda b: (tokens(b, 1), *past(12, 12, 128)), 1.8, huge_pages=True),
    Model("Llama 2x512 prefill 256", Llama, lambda b: (tokens(b, 256),), 1.1),
    Model("Llama 2x512 decode, 256 past", Llama, lambda b: (tokens(b, 1), *past(2, 8, 256)), 1.5, quick=True, huge_pages=True),
]
TRAINING = [
    Model("train MLP (64)", mlp, lambda b: (torch.randn(b, 64),), 3.2, 64, 10, quick=True),
    Model("train small CNN (64)", SmallCnn, lambda b: (torch.randn(b, 1, 28, 28),), 2.3, 64, 10),
    Model("train ResNet-18 (8)", vision("resnet18"), image, 1.8, 8, 1000),
    Model("train BERT 4x256 (8x128)", Classifier, lambda b: (tokens(b, 128),), 1.8, 8, 2),
]
