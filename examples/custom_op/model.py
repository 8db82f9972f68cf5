"""Programs that call the operators of mylib, exported by PyTorch:  model.py OUTDIR

model.pt2               with a buffer that is written and an effect, as export gives it
model_decomposed.pt2    the same after run_decompositions: auto_functionalized_v2, with_effects and a token
model_old.pt2           an operator that writes, behind the older auto_functionalized
positive.pt2            a result whose size depends on data
reference.npz           what PyTorch computes with them
"""

import pathlib
import sys

import numpy
import torch
from torch import Tensor, library, nn
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "interop"))
from strip import strip_program  # noqa: E402


@library.custom_op("mylib::scaled", mutates_args=())
def scaled(x: Tensor, factor: float) -> Tensor:
    return x * factor


@scaled.register_fake
def _(x, factor):
    return torch.empty_like(x)


scaled.register_autograd(lambda ctx, grad: (grad * ctx.factor, None),
                         setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]))


@library.custom_op("mylib::distances", mutates_args=())
def distances(a: Tensor, b: Tensor) -> Tensor:
    return (a[:, None] - b).square().sum(-1)


@distances.register_fake
def _(a, b):
    return a.new_empty(a.shape[0], b.shape[0])


@library.custom_op("mylib::distances_backward", mutates_args=())
def distances_backward(grad: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    each = 2 * grad[..., None] * (a[:, None] - b)
    return each.sum(1), -each.sum(0)


@distances_backward.register_fake
def _(grad, a, b):
    return torch.empty_like(a), torch.empty_like(b)


distances.register_autograd(lambda ctx, grad: distances_backward(grad, *ctx.saved_tensors),
                            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))


@library.custom_op("mylib::accumulate", mutates_args=("total",))
def accumulate(x: Tensor, total: Tensor) -> None:
    total += x


@accumulate.register_fake
def _(x, total):
    pass


@library.custom_op("mylib::positive", mutates_args=())
def positive(x: Tensor) -> Tensor:
    return x[x > 0].clone()


@positive.register_fake
def _(x):
    return x.new_empty(library.get_ctx().new_dynamic_size())


@library.custom_op("mylib::note", mutates_args=())
def note(x: Tensor, what: str) -> None:
    print(f"{what}: {x.sum():g}", file=sys.stderr)


@note.register_fake
def _(x, what):
    pass


_register_effectful_op(torch.ops.mylib.note.default, _EffectType.ORDERED)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.centres = nn.Parameter(torch.randn(2, 3))
        self.register_buffer("total", torch.zeros(2, 3))

    def forward(self, x):
        y = scaled(self.layer(x), 2.5)
        note(y, "layer")
        d = distances(y, self.centres)
        accumulate(y.detach().sum(0), self.total[1])
        note(d, "distances")
        return d.sum(), y + self.total[1]


class Old(nn.Module):
    def forward(self, x, total):
        _, added = torch.ops.higher_order.auto_functionalized(torch.ops.mylib.accumulate.default, x=x, total=total)
        return added * 2


class Positive(nn.Module):
    def forward(self, x):
        return positive(x) * 2


def main():
    out = pathlib.Path(sys.argv[1])
    torch.manual_seed(0)
    model, x = Model(), torch.randn(5, 4)
    rows = torch.export.Dim("rows", min=2, max=64)
    program = strip_program(torch.export.export(model, (x,), dynamic_shapes=({0: rows},)))
    torch.export.save(program, out / "model.pt2")
    torch.export.save(strip_program(program.run_decompositions({})), out / "model_decomposed.pt2")
    loss, y = model(x)
    loss.backward()
    reference = {"x": x, "loss": loss, "y": y, "total": model.total, **{f"grad.{n}": p.grad for n, p in model.named_parameters()}}
    a, b = torch.randn(3), torch.randn(3)
    old = Old()
    torch.export.save(strip_program(torch.export.export(old, (a, b))), out / "model_old.pt2")
    reference |= {"old_a": a, "old_b": b, "old": old(a, b)}
    torch.export.save(strip_program(torch.export.export(Positive(), (a,))), out / "positive.pt2")
    reference |= {"positive": Positive()(a)}
    numpy.savez(out / "reference.npz", **{name: t.detach().numpy() for name, t in reference.items()})


if __name__ == "__main__":
    main()
