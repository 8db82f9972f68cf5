"""o: programs in the style of PyTorch's own tests of export: odd trees, control flow within control flow, sizes from data,
numbers that loops carry, higher-order operators that few use."""

import collections
import dataclasses
import typing

import torch
from torch import nn
from torch._higher_order_ops import associative_scan, cond, scan, while_loop
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.strict_mode import strict_mode
from torch.export import Dim
from torch.nn.modules import linear_cross_entropy  # noqa: F401 (its operators)
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions
from torch.utils._pytree import register_dataclass

from programs import Function, Program, program


def of(forward, *args, **options):
    return Program(Function(forward), args, **options)


# Trees of arguments and results.

class Point(typing.NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


Segment = collections.namedtuple("Segment", ["start", "end"])


@dataclasses.dataclass
class Sample:
    image: torch.Tensor
    label: torch.Tensor
    weight: typing.Optional[torch.Tensor] = None


register_dataclass(Sample, serialized_type_name="tenon_test.Sample")
torch.utils._pytree._register_namedtuple(Point, serialized_type_name="tenon_test.Point")
torch.utils._pytree._register_namedtuple(Segment, serialized_type_name="tenon_test.Segment")


@program("o")
def named_tuples():
    def forward(p, scale):
        return Point(p.x * scale, p.y - p.x)

    return of(forward, Point(torch.randn(3), torch.randn(3)), torch.tensor(2.0))


@program("o")
def named_tuples_of_named_tuples():
    def forward(s):
        return {"length": ((s.end.x - s.start.x) ** 2 + (s.end.y - s.start.y) ** 2).sqrt(), "back": Segment(s.end, s.start)}

    return of(forward, Segment(Point(torch.randn(2), torch.randn(2)), Point(torch.randn(2), torch.randn(2))))


@program("o")
def dataclass_input():
    def forward(sample):
        return sample.image.sum(0) * sample.label, sample.weight

    return of(forward, Sample(torch.randn(2, 3), torch.tensor([1.0, 0.0, 1.0])))


@program("o")
def dataclass_output():
    def forward(x):
        return Sample(image=x * 2, label=x.argmax(), weight=None), [x.sum()]

    return of(forward, torch.randn(4))


@program("o")
def list_of_dataclasses():
    def forward(samples, *, factor):
        return sum((s.image * s.label for s in samples), torch.zeros(3)) * factor

    return Program(Function(forward), ([Sample(torch.randn(3), torch.tensor(1.0)), Sample(torch.randn(3), torch.tensor(2.0))],),
                   {"factor": torch.tensor(0.5)})


@program("o")
def ordered_dicts_within():
    def forward(d):
        return collections.OrderedDict(z=d["b"]["y"] + d["a"], a=d["b"]["x"] * 2)

    return of(forward, collections.OrderedDict(b=collections.OrderedDict(y=torch.randn(2), x=torch.randn(2)), a=torch.randn(2)))


@program("o")
def default_dicts():
    def forward(d):
        out = collections.defaultdict(list)
        for key, values in d.items():
            out[key] = [v * 2 for v in values]
        return out

    d = collections.defaultdict(list)
    d["one"].append(torch.randn(2))
    d["two"] += [torch.randn(3), torch.randn(1)]
    return of(forward, d)


@program("o")
def deques():
    def forward(q):
        return collections.deque([q[0] + q[1], q[1] * 3], maxlen=4), q[-1]

    return of(forward, collections.deque([torch.randn(2), torch.randn(2), torch.randn(1)]))


@program("o")
def none_everywhere():
    def forward(x, nothing, pair, *, mask=None, other=None):
        y = x if mask is None else x * mask
        return None, y + pair[1], (None, [None, y.sum()])

    return Program(Function(forward), (torch.randn(3), None, (None, torch.randn(3))), {"mask": torch.tensor([1.0, 0.0, 1.0])})


@program("o")
def empty_containers():
    def forward(x, empty, table):
        return x + 1, [], {}, (), len(empty)

    return of(forward, torch.randn(2), [], {})


@program("o")
def numbers_and_strings_among_inputs():
    def forward(x, count, factor, flag, mode):
        y = x * count + factor
        return y.relu() if flag and mode == "relu" else y

    return of(forward, torch.randn(3), 3, 0.5, True, "relu")


@program("o")
def keyword_only_and_defaults():
    def forward(x, y=None, *, scale=2.0, shift, **rest):
        out = x * scale + shift
        return out + rest["extra"] if "extra" in rest else out

    return Program(Function(forward), (torch.randn(3),), {"shift": torch.randn(3), "extra": torch.randn(3)})


@program("o")
def many_positional():
    def forward(first, *others):
        return sum((o * (i + 1) for i, o in enumerate(others)), first)

    return of(forward, torch.randn(2), torch.randn(2), torch.randn(2), torch.randn(2))


@program("o")
def the_same_tensor_twice():
    x = torch.randn(3)
    return of(lambda a, b: (a * b, a), x, x)


@program("o")
def an_input_as_output():
    return of(lambda x, y: (x, [y, x + y], {"x": x}), torch.randn(2), torch.randn(2))


@program("o")
def a_constant_as_output():
    class Constant(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.arange(4.0)
            self.weight = nn.Parameter(torch.randn(4))

        def forward(self, x):
            return self.weight, self.table, x * self.weight, 3, "text", 1.5

    return Program(Constant(), (torch.randn(4),), reload=False, gradient=False)  # PyTorch does not read a string among the results


@program("o")
def sizes_of_a_tree():
    def forward(d):
        a, b = d["pair"]
        return {"n": a.shape[0] + b.shape[0], "cat": torch.cat([a, b])}

    rows, columns = Dim("rows", min=2, max=10), Dim("columns", min=2, max=10)
    return of(forward, {"pair": (torch.randn(3, 2), torch.randn(5, 2))}, dynamic_shapes=({"pair": ({0: rows}, {0: columns})},),
              more=[(({"pair": (torch.randn(4, 2), torch.randn(2, 2))},), {})])


@program("o")
def derived_dimensions():
    n = Dim("n", min=2, max=10)
    return of(lambda x, y: (x + y[1:], y.shape[0]), torch.randn(4), torch.randn(5), dynamic_shapes=({0: n}, {0: n + 1}),
              more=[((torch.randn(6), torch.randn(7)), {})])


@program("o")
def automatic_dimensions():
    return of(lambda x, y: x.reshape(-1) @ y.reshape(-1) / x.shape[0], torch.randn(3, 4), torch.randn(4, 3),
              dynamic_shapes=((Dim.AUTO, Dim.AUTO), (Dim.AUTO, Dim.AUTO)), more=[((torch.randn(6, 4), torch.randn(3, 8)), {})])


@program("o")
def a_number_that_is_dynamic():
    return of(lambda x, n: x[:n].sum() + n, torch.randn(9), 4, dynamic_shapes=(None, Dim.DYNAMIC), more=[((torch.randn(9), 7), {})])


# Sizes that the data decide.

@program("o")
def nonzero_then_sum():
    return of(lambda x: (x.nonzero().float().sum(), x.nonzero().shape[0]), torch.tensor([0.0, 1.0, 0.0, 2.0]), gradient=False,
              more=[((torch.tensor([1.0, 1.0, 1.0, 0.0]),), {})])


@program("o")
def masked_rows():
    return of(lambda x, m: x[m].sum(0) * 2, torch.randn(5, 3), torch.tensor([True, False, True, True, False]),
              more=[((torch.randn(5, 3), torch.tensor([False] * 4 + [True])), {})])


@program("o")
def item_as_a_size():
    def forward(n):
        size = n.item()
        torch._check(size >= 2)
        torch._check(size <= 20)
        return torch.arange(size).float().cos() * size

    return of(forward, torch.tensor(5), more=[((torch.tensor(9),), {})], gradient=False)


@program("o")
def narrow_by_items():
    def forward(x, at):
        start, length = at.tolist()
        torch._check(start >= 0)
        torch._check(length >= 1)
        torch._check(start + length <= x.shape[0])
        return x.narrow(0, start, length).sum(0)

    return of(forward, torch.randn(8, 2), torch.tensor([2, 3]), more=[((torch.randn(8, 2), torch.tensor([0, 8])), {})])


@program("o")
def split_by_items():
    def forward(x, counts):
        parts = counts.tolist()
        for p in parts:
            torch._check(p >= 0)
        torch._check(sum(parts) == x.shape[0])
        a, b, c = torch.split(x, parts)
        return a.sum() + 2 * b.sum() + 3 * c.sum()

    return of(forward, torch.randn(6, 2), torch.tensor([1, 2, 3]), more=[((torch.randn(6, 2), torch.tensor([4, 0, 2])), {})])


@program("o")
def unique_values():
    return of(lambda x: torch.unique(x).sum() * 2, torch.tensor([3, 1, 3, 2]), gradient=False, more=[((torch.tensor([1, 1, 1, 1]),), {})])


@program("o")
def repeat_interleave_by_data():
    return of(lambda x, n: x.repeat_interleave(n, dim=0).cumsum(0)[-1], torch.randn(3, 2), torch.tensor([1, 2, 0]))


@program("o")
def a_branch_on_an_item():
    def forward(x, n):
        size = n.item()
        torch._check(size >= 0)
        torch._check(size <= x.shape[0])
        return cond(size > 2, lambda v: v * 2, lambda v: v.sin(), (x[:size].sum(),))

    return of(forward, torch.randn(6), torch.tensor(4), more=[((torch.randn(6), torch.tensor(1)), {})])


@program("o")
def sizes_of_data_in_both_branches():
    def forward(x):
        return cond(x.sum() > 0, lambda v: v[v > 0].sum(), lambda v: v[v < 0].abs().max(), (x,))

    return of(forward, torch.randn(7), more=[((-torch.rand(7),), {}), ((torch.rand(7),), {})])


@program("o")
def dynamic_sizes_within_a_branch():
    return of(lambda x: cond(x.shape[0] > 4, lambda v: v.reshape(v.shape[0] * 2).sin(), lambda v: v.reshape(-1) * 2, (x,)).sum(),
              torch.randn(3, 2), dynamic_shapes=({0: Dim("rows", min=2, max=9)},), more=[((torch.randn(6, 2),), {})])


# Control flow.

@program("o")
def condition_without_operands():
    def forward(x):
        return cond(x.sum() > 0, lambda: x * 2, lambda: x - 1, ())

    return of(forward, torch.randn(3), more=[((torch.rand(3),), {})])


@program("o")
def condition_on_a_boolean_input():
    return of(lambda flag, x: cond(flag, lambda v: (v.sin(), v * 2), lambda v: (v.cos(), v + 1), (x,)), torch.tensor(True), torch.randn(3),
              more=[((torch.tensor(False), torch.randn(3)), {})])


@program("o")
def condition_over_trees():
    def forward(x, d):
        return cond(x.mean() > 0, lambda v, t: {"a": v + t["k"][0], "b": [t["k"][1] + 0]},
                    lambda v, t: {"a": v - t["k"][1], "b": [t["k"][0] * 2]}, (x, d))

    return of(forward, torch.randn(3), {"k": (torch.randn(3), torch.randn(3))}, more=[((torch.rand(3), {"k": (torch.randn(3), torch.randn(3))}), {})])


@program("o")
def condition_of_different_strides():
    return of(lambda x: cond(x.sum() > 0, lambda v: v.t().contiguous(), lambda v: v.t().clone(memory_format=torch.contiguous_format) + 1, (x,)) * 2,
              torch.randn(2, 3), more=[((torch.rand(2, 3),), {})])


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3)), nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)

    def forward(self, x, gate):
        y = cond(gate > 0.5, lambda v: self.a(self.norm(v)), lambda v: cond(gate > 0.25, self.b, lambda u: u * 0.5, (v,)), (x,))
        return y + x


