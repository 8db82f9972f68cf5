"""m: what files of older releases hold and those of the newest do not: retired operators, old forms of control flow."""

import torch
from torch import nn

from programs import Function, Program, program


@program("m", small=True, until=(2, 9))
def retired_operators():
    def forward(x):
        square = x @ x.mT + torch.eye(3)
        q, r = torch.qr(x, some=False)
        return torch.cholesky(square).sum() + torch.cholesky(square, True).exp().sum(), torch.qr(x.mT)[1].abs(), q.abs(), r.abs()

    return Program(Function(forward), (torch.randn(3, 4),), retired=True)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: self.a(v), lambda v: self.b(v) * 2, [x])


@program("m", small=True, until=(2, 9))
def condition():
    return Program(Branches(), (torch.randn(4, 3),), gradient=False)


@program("m", small=True, until=(2, 9))
def condition_of_two_results():
    def forward(x, y):
        first, second = torch.cond(x.sum() > 100, lambda u, v: (u + v, u * 3), lambda u, v: (u - v, u * 2), [x, y])
        return first * second

    return Program(Function(forward), (torch.randn(3), torch.randn(3)), gradient=False)


@program("m", small=True, until=(2, 9))
def infinities():
    def forward(x):
        return torch.clamp(x, -float("inf"), 0.5), x.masked_fill(x > 0, float("-inf")).softmax(-1), x + float("inf")

    return Program(Function(forward), (torch.randn(2, 5) - 1,), mixed=True, gradient=False)


@program("m", small=True, until=(2, 9))
def recurrent():
    return Program(nn.LSTM(3, 4, 2), (torch.randn(5, 2, 3),))  # these releases describe the states that it returns wrongly
