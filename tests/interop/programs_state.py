"""i: mutated buffers. j: nested inputs and outputs. k: mixed dtypes. l: set-grad regions and detach."""

import collections

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

from programs import Function, Program, program


class Statistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.randn(4))
        self.register_buffer("count", torch.tensor(3))
        self.register_buffer("scratch", torch.zeros(2, 4), persistent=False)
        self.register_buffer("ring", torch.randn(3, 4), persistent=False)
        self.register_buffer("unused", torch.ones(2))
        self.register_buffer("constant", torch.randn(4))
        self.scale = nn.Parameter(torch.randn(4))

    def forward(self, x):
        self.count.add_(1)
        self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        self.scratch.copy_(x[:2])
        self.ring[1:] = self.ring[:-1].clone()
        self.ring[0] = x[0].detach()
        return ((x - self.mean) * self.scale + self.constant).square().sum() / self.count, self.ring.sum()


@program("i", small=True)
def statistics():
    return Program(Statistics(), (torch.randn(5, 4),), dynamic_shapes=({0: Dim("batch", min=2)},),
                   more=[((torch.randn(2, 4),), {})])


@program("i", small=True)
def counter():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
            self.register_buffer("seen", torch.zeros(3, dtype=torch.bool))
            self.register_buffer("halves", torch.tensor([0.5], dtype=torch.float16))

        def forward(self, x):
            self.steps += 1
            self.seen.logical_or_(x > 0)
            self.halves.mul_(0.5)
            return x * self.steps, self.steps, self.seen.clone(), self.halves

    return Program(Counter(), (torch.tensor([-1.0, 0.0, 2.0]),), mixed=True, gradient=False)


@program("i", small=True)
def buffers_sharing_storage():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            storage = torch.randn(10)
            self.register_buffer("left", storage[:6].view(2, 3))
            self.register_buffer("right", storage[4:10])
            self.register_buffer("again", storage[:6].view(2, 3))

        def forward(self, x):
            self.left.add_(x)
            total = self.right.sum()
            self.right.mul_(2)
            return total + self.left.sum() + self.again.prod()

    return Program(Shared(), (torch.randn(2, 3),))


@program("i", small=True)
def buffer_returned():
    class Returned(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.randn(3, 2))
            self.inner = nn.Module()
            self.inner.register_buffer("deep", torch.randn(2))

        def forward(self, x):
            old = self.state.clone()
            self.state.copy_(torch.tanh(x @ old))
            self.inner.deep.add_(self.state.sum(0))
            return self.state, old, self.inner.deep, self.state.t()

    return Program(Returned(), (torch.randn(3, 3),))


