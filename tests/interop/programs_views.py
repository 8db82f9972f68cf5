"""h: writes through overlapping views, mutated inputs, outputs that alias inputs and each other."""

import torch
from torch import nn
from torch.export import Dim

from programs import Function, Program, program


@program("h", small=True)
def overlapping_writes():
    def forward(x):
        base = x * 2
        rows = base[1:3]
        columns = base.t()
        flat = base.view(-1)
        cell = base.select(0, 1)
        rows.add_(1)
        columns[0].mul_(3)
        flat[5:9].sub_(0.5)
        cell.copy_(cell.flip(0))
        columns.narrow(0, 1, 2).neg_()
        return (base * rows.sum()).sum(), base, rows, columns, flat, cell

    return Program(Function(forward), (torch.randn(4, 5),))


@program("h", small=True)
def mutated_input():
    def forward(x, y):
        seen = x.sum()
        x.mul_(2)
        x[0].add_(y)
        y_view = y.view(1, -1)
        return x.sin().sum() + seen, x, y_view

    return Program(Function(forward), (torch.randn(3, 4), torch.randn(4)))


@program("h", small=True)
def outputs_that_are_inputs():
    def forward(x, y):
        return x, y, x, x.t(), x[..., 1:], y.unsqueeze(0).expand(3, 5), x.view(-1)[::2]

    return Program(Function(forward), (torch.randn(4, 3), torch.randn(5)))


@program("h", small=True)
def outputs_that_alias_each_other():
    def forward(x):
        y = x * 2
        a = y.view(6, 2)
        b = y.transpose(0, 1)
        c, d = y.chunk(2, 1)
        y[:, 2:].mul_(2)
        return y.mean(), a, b, c, d, y.detach(), y.unbind(0)

    return Program(Function(forward), (torch.randn(3, 4),))


@program("h", small=True)
def every_view():
    def forward(x):
        y = x.clone()
        y.diagonal(0, -2, -1).add_(10)
        y.unfold(1, 2, 2).mul_(0.5)
        y.permute(2, 0, 1)[1].zero_()
        y.movedim(0, -1).select(-1, 0).fill_(3)
        y.swapaxes(0, 2).squeeze().sub_(0.25)
        y.unsqueeze(0).flatten(1, 2)[0, ::3].clamp_(-1, 1)
        parts = y.split([1, 3], dim=1)
        y.narrow(1, 1, 3).div_(parts[0].detach() + 5)
        y.view(2, 2, 2, 4)[:, -1].neg_()
        y.as_strided((3, 4), (5, 1), 2).add_(0.25)
        y.reshape(8, 4)[torch.tensor([0, 3, 3])].add_(100)  # a copy: nothing is written
        y.mT.narrow(-1, 1, 2).mul_(1.5)
        return y.sum(), y, parts

    return Program(Function(forward), (torch.randn(2, 4, 4),))


@program("h", small=True)
def writes_to_parts():
    def forward(x):
        y = x.clone()
        first, second = y.chunk(2, 1)
        second.mul_(2)
        parts = y.split([1, 3], dim=0)
        parts[1].div_(first[:1, :1].abs() + 5)
        for row in y.unbind(1)[:2]:
            row.sigmoid_()
        return y.sum(), y, parts

    return Program(Function(forward), (torch.randn(4, 4),), gradient=False)  # eager autograd forbids such writes


@program("h", small=True)
def indexed_writes():
    def forward(x, mask, at):
        y = x.clone()
        y[mask] = -1.0
        y[at] += 2
        y[:, 1:3] = y[:, :2] * 3
        y[-1, ::2] = torch.arange(3, dtype=x.dtype)
        y.index_put_((at, at), torch.ones(3), accumulate=True)
        y.masked_fill_(y > 5, 5)
        y[..., None, -1][0] = 7
        z = y.t()
        z[at, 0] = y[0, at]
        return (y * x).sum(), y, z

    return Program(Function(forward), (torch.randn(4, 6), torch.rand(4, 6) > 0.7, torch.tensor([0, 2, 3])))


@program("h", small=True)
def read_after_each_write():
    def forward(x):
        y = x + 0
        v = y[1:]
        a = y.sum()
        v.mul_(2)
        b = y.sum()
        y.add_(1)
        c = v.sum()
        v[0].zero_()
        d = y.clone()
        y.t().add_(d.t())
        return a + b * 2 + c * 3, v, d, y

    return Program(Function(forward), (torch.randn(3, 4),))


@program("h", small=True)
def written_input_and_its_views_returned():
    def forward(x):
        first = x[0]
        x.add_(1)
        second = x[0]
        first.mul_(2)
        return x, first, second, x.t(), (first + second).sum()

    return Program(Function(forward), (torch.randn(2, 3),))


@program("h", small=True)
def shared_inputs():
    def forward(x, y):
        before = y.clone()
        x.mul_(2)
        return before.sum() + y.sum(), y - before, x + 1

    storage = torch.randn(12)
    return Program(Function(forward), (storage[:8].view(2, 4), storage[3:9]), gradient=False)


@program("h")
def input_turned_in_place():
    def forward(x, w):
        x.t_()
        return x * w

    return Program(Function(forward), (torch.randn(2, 3), torch.randn(3, 2)), gradient=False)  # grad: "cannot say"