@program("o")
def experts():
    return Program(Experts(), (torch.randn(2, 3), torch.tensor(0.7)),
                   more=[((torch.randn(2, 3), torch.tensor(0.3)), {}), ((torch.randn(2, 3), torch.tensor(0.1)), {})])


@program("o")
def loop_within_a_condition():
    def doubled(v):
        return while_loop(lambda i, u: i < 3, lambda i, u: (i + 1, u * 2), (torch.zeros((), dtype=torch.int64), v))[1]

    return of(lambda x: cond(x.sum() > 0, doubled, lambda v: v.exp(), (x,)), torch.randn(3), more=[((torch.rand(3),), {})])


@program("o")
def condition_within_a_loop():
    def body(i, v):
        return i + 1, cond(i % 2 == 0, lambda u: u + 1, lambda u: u * 0.5, (v,))

    return of(lambda x: while_loop(lambda i, v: i < 5, body, (torch.zeros((), dtype=torch.int64), x))[1], torch.randn(3))


@program("o")
def loops_within_loops():
    def inner(v):
        return while_loop(lambda j, u: j < 2, lambda j, u: (j + 1, u * 1.5), (torch.zeros((), dtype=torch.int64), v))[1]

    return of(lambda x: while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, inner(v) + i), (torch.zeros((), dtype=torch.int64), x))[1], torch.randn(3))