@program("i", small=True)
def gradient_through_a_buffer():
    class Through(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("memory", torch.randn(4))
            self.weight = nn.Parameter(torch.randn(4))

        def forward(self, x):
            self.memory.mul_(self.weight)
            self.memory[1:3].add_(x)
            return (self.memory * self.memory).sum()

    return Program(Through(), (torch.randn(2),))


@program("j", small=True)
def nested_inputs():
    def forward(pairs, table, *, scale, offset=None):
        a, (b, c) = pairs
        result = {"sum": a + b, "rest": [c * scale, (table["x"], None)], "none": None, "number": 3, "flag": True}
        if offset is not None:
            result["offset"] = offset - table["y"][0]
        return result

    return Program(Function(forward), ((torch.randn(2), [torch.randn(2), torch.randn(3)]),
                                       {"x": torch.randn(1), "y": [torch.randn(2)]}),
                   {"scale": torch.tensor(2.5), "offset": torch.randn(2)})


@program("j", small=True)
def constants():
    def forward(x, times, factor, flag, mode, nothing, y):
        if mode == "double":
            x = x * 2
        for _ in range(times):
            x = x * factor
        return (x if flag else -x) + (y if nothing is None else 0), times, factor, flag, nothing

    return Program(Function(forward), (torch.randn(3), 2, 1.5, True, "double", None, torch.randn(3)))


@program("j", small=True)
def keywords_in_another_order():
    def forward(x, *rest, first, second=2.0, **others):
        total = x - first * second
        for value in rest:
            total = total * value
        return total.sum(), {name: others[name] * 2 for name in sorted(others)}

    return Program(Function(forward), (torch.randn(2, 2), torch.randn(2), torch.randn(1)),
                   {"second": 0.5, "zeta": torch.randn(1), "first": torch.randn(2, 2), "alpha": torch.randn(3)})


@program("j", small=True)
def ordered_dict_and_repeats():
    def forward(items):
        y = items["b"] + items["a"]
        return collections.OrderedDict([("z", y), ("a", [y, y]), ("items", items["a"]), ("empty", ())])

    items = collections.OrderedDict([("b", torch.randn(2)), ("a", torch.randn(2))])
    return Program(Function(forward), (items,))


@program("j", small=True)
def guards():
    def forward(x, table, *, rest):
        halves = x.reshape(2, -1)
        if table["a"][1].shape[0] % 3 == 0 and rest.shape[0] > 2 * x.shape[0]:
            halves = halves * 2
        return halves.sum() + table["a"][1].sum() * rest.mean()

    free = {0: Dim.AUTO}
    return Program(Function(forward), (torch.randn(4), {"a": [torch.randn(2), torch.randn(6)]}), {"rest": torch.randn(9)},
                   {"x": free, "table": {"a": [free, free]}, "rest": free})


@program("j", small=True)
def sizes_as_outputs():
    def forward(x, y):
        n, m = x.shape
        return x.reshape(n * m)[: m + 1] + y.sum(), n, n * m + 1, {"half": m // 2}

    return Program(Function(forward), (torch.randn(3, 4), torch.randn(4)),
                   dynamic_shapes=({0: Dim("n", min=2, max=9), 1: Dim("m", min=3, max=9)}, None),
                   more=[((torch.randn(5, 6), torch.randn(4)), {})])


@program("j", small=True)
def single_tensor():
    return Program(Function(lambda x: x.cos()), (torch.randn(2, 3),))


@program("j", small=True)
def no_inputs():
    class NoInputs(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3))

        def forward(self):
            return (self.weight * torch.arange(3.0)).sum(), torch.full((2,), 7)

    return Program(NoInputs())


@program("j", small=True)
def tensor_constants():
    class Constants(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.randn(4, 2)

        def forward(self, x):
            y = x @ self.table + torch.tensor([1.0, -2.0])
            return y * torch.tensor(3), self.table

    return Program(Constants(), (torch.randn(3, 4),))


def of_all_dtypes(*shape):
    return (torch.randn(*shape, dtype=torch.float64), torch.randn(*shape), torch.randn(*shape).half(),
            torch.randn(*shape).bfloat16(), torch.randint(-5, 6, shape), torch.randint(-5, 6, shape, dtype=torch.int32),
            torch.rand(*shape) > 0.5)


@program("k", small=True)
def pairwise_promotion():
    def forward(*values):
        results = []
        for i, a in enumerate(values):
            for b in values[i:]:
                results.append(a + b if a.dtype != torch.bool else a | b)
                results.append(a * b)
        return results

    return Program(Function(forward), of_all_dtypes(3), mixed=True)


@program("k", small=True)
def scalars_and_zero_dimensional():
    def forward(f64, f32, f16, bf16, i64, i32, b):
        zero = f64[0]
        return (f32 * 2, f16 + 1.5, i64 + 2.5, i32 * 2, b + 1, b * 2.0, f32 + zero, f16 * f32[0], bf16 - zero, i32 + i64[0],
                i32 + zero, b + i32[1], i64 / i32.abs().add(1), i64 // 2, i32 % 3, f16.pow(2), 2 ** i64.abs(), -i32, b == i64,
                f32 < i32, f16 >= bf16, 1 - f16, 3 / (bf16.abs() + 1), i64.bitwise_xor(i32), ~b)

    return Program(Function(forward), of_all_dtypes(4), mixed=True, gradient=False)


@program("k", small=True)
def conversions():
    def forward(f64, f32, f16, bf16, i64, i32, b):
        return (f64.float(), f32.half(), f32.bfloat16(), f16.double(), bf16.float() + f16, i64.to(torch.float16), i32.bool(),
                b.to(torch.int64), f32.to(torch.int32), (f32 * 100).long(), f64.type_as(bf16), i64.to(f32), f32.to(f32.dtype),
                torch.cat([f16, f32, i64]), torch.stack([i32, i64]), torch.where(b, f16, f32), torch.where(b, i32, 1.5))

    return Program(Function(forward), of_all_dtypes(5), mixed=True)


@program("k", small=True)
def reductions():
    def forward(f64, f32, f16, bf16, i64, i32, b):
        return (f16.float().sum(), i32.sum(), b.sum(), b.sum(0, keepdim=True), i64.sum(-1), f16.sum(1), bf16.mean(-1),
                f32.mean(dtype=torch.float64), i32.cumsum(0), b.cumsum(1), f16.softmax(-1), f32.softmax(0, dtype=torch.float64),
                i64.amax(0), b.any(1), b.all(), i32.prod(0), f64.var(0), bf16.amin(-1, keepdim=True), i64.argmax(1), f32.std(1),
                f16.log_softmax(1), i64.float().norm(), f32.max(1).values, bf16.min(0).indices)

    return Program(Function(forward), of_all_dtypes(4, 3), mixed=True)


@program("k", small=True)
def unary_on_integers():
    def forward(i64, i32, b, u8):
        return (i64.sqrt(), i32.exp(), b.sin(), u8.tanh(), i64.abs(), u8 + 250, u8 - 1, i32.sign(), i64.sigmoid(), u8.float(),
                i64.clamp(-1, 2), i32.clamp_min(0.5), i32.relu(), (i64 > 0).logical_not(), i64.reciprocal(), u8 // 3, i32.neg())

    return Program(Function(forward), (torch.arange(-2, 3), torch.arange(-1, 4, dtype=torch.int32), torch.tensor([True, False]),
                                       torch.tensor([0, 3, 250], dtype=torch.uint8)), mixed=True, gradient=False)


@program("k", small=True)
def mixed_training():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.low = nn.Linear(4, 8).bfloat16()
            self.high = nn.Linear(8, 2)

        def forward(self, x, weight):
            y = F.gelu(self.low(x.bfloat16()))
            return (self.high(y.float()) * weight).sum(), y

    return Program(Mixed(), (torch.randn(3, 4), torch.randn(3, 2, dtype=torch.float64)), mixed=True)


@program("k", small=True)
def half_precision_ops():
    def forward(x, y, w):
        z = x @ w + y
        z = F.layer_norm(z, (4,))
        return F.silu(z).sum(), z.exp().log1p(), F.softplus(x), x.rsqrt().nan_to_num(0.0), z.cumsum(1)

    return Program(Function(forward), (torch.rand(3, 4).half() + 0.5, torch.randn(4).half(), torch.randn(4, 4).half()), mixed=True)


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 4)

    def forward(self, x, labels):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = torch.relu(self.first(x))
            with torch.autocast("cpu", enabled=False):
                exact = self.second(hidden.float())
            return self.second(hidden), exact, F.cross_entropy(exact.bfloat16(), labels)


@program("k")
def autocast():
    return Program(Autocast(), (torch.randn(3, 4), torch.tensor([0, 3, 1])), mixed=True)


@program("l", small=True)
def no_grad_region():
    class Region(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3)
            self.b = nn.Linear(3, 3)

        def forward(self, x):
            y = self.a(x)
            with torch.no_grad():
                scale = y.abs().amax(-1, keepdim=True)
                frozen = self.b(y)
            return (y / scale + frozen + self.b(x)).sum()

    return Program(Region(), (torch.randn(2, 3),))


@program("l", small=True)
def nested_regions():
    def forward(x, y):
        with torch.no_grad():
            a = x * 2
            with torch.enable_grad():
                b = x * a
                with torch.no_grad():
                    c = b.exp()
                d = b + c
            e = d * y
        with torch.enable_grad():
            f = e + y * 3
        return (d + e + f * x).sum(), a, c

    return Program(Function(forward), (torch.randn(3), torch.randn(3)))


@program("l", small=True)
def writes_inside_a_region():
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.weight = nn.Parameter(torch.randn(3))

        def forward(self, x):
            y = x * self.weight
            with torch.no_grad():
                self.mean.lerp_(y.mean(0), 0.25)
                z = y.clone()
                z[0].zero_()
            return (y - self.mean + z).square().sum(), z

    return Program(Writes(), (torch.randn(4, 3),))


class Silent(nn.Module):
    """Counts its calls where autograd does not look."""

    def __init__(self, used):
        super().__init__()
        self.used = used
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        with torch.no_grad():
            self.count.add_(1)
        y = (x * x).sum()
        return y * self.count if self.used else y


@program("l", small=True)
def region_that_counts():
    return Program(Silent(used=True), (torch.randn(3),))


@program("l", small=True)
def region_without_outputs():
    return Program(Silent(used=False), (torch.randn(3),), reload=False)


@program("l", small=True)
def detached():
    def forward(x, y):
        z = x * y
        w = z.detach()
        return (z * w + x.detach() * y).sum(), w, w.detach().sum()

    return Program(Function(forward), (torch.randn(4), torch.randn(4)))


@program("l", small=True)
def straight_through():
    def forward(x, w):
        hard = (x > 0).to(x.dtype)
        soft = torch.sigmoid(x)
        return ((hard - soft).detach() + soft) @ w

    return Program(Function(forward), (torch.randn(3, 4), torch.randn(4)))


@program("l", small=True)
def update_hidden_from_autograd():
    def forward(x, state):
        y = x * 3
        state.detach().add_(y.detach().sum(0))
        return (y + state).sum(), state * 2

    return Program(Function(forward), (torch.randn(2, 3), torch.randn(3)))


@program("l", small=True)
def weight_update_under_no_grad():
    class Sgd(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3))
            self.other = nn.Parameter(torch.randn(3))

        def forward(self, x, step):
            with torch.no_grad():
                self.weight.sub_(step * 0.1)
            return (x + self.weight).mul(self.other).sum()

    return Program(Sgd(), (torch.randn(2, 3), torch.randn(3)))


@program("l", small=True)
def inference_style():
    class NoGrad(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        @torch.no_grad()
        def forward(self, x):
            return self.layer(x).relu()

    return Program(NoGrad(), (torch.randn(2, 3),), gradient=False)


@program("l", small=True)
def view_made_under_no_grad():
    def forward(x):
        y = x.exp()
        with torch.no_grad():
            row = y[0]
            y[1:].mul_(2)
        return (row * y.sum(0)).sum(), row

    return Program(Function(forward), (torch.randn(3, 4),), gradient=False)
