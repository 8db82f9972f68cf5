"""The programs that must work, by letter, each in several variants.

A variant is a function that returns a Program. `small` ones are also committed as files written by several releases
of PyTorch, so they use only what PyTorch 2.9 has.
"""

import dataclasses
import typing

import torch
from torch import nn


@dataclasses.dataclass
class Program:
    module: nn.Module
    args: tuple = ()
    kwargs: dict = dataclasses.field(default_factory=dict)
    dynamic_shapes: typing.Any = None
    more: list = dataclasses.field(default_factory=list)  # further (args, kwargs) of other sizes
    mixed: bool = False  # several float dtypes: PyTorch's own run is the reference
    random: bool = False  # draws random numbers: no reference numbers
    gradient: bool = True  # eager autograd can differentiate output_0
    reload: bool = True  # PyTorch can load what it saved
    retired: bool = False  # has operators that the newest PyTorch does not: it cannot load the file as it is
    refused: str = ""  # the operator that Tenon names when it refuses to run it; such a program is shown and converted


programs = {}


RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def program(letter, small=False, needs=None, until=None):
    """Registers a variant under letter_name; it is built with a seed made from that name. `until` is the first release that
    does not export it."""

    def register(build):
        if until is not None and RELEASE >= until:
            return build
        name = f"{letter}_{build.__name__}"

        def seeded():
            torch.manual_seed(sum(ord(c) * (i + 1) for i, c in enumerate(name)))
            return build()

        seeded.letter, seeded.small, seeded.needs = letter, small, needs
        programs[name] = seeded
        return build

    return register


class Function(nn.Module):
    """A module without state whose forward is the given function."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


def jitter(module):
    """Moves every float parameter and buffer away from its initial value, so that a forgotten one shows."""
    with torch.no_grad():
        for name, value in list(module.named_parameters()) + list(module.named_buffers()):
            if not value.is_floating_point():
                continue
            if name.endswith("running_var"):
                value.uniform_(0.5, 2.0)
            else:
                value.add_(0.1 * torch.randn_like(value))
    return module


# Registration order is the order of the exported files.
import programs_models  # noqa: E402, F401
import programs_views  # noqa: E402, F401
import programs_state  # noqa: E402, F401
import programs_library  # noqa: E402, F401
if RELEASE >= (2, 15):
    import programs_complex  # noqa: E402, F401
    import programs_control  # noqa: E402, F401
    import programs_numbers  # noqa: E402, F401
    import programs_quantized  # noqa: E402, F401
    import programs_style  # noqa: E402, F401
import programs_older  # noqa: E402, F401