@program("o")
def loop_over_a_tree():
    def forward(x, y):
        out = while_loop(lambda t, n: n < 3, lambda t, n: ({"a": t["b"] + 1, "b": t["a"] * 2}, n + 1), ({"a": x, "b": y}, torch.zeros((), dtype=torch.int64)))
        return out[0]["a"] + out[0]["b"]

    return of(forward, torch.randn(2), torch.randn(2))


@program("o")
def loop_that_never_runs():
    # PyTorch differentiates a round that was not run
    return of(lambda x: while_loop(lambda v: v.sum() > 1e9, lambda v: (v * 2,), (x,))[0] + 1, torch.randn(3), gradient=False)


@program("o")
def loop_with_dynamic_sizes():
    return of(lambda x: while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + v.shape[0]), (torch.zeros((), dtype=torch.int64), x))[1], torch.randn(4, 2),
              dynamic_shapes=({0: Dim("rows", min=2, max=9)},), more=[((torch.randn(6, 2),), {})])


@program("o")
def map_over_trees():
    def forward(t, k):
        return map_rows(lambda row, s: {"sum": row["a"] + row["b"] * s, "a": row["a"].sin()}, t, k)

    return of(forward, {"a": torch.randn(3, 2), "b": torch.randn(3, 2)}, torch.tensor(2.0))