@program("h")
def input_turned_and_written():
    def forward(x):
        rows = x[1:]
        x.t_()
        x[0].mul_(2)
        x.unsqueeze_(1).squeeze_(1).transpose_(0, 1)
        rows.add_(1)
        x.as_strided_((2, 2), (3, 1), 1)
        return x + 1, rows

    return Program(Function(forward), (torch.randn(2, 3),), gradient=False)


@program("h")
def input_turned_while_another_sees_it():
    def forward(x, y):
        x.t_()
        x[1].mul_(3)
        return x.sum(0), y * 2

    storage = torch.randn(12)
    return Program(Function(forward), (storage[:6].view(2, 3), storage[2:9]), gradient=False)


@program("h")
def input_given_another_storage():
    def forward(x, y):
        x.set_(y)
        return x * 2

    return Program(Function(forward), (torch.randn(2, 3), torch.randn(4)), gradient=False, refused="aten.set_.source_Tensor")


@program("h")
def input_made_smaller():
    def forward(x):
        x.resize_(2, 2)
        return x * 2

    return Program(Function(forward), (torch.randn(2, 3),), gradient=False)


@program("h", small=True)
def same_input_twice():
    def forward(x, y):
        x.add_(1)
        return x * y, y

    x = torch.randn(3)
    return Program(Function(forward), (x, x), gradient=False)


@program("h", small=True)
def strided_input_written():
    def forward(x):
        x[::2].mul_(-1)
        x.transpose(-1, -2).clamp_min_(-0.5)
        return x.amax(-1, keepdim=True), x.contiguous()

    return Program(Function(forward), (torch.randn(5, 4, 6).permute(2, 0, 1)[1:, :, ::2],))


@program("h")
def part_of_a_larger_tensor():
    """The stride of the input is a symbol of its own, without a range."""
    def forward(x):
        return x.transpose(0, 1).reshape(-1, 3).cumsum(0), x.sum(1)

    return Program(Function(forward), (torch.randn(4, 9, 3)[:, :5],), dynamic_shapes=({1: Dim.AUTO},))


@program("h", small=True)
def empty_views():
    def forward(x, y):
        z = y.clone()
        z[2:2].add_(1)
        z[5:].mul_(2)
        w = torch.cat([x, z[:0]], dim=0)
        w.add_(1)
        return z.sum() + w.sum(), w, z[1:1], x.view(0, 2, 2)

    return Program(Function(forward), (torch.randn(0, 4), torch.randn(3, 4)))


@program("h", small=True)
def dynamic_views():
    def forward(x):
        y = x.clone()
        y[1:].add_(y[:-1].clone())
        y.view(-1)[0].mul_(2)
        half = y[: y.size(0) // 2]
        half.zero_()
        return y.sum(), y, half, y.size(0)

    return Program(Function(forward), (torch.randn(6, 3),), dynamic_shapes=({0: 2 * Dim("half", min=2, max=32)},),
                   more=[((torch.randn(4, 3),), {}), ((torch.randn(10, 3),), {})])


@program("h", small=True)
def in_place_promotion():
    def forward(i, f, h):
        i.add_(3).mul_(2).bitwise_and_(7)
        f.add_(i).div_(2.5)
        h.copy_(f[:2]).sub_(0.5)
        f.lt_(0.3)
        return f.sum(), i, h

    return Program(Function(forward), (torch.arange(6), torch.randn(6), torch.randn(2, dtype=torch.float64)), mixed=True)


@program("h", small=True)
def channels_last_written():
    def forward(x):
        y = x / 2
        y[:, 0].add_(1)
        z = y.permute(0, 2, 3, 1)
        z[..., -1].mul_(2)
        return y.mean((-1, -2)), z, y

    return Program(Function(forward), (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),))


@program("h", small=True)
def write_then_expand():
    def forward(x, y):
        rows = y.expand(3, 4)
        y.mul_(2)
        x.add_(rows)
        wide = x.unsqueeze(1).expand(-1, 2, -1)
        x[0] = 0
        return (wide * rows.unsqueeze(1)).sum(), wide, rows

    return Program(Function(forward), (torch.randn(3, 4), torch.randn(4)))


@program("h")
def seen_another_way():
    def forward(x, y):
        a = x * 1
        rows = a[1:]
        a.t_().unsqueeze_(0)
        rows.add_(y)
        a.squeeze_(0).swapaxes_(0, 1)
        a[0] = 2
        b = a.clone().fill_diagonal_(3)
        return (a * b).sum(), a, rows, b.t().clone().fill_diagonal_(-1, wrap=True)

    return Program(Function(forward), (torch.randn(3, 7), torch.randn(7)))


@program("h")
def sizes_of_data():
    def forward(x, mask, counts):
        rows = x.repeat_interleave(counts, 0)
        y = x.clone()
        y[mask] = x[mask] * 3
        places = torch.where(mask)[0]
        return rows * 2, (y * y).sum(), x[places].mean(0) / x.shape[1] ** 0.5

    mask, counts = torch.tensor([True, False, True, False]), torch.tensor([2, 0, 1, 3])
    return Program(Function(forward), (torch.randn(4, 3), mask, counts), dynamic_shapes=({1: Dim("width")}, None, None),
                   more=[((torch.randn(4, 5), mask, counts), {})])


@program("h")
def inputs_of_another_layout():
    def forward(x):
        return x.permute(0, 2, 3, 1).reshape(2, -1) * 2

    return Program(Function(forward), (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),))


@program("h")
def rows_of_bounded_norm():
    return Program(nn.Embedding(7, 3, max_norm=0.5), (torch.tensor([[1, 3], [3, 6]]),))
