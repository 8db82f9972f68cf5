"""q: quantized programs as people export them, and the last operators on real numbers."""

import importlib.util
import warnings

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  defines quantized_decomposed
from torch import nn

from programs import Function, Program, program

decomposed = torch.ops.quantized_decomposed
aten = torch.ops.aten


class QuantizedLinear(nn.Module):
    """What convert_pt2e makes of a linear layer: integers as weights, activations quantized and back."""

    def __init__(self, dynamic):
        super().__init__()
        self.dynamic = dynamic
        weight = torch.randn(6, 8)
        scale = weight.abs().amax(1) / 127
        self.register_buffer("weight", (weight / scale[:, None]).round().clamp(-128, 127).to(torch.int8))
        self.register_buffer("scale", scale)
        self.register_buffer("zero", torch.zeros(6, dtype=torch.int64))
        self.bias = nn.Parameter(torch.randn(6))

    def forward(self, x):
        if self.dynamic:
            scale, zero = decomposed.choose_qparams.tensor(x, 0, 255, 2**-12, torch.uint8)
            q = decomposed.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
            x = decomposed.dequantize_per_tensor.tensor(q, scale, zero, 0, 255, torch.uint8)
        else:
            q = decomposed.quantize_per_tensor.default(x, 0.0231, 117, 0, 255, torch.uint8)
            x = decomposed.dequantize_per_tensor.default(q, 0.0231, 117, 0, 255, torch.uint8)
        weight = decomposed.dequantize_per_channel.default(self.weight, self.scale, self.zero, 0, -128, 127, torch.int8)
        return nn.functional.linear(x, weight, self.bias)


@program("q", small=True)
def quantized_statically():
    return Program(QuantizedLinear(False), (torch.randn(3, 8),), mixed=True)


@program("q", small=True)
def quantized_dynamically():
    rows = torch.export.Dim("rows", min=2, max=32)
    return Program(QuantizedLinear(True), (torch.randn(3, 8),), dynamic_shapes=({0: rows},), more=[((torch.randn(7, 8),), {})], mixed=True,
                   gradient=False)


class PackedLinear(nn.Module):
    def __init__(self, bits):
        super().__init__()
        self.bits = bits
        if bits == 8:
            self.register_buffer("weight", torch.randint(-128, 128, (16, 32), dtype=torch.int8))
            self.register_buffer("scales", torch.rand(16) / 64)
        else:
            weight = torch.randint(0, 16, (80, 32), dtype=torch.int32)
            self.register_buffer("weight", aten._convert_weight_to_int4pack_for_cpu(weight, 2))
            self.register_buffer("scales", torch.rand(1, 80, 2) / 16)

    def forward(self, x):
        if self.bits == 8:
            return aten._weight_int8pack_mm(x, self.weight, self.scales)
        return aten._weight_int4pack_mm_for_cpu(x, self.weight, 32, self.scales)


@program("q", small=True)
def weights_of_8_bits():
    return Program(PackedLinear(8), (torch.randn(3, 32),), mixed=True, gradient=False)


@program("q", small=True)
def weights_of_4_bits():
    return Program(PackedLinear(4), (torch.randn(3, 32),), mixed=True, gradient=False)


class Prepared(nn.Module):
    """A layer prepared for quantization-aware training: observers in buffers, which every call writes to."""

    def __init__(self):
        super().__init__()
        ao = torch.ao.quantization
        self.layer = nn.Linear(3, 4)
        self.activation = ao.FusedMovingAvgObsFakeQuantize()
        self.weight = ao.FusedMovingAvgObsFakeQuantize(observer=ao.MovingAveragePerChannelMinMaxObserver, quant_min=0, quant_max=255,
                                                       averaging_constant=0.5, qscheme=torch.per_channel_affine)

    def forward(self, x):
        return nn.functional.linear(self.activation(x), self.weight(self.layer.weight), self.layer.bias).relu()