@program("o")
def map_within_map():
    return of(lambda x: map_rows(lambda row: map_rows(lambda e: e * e + 1, row), x), torch.randn(2, 3, 2))


@program("o")
def scan_over_trees():
    def step(carry, row):
        total = carry["total"] + row[0]
        return {"total": total, "last": row[1] * 1}, (total * 2, row[1].sum())

    def forward(total, last, xs, ys):
        end, (a, b) = scan(step, {"total": total, "last": last}, (xs, ys))
        return end["total"] + end["last"].sum(), a, b

    return of(forward, torch.zeros(2), torch.zeros(3), torch.randn(4, 2), torch.randn(4, 3))


@program("o")
def scan_within_scan():
    def forward(h, x):
        def outer(carry, row):
            end, ys = scan(lambda c, e: (c + e, c * e), carry, row)
            return end, ys.sum(0)

        return scan(outer, h, x)

    return of(forward, torch.zeros(2), torch.randn(3, 4, 2))


@program("o")
def scan_of_integers():
    return of(lambda x: scan(lambda c, r: (c + r, c * 1), torch.zeros((), dtype=torch.int64), x), torch.tensor([1, 2, 3, 4]), gradient=False)


@program("o")
def associative_scan_of_products():
    return of(lambda x: associative_scan(lambda a, b: a * b, x, 1, combine_mode="pointwise"), torch.randn(3, 4), gradient=False)


@program("o")
def associative_scan_over_pairs():
    def combine(a, b):
        return {"gate": a["gate"] * b["gate"], "value": a["value"] * b["gate"] + b["value"]}

    return of(lambda g, v: associative_scan(combine, {"gate": g, "value": v}, 0, combine_mode="pointwise")["value"],
              torch.rand(6, 3), torch.randn(6, 3), gradient=False)


@program("o")
def hints_within_hints():
    def inner(a):
        return hints_wrapper(lambda b: b.sin() * 2, (a,), {}, hints={"inner": 1})

    return of(lambda x: hints_wrapper(lambda a: inner(a) + a, (x,), {}, hints={"outer": True}), torch.randn(3))


