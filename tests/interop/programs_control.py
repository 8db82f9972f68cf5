"""n: control flow, as the newest PyTorch exports it: torch.cond, while_loop, map, scan, associative_scan, and graphs within graphs."""

import torch
from torch import nn
from torch._higher_order_ops import associative_scan, cond, scan, while_loop
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.strict_mode import strict_mode
from torch.export import Dim

from programs import Function, Program, program


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 2), nn.Linear(3, 2)
        self.register_buffer("scale", torch.tensor([0.5, 2.0]))

    def forward(self, x):
        y, total = cond(x.sum() > 0, lambda v: (self.a(v).tanh(), v.sum()), lambda v: (self.b(v) * self.scale, v.mean()), (x,))
        return y * 2 + total, total


@program("n", small=True)
def condition_that_holds():
    return Program(Branches(), (torch.rand(4, 3),))


@program("n", small=True)
def assertion_on_all_elements():
    def forward(x):
        torch._check_tensor_all(x > -100, lambda: "too low")
        return x * 2

    return Program(Function(forward), (torch.randn(4),))


@program("n")
def condition_that_does_not_hold():
    return Program(Branches(), (-torch.rand(4, 3),))


@program("n", small=True)
def condition_on_a_size():
    def forward(x):
        return cond(x.shape[0] > 3, lambda v: v.sin() * 2, lambda v: v.cos(), (x,))

    return Program(Function(forward), (torch.randn(5, 2),), dynamic_shapes=({0: Dim("rows", min=2, max=9)},),
                   more=[((torch.randn(3, 2),), {})])


@program("n")
def conditions_within_conditions():
    def inner(v):
        return cond(v[0] > 0, lambda u: u * u, lambda u: u.exp(), (v,))

    def forward(x):
        return cond(x.sum() > 0, lambda v: inner(v) + v, lambda v: inner(-v).sin(), (x,))

    return Program(Function(forward), (torch.randn(4),), more=[((-torch.rand(4),), {}), ((torch.rand(4),), {})])


@program("n", small=True)
def sizes_within_a_branch():
    def forward(x):
        return cond(x.sum() > -100, lambda v: v[v > 0].sum() * 2, lambda v: v.sum(), (x,))

    return Program(Function(forward), (torch.randn(3, 4),))


class Repeated(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, count, x):
        rounds, y = while_loop(lambda i, v: i < count, lambda i, v: (i + 1, self.layer(v).tanh()), (torch.zeros((), dtype=torch.int64), x))
        return y * 3, rounds


@program("n", small=True)
def loop():
    return Program(Repeated(), (torch.tensor(3), torch.randn(2, 4)))


@program("n")
def loop_until_data_say_so():
    def forward(x):
        (y,) = while_loop(lambda v: v.norm() < 10, lambda v: (v * 1.5 + 0.1,), (x,))
        return y

    return Program(Function(forward), (torch.randn(3),), more=[((torch.full((3,), 0.01),), {})])


class Mapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 5)

    def forward(self, x, shift):
        return map_rows(lambda row, s: (self.layer(row) + s).relu(), x, shift)


@program("n", small=True)
def map_over_rows():
    return Program(Mapped(), (torch.randn(4, 2, 3), torch.randn(5)), dynamic_shapes=({0: Dim("rows", min=2, max=20)}, None),
                   more=[((torch.randn(7, 2, 3), torch.randn(5)), {})])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.input = nn.Linear(4, 4), nn.Linear(3, 4)

    def forward(self, h, x):
        def step(carry, row):
            carry = (self.hidden(carry) + self.input(row)).tanh()
            return carry, carry * row.sum()

        last, outputs = scan(step, h, x, dim=0)
        return outputs.cos() + last, last


@program("n", small=True)
def scan_of_a_cell():
    return Program(Recurrent(), (torch.randn(2, 4), torch.randn(5, 2, 3)), dynamic_shapes=(None, {0: Dim("steps", min=2, max=20)}),
                   more=[((torch.randn(2, 4), torch.randn(9, 2, 3)), {})])


@program("n")
def scan_backwards_along_a_dimension():
    def forward(h, x):
        last, outputs = scan(lambda carry, row: (carry * 0.5 + row, carry - row), h, x, dim=1, reverse=True)
        return outputs * last[:, None], last

    return Program(Function(forward), (torch.randn(3), torch.randn(3, 4)))


class ScannedConditions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, h, x):
        def step(carry, row):
            carry = cond(row.sum() > 0, lambda c, r: self.layer(c) + r, lambda c, r: c * 0.5 - r, (carry, row))
            return carry, carry.sin()

        last, outputs = scan(step, h, x, dim=0)
        return outputs + last, last


@program("n", small=True)
def conditions_within_a_scan():
    return Program(ScannedConditions(), (torch.randn(3), torch.randn(6, 3)))


@program("n")
def maps_within_a_condition():
    def forward(x):
        return cond(x.mean() > -10, lambda v: map_rows(lambda row: row.cumsum(0), v), lambda v: v * 2, (x,))

    return Program(Function(forward), (torch.randn(3, 4),))


@program("n", small=True)
def associative_scan_of_sums():
    def forward(x):
        return associative_scan(lambda a, b: a + b, x, 0, combine_mode="pointwise").tanh()

    return Program(Function(forward), (torch.randn(5, 3),), gradient=False)


@program("n")
def hints():
    def forward(x, y):
        return hints_wrapper(lambda a, b: (a + b).relu(), (x, y), {}, hints={"outer": True})

    return Program(Function(forward), (torch.randn(3, 4), torch.randn(3, 4)))


@program("n")
def words_about_a_quantization():
    from torch._higher_order_ops import invoke_quant_packed

    def forward(x, y):
        return invoke_quant_packed(lambda a, b: (a.sin() * b, a + b), x, y)[0] * 2
    return Program(Function(forward), (torch.randn(3, 4), torch.randn(4)))


@program("n")
def strict():
    def forward(x):
        sine, twice = strict_mode(lambda v: (v.sin() + 1, v * 2), (x,))
        return sine * twice, twice

    return Program(Function(forward), (torch.randn(3, 4),))
