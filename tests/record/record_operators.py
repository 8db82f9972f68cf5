"""Records what PyTorch says of its operators' place in its dialects:  record_operators.py OUT.inc

One line of C++ for each operator of aten that is composite, can be preserved, is replaced by the default decomposition table
or is tagged as core; the file is tenon/dialect/operators.inc.
"""

import pathlib
import sys

import torch
from torch._decomp import _core_aten_decompositions_post_autograd
from torch._export.utils import _collect_all_valid_cia_ops
from torch.export import default_decompositions


def main():
    preservable = set(_collect_all_valid_cia_ops())
    default = default_decompositions()
    default.items()  # fills it in
    replaced = set(_core_aten_decompositions_post_autograd())
    composite_in_table = {op for op in default.keys() if op in preservable}
    lines = []
    for name in sorted(dir(torch.ops.aten)):
        packet = getattr(torch.ops.aten, name)
        if not isinstance(packet, torch._ops.OpOverloadPacket):
            continue
        for overload in sorted(packet.overloads()):
            op = getattr(packet, overload)
            try:
                composite = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
            except RuntimeError:
                continue
            flags = [flag for flag, holds in (
                ("composite", composite), ("preservable", op in preservable),
                ("replaced", op in replaced or op in composite_in_table and not composite),
                ("kept", op in preservable and op not in composite_in_table),
                ("core", torch.Tag.core in op.tags)) if holds]
            if flags and not overload.endswith("out") and "out" != overload:
                spelled = f"aten::{name}" + ("" if overload == "default" else f".{overload}")
                lines.append(f'{{"{spelled}", {" | ".join(flags)}}},\n')
    pathlib.Path(sys.argv[1]).write_text("".join(lines))


if __name__ == "__main__":
    main()