@program("o")
def strict_within_a_condition():
    return of(lambda x: cond(x.sum() > 0, lambda v: strict_mode(lambda u: (u * 2 + 1,), (v,))[0], lambda v: v.tanh(), (x,)), torch.randn(3),
              more=[((torch.rand(3),), {})], gradient=False)  # PyTorch loses the gradient of a strict region


@program("o")
def a_marked_region():
    from torch.compiler import nested_compile_region

    @nested_compile_region
    def block(x, w):
        return (x @ w).relu() + x

    return of(lambda x, w: block(block(x, w), w).sum(0), torch.randn(2, 3), torch.randn(3, 3))


# Random draws.

@program("o")
def draws_within_a_loop():
    return of(lambda x: while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + torch.rand_like(v)), (torch.zeros((), dtype=torch.int64), x))[1], torch.randn(3),
              random=True, gradient=False)


@program("o")
def draws_within_a_branch():
    return of(lambda x: cond(x.sum() > 0, lambda v: v + torch.randn_like(v), lambda v: v * torch.rand(3), (x,)), torch.randn(3), random=True, gradient=False)


@program("o")
def draws_within_a_scan():
    def step(carry, row):
        noisy = carry + row + torch.randn(2)
        return noisy, noisy * 2

    return of(lambda h, x: scan(step, h, x), torch.zeros(2), torch.randn(4, 2), random=True, gradient=False)


@program("o")
def dropout_within_a_branch():
    return of(lambda x: cond(x.sum() > 0, lambda v: nn.functional.dropout(v, 0.5, True), lambda v: v * 2, (x,)), torch.rand(8), random=True, gradient=False)


# State.

class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        self.calls.add_(1)
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return cond(self.calls > 1, lambda v, m: v - m, lambda v, m: v + m, (x, self.mean))


@program("o")
def state_beside_a_condition():
    return Program(Counting(), (torch.randn(4, 3),))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight

    def forward(self, x):
        return scan(lambda c, r: (torch.tanh(self.a(c) + self.b(r)), c * 1), torch.zeros(3), x)


@program("o")
def tied_weights_in_a_scan():
    return Program(Tied(), (torch.randn(4, 3),))


@program("o")
def sub_modules_in_lists():
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
            self.named = nn.ModuleDict({"norm": nn.LayerNorm(3), "gate": nn.Linear(3, 1)})

        def forward(self, x):
            for layer in self.layers:
                x = self.named["norm"](layer(x).relu() + x)
            return x * self.named["gate"](x).sigmoid()

    return Program(Stack(), (torch.randn(2, 3),))


@program("o")
def writes_through_views():
    def forward(x):
        y = x.clone()
        y[1:, ::2] = 0
        y.t()[0].add_(1)
        y.view(-1)[3:5].mul_(2)
        return y

    return of(forward, torch.randn(3, 4))


@program("o")
def assertions():
    def forward(x, n):
        torch._assert(x.shape[0] > 1, "too few rows")
        torch._assert_async((x > -100).all(), "too small")
        return x * n

    return of(forward, torch.randn(3), torch.tensor(2.0))


# Batches, other dtypes of results, sizes that PyTorch writes in unusual ways.

@program("o")
def vmap_of_products():
    return of(lambda x, y: torch.vmap(lambda a, b: (a * b).sum())(x, y), torch.randn(3, 4), torch.randn(3, 4))


@program("o")
def vmap_along_other_dimensions():
    def forward(x, w):
        return torch.vmap(lambda column, v: (column * w).sin() + v, in_dims=(1, None))(x, w)

    return of(forward, torch.randn(3, 4), torch.randn(3))


@program("o")
def vmap_within_vmap():
    return of(lambda x: torch.vmap(torch.vmap(lambda e: e * e + 1))(x).sum(0), torch.randn(2, 3))


@program("o")
def associative_scan_of_matrices():
    return of(lambda x: associative_scan(lambda a, b: a @ b, x, 0, combine_mode="generic"), torch.randn(5, 2, 2))


@program("o")
def associative_scan_from_the_end():
    return of(lambda x: associative_scan(lambda a, b: a * b + b * 0.1, x, 1, reverse=True, combine_mode="generic"), torch.rand(2, 5))