@program("q")
def prepared_for_training():
    module = Prepared()
    module(torch.randn(5, 3))  # the observers have their sizes
    with torch.no_grad():
        module.layer.weight.add_(torch.randn(4, 3))  # what they have seen is no longer so
    return Program(module, (torch.randn(5, 3),), mixed=True)


class Learnable(nn.Module):
    """Scales and zero points are parameters."""

    def __init__(self, channels):
        super().__init__()
        self.channels = channels
        count = 3 if channels else 1
        self.scale = nn.Parameter(torch.rand(count) * 0.1 + 0.05)
        self.zero = nn.Parameter(torch.zeros(count) + 3)

    def forward(self, x):
        if self.channels:
            y = torch._fake_quantize_learnable_per_channel_affine(x, self.scale, self.zero, 1, 0, 15, 0.5)
        else:
            y = torch._fake_quantize_learnable_per_tensor_affine(x, self.scale, self.zero, 0, 15, 0.5)
        return (y * x).sum(0)


@program("q")
def learnable_per_tensor():
    return Program(Learnable(False), (torch.randn(4, 3),), mixed=True)


@program("q")
def learnable_per_channel():
    return Program(Learnable(True), (torch.randn(4, 3),), mixed=True)


@program("q", small=True)
def last_operators():
    def forward(a, b):
        symmetric = a + a.mT
        factors, pivots = torch.linalg.ldl_factor(symmetric)
        solved = torch.linalg.ldl_solve(factors, pivots, b)
        fast = aten.sym_is_contiguous.default(b)
        return solved.sum(), torch.hash_tensor(b, [1]), fast, aten.dequantize.self(b)

    return Program(Function(forward), (torch.randn(4, 4), torch.randn(4, 2)), mixed=True, gradient=False)


@program("q")
def randomized_relu():
    def forward(x):
        return nn.functional.rrelu(x, 0.1, 0.3, training=True), nn.functional.rrelu(x)

    return Program(Function(forward), (torch.randn(4, 4),), random=True)


if importlib.util.find_spec("torchao") is not None:
    import torchao.quantization as ao
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    from torchao.utils import unwrap_tensor_subclass

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(32, 16), nn.Linear(16, 32)

        def forward(self, x):
            return self.b(torch.relu(self.a(x)))

    def quantized_by(config, rows=3):
        model = Layers().eval()
        ao.quantize_(model, config)
        unwrap_tensor_subclass(model)
        return Program(model, (torch.randn(rows, 32),), mixed=True, gradient=False)

    @program("q", small=True)
    def torchao_int8_weights():
        return quantized_by(ao.Int8WeightOnlyConfig())

    @program("q", small=True)
    def torchao_int8_activations():
        return quantized_by(ao.Int8DynamicActivationInt8WeightConfig(), rows=17)

    @program("q", small=True)
    def torchao_int4_weights():
        return quantized_by(ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=ao.PerGroup(16)))

    @program("q", small=True)
    def torchao_int4_weights_int8_activations():
        return quantized_by(ao.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=ao.PerGroup(16)))

    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.layer = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)

        def forward(self, x):
            return self.layer(torch.relu(self.norm(self.conv(x))).mean((2, 3)))

    def prepared(dynamic=False):
        warnings.simplefilter("ignore")
        quantizer = x86.X86InductorQuantizer()
        quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic=dynamic))
        x = (torch.randn(2, 2, 6, 6),)
        model = torch.export.export(Images().eval(), x).module()
        model = prepare_pt2e(model, quantizer)
        model(*x)
        return model, x

    @program("q", small=True)
    def pt2e_static():
        model, x = prepared()
        return Program(convert_pt2e(model), x, mixed=True, gradient=False)

    @program("q", small=True)
    def pt2e_dynamic():
        model, x = prepared(True)
        return Program(convert_pt2e(model), x, mixed=True, gradient=False)