@program("o")
def products_of_another_dtype():
    from torch._higher_order_ops.out_dtype import out_dtype
    return of(lambda x, w: out_dtype(torch.ops.aten.mm.default, torch.int32, x, w),
              torch.randint(-100, 100, (3, 4), dtype=torch.int8), torch.randint(-100, 100, (4, 2), dtype=torch.int8), gradient=False)


@program("o")
def views_of_dynamic_views():
    sizes = {0: Dim("a", max=9), 1: Dim("b", max=9), 2: Dim("c", max=9)}
    return of(lambda x: x.view(-1, x.shape[-1]).view(x.shape[0], -1).flip(0), torch.randn(2, 3, 4), dynamic_shapes=(sizes,),
              more=[((torch.randn(3, 2, 5),), {})])


@program("o")
def combinations_of_any_number():
    return of(lambda x: torch.combinations(x).prod(1), torch.randn(4), dynamic_shapes=({0: Dim("n", min=3, max=20)},),
              more=[((torch.randn(6),), {})])


@program("o")
def a_size_times_a_number():
    sizes = {0: Dim("n", max=20), 1: Dim("m", max=20)}
    return of(lambda x: torch.full((x.shape[0], x.shape[1] + 1), x.shape[0] * 1.5) + nn.functional.pad(x, (1, 0)), torch.randn(3, 4),
              dynamic_shapes=(sizes,), more=[((torch.randn(2, 6),), {})])


@program("o")
def printing():
    from torch._higher_order_ops import print as printed

    def forward(x, n):
        printed("x {} of {n:.3f}, {{{}}}", x, x.sum(), n=x[0])
        count = n.item()
        printed("count {:>4} of {}", count, x.shape[0])
        return x * 2

    return of(forward, torch.randn(3), torch.tensor(4), dynamic_shapes=({0: Dim("n", max=9)}, None), more=[((torch.randn(5), torch.tensor(7)), {})])


# Derivatives within a program.

@program("o")
def tokens_made_within():
    def forward(x):
        token = torch.ops.prims._make_token()
        y = x + 1
        torch.ops.prims._sink_tokens([token])
        return y * 2

    return of(forward, torch.randn(3))


@program("o")
def a_direction():
    return of(lambda x, t: torch.func.jvp(lambda v: v.sin() * v, (x,), (t,)), torch.randn(3), torch.randn(3))


@program("o")
def a_direction_of_two():
    def inner(a, b):
        y = (a @ b).tanh()
        return y, (y * a.sum()).mean()

    def forward(a, b, s, t):
        (y, m), (dy, dm) = torch.func.jvp(inner, (a, b), (s, t))
        return dy.sum() + dm, y, m

    return of(forward, torch.randn(2, 3), torch.randn(3, 2), torch.randn(2, 3), torch.randn(3, 2))


@program("o")
def a_direction_and_something_beside_it():
    return of(lambda x, t: torch.func.jvp(lambda v: (v.exp() * v.sum(), v * 2), (x,), (t,), has_aux=True), torch.randn(3), torch.randn(3))


# Objects of the user's own, numbers that become tensors, tensors that are resized.

class Holder:
    def __init__(self, items):
        self.items = items


torch.utils._pytree.register_pytree_node(
    Holder, lambda h: (list(h.items.values()), list(h.items)), lambda values, keys: Holder(dict(zip(keys, values))),
    serialized_type_name="tenon_test.Holder",
    flatten_with_keys_fn=lambda h: ([(torch.utils._pytree.MappingKey(k), v) for k, v in h.items.items()], list(h.items)))


@program("o")
def containers_of_the_user():
    return of(lambda h: Holder({"sum": h.items["x"] + h.items["y"]}), Holder({"x": torch.randn(2), "y": torch.randn(2)}))


@program("o")
def a_tensor_of_sizes():
    return of(lambda x: torch.tensor([x.shape[0], x.shape[1]]) + x.sum().long(), torch.randn(3, 2),
              dynamic_shapes=({0: Dim("n", max=9), 1: Dim("m", max=9)},), more=[((torch.randn(4, 5),), {})], gradient=False)


@program("o")
def lists_of_tensors():
    def forward(a, b):
        x = [a.clone(), b.clone()]
        torch._foreach_add_(x, [b, a], alpha=2)
        torch._foreach_mul_(x, 0.5)
        y = torch._foreach_addcmul(x, [a, b], [b, a], [0.1, 0.2])
        z = torch._foreach_maximum(torch._foreach_lerp(y, x, 0.3), 0.1) + torch._foreach_norm([a, b]) + torch._foreach_pow(torch._foreach_abs(y), 2)
        return sum(v.sum() for v in z), *z

    return of(forward, torch.randn(3), torch.randn(3))


@program("o")
def resized():
    def forward(x, y):
        flat = x.clone().resize_(6)
        return flat * 2, y.clone().resize_as_(x), x.sin().resize_(2, 2)

    return of(forward, torch.randn(2, 3), torch.randn(3, 2), gradient=False)


@program("o")
def diagonals_filled():
    def forward(x):
        y = x.clone()
        y.diagonal(1).add_(10)
        tall = x.repeat(3, 1).fill_diagonal_(2, wrap=True)
        return y.fill_diagonal_(0), tall

    return of(forward, torch.randn(3, 3))


@program("o")
def a_branch_on_the_truth_of_data():
    return of(lambda x, flag: cond(flag.item(), lambda v: v + 1, lambda v: v - 1, (x,)), torch.randn(3), torch.tensor(True),
              more=[((torch.randn(3), torch.tensor(False)), {})])


@program("o")
def unique_rows_that_follow_each_other():
    return of(lambda x: torch.unique_consecutive(x, dim=0) * 2, torch.tensor([1.0, 1.0, 2.0, 1.0]), gradient=False)


# Losses that PyTorch computes a chunk at a time, sizes that a branch calls by another name.

class Chunked(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(5, 3)), nn.Parameter(torch.randn(5))

    def forward(self, x, t, p):
        options = LinearCrossEntropyOptions(batch_chunk_size=2)
        chunked = nn.functional.linear_cross_entropy
        loss = chunked(x, self.w, t, linear_bias=self.b, options=options, ignore_index=2)
        each = chunked(x, self.w, t, reduction="none", options=options, ignore_index=2)
        soft = chunked(x, self.w, p.detach(), reduction="sum", options=options)
        return loss + each.sin().sum() + soft, each


@program("o")
def loss_in_chunks():
    """The export writes down that no gradient was asked for of what did not require one."""
    return Program(Chunked(), (torch.randn(4, 3), torch.tensor([0, 1, 4, 2]), torch.rand(4, 5)))


@program("o")
def a_branch_over_a_size_from_data():
    def forward(x, k):
        size = k.item()
        torch._check(size >= 2)
        torch._check(size <= x.shape[0])
        return cond(x.sum() > 0, lambda v: v.sin() * v, lambda v: v.cos(), (x[:size],))

    return of(forward, torch.randn(6), torch.tensor(3), more=[((torch.rand(6), torch.tensor(5)), {})])


@program("o")
def rows_selected_by_a_mask():
    class Selected(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.norm = nn.Linear(3, 4), nn.LayerNorm(4)

        def forward(self, x, mask):
            return self.norm(self.layer(x[mask])).softmax(-1).sum(0).cos()

    return Program(Selected(), (torch.randn(5, 3), torch.tensor([True, False, True, True, False])),
                   more=[((torch.randn(5, 3), torch.ones(5, dtype=torch.bool)), {})])


@program("o")
def cache_written_at_places():
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(2, 8, 3))
            self.register_buffer("written", torch.tensor(0))
            self.layer = nn.Linear(3, 3)

        def forward(self, x, at):
            self.keys[:, at] = self.layer(x).detach()
            self.written.add_(at.numel())
            return (self.keys @ x.transpose(1, 2)).sum((1, 2)) * self.written

    return Program(Cache(), (torch.randn(2, 2, 3), torch.tensor([3, 5])), more=[((torch.randn(2, 2, 3), torch.tensor([0, 1])), {})])


@program("o")
def conditions_of_scanned_rows_with_parameters():
    class Switching(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, h, x):
            def step(carry, row):
                return cond(row.sum() > 0, lambda c, r: torch.tanh(self.up(c) + r), lambda c, r: torch.tanh(self.down(c) - r),
                            (carry, row)), carry * 2
            return scan(step, h, x)

    return Program(Switching(), (torch.randn(2), torch.randn(5, 2)))
