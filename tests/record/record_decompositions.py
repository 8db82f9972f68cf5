"""Records what PyTorch's run_decompositions makes of programs:  record_decompositions.py OUT.zip [--only SUBSTRING ...]

Programs are the exported ones of tests/data/pt2 that belong to this release, and one operator's samples each from PyTorch's
own operator database. The archive holds lists of them as JSON: "name"; "program", as torch.export.save writes it; "aten", what
run_decompositions({}) prints as; "core", the same of run_decompositions(). Comments and blank lines are left out: they speak
of the machine. Where PyTorch refuses, "aten" or "core" is missing.
"""

import argparse
import contextlib
import io
import itertools
import json
import logging
import pathlib
import random
import sys
import time
import warnings
import zipfile

import numpy
import torch
from torch.export import exported_program as exported
from torch.testing._internal.common_methods_invocations import op_db

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interop")]
from case import tensors_in, usable  # noqa: E402
from strip import strip_program  # noqa: E402

PROGRAMS = HERE.parent / "data" / "pt2" / ("torch-" + ".".join(torch.__version__.split(".")[:2]))
SAMPLES = 2
AT_ONCE = 50


class OneOperator(torch.nn.Module):
    def __init__(self, function, kwargs):
        super().__init__()
        self.function = function
        self.kwargs = kwargs

    def forward(self, args, tensors):
        return self.function(*args, **tensors, **self.kwargs)


def printed(program):
    lines = str(program).splitlines()
    return "".join(line.rstrip() + "\n" for line in lines if line.strip() and not line.strip().startswith("# "))


def samples_of(op):
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    dtype = next(d for d in (torch.float32, torch.int64, torch.bool) if d in op.supported_dtypes("cpu"))
    samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), 60))
    samples = [s for s in samples if usable({"all": [s.input, s.args, s.kwargs]})]
    return samples[::max(1, len(samples) // SAMPLES)][:SAMPLES]


def programs(only):
    wanted = lambda name: not only or any(text in name for text in only)  # noqa: E731
    for path in sorted(PROGRAMS.glob("*.pt2")):
        if wanted(path.stem):
            yield path.stem, lambda path=path: torch.export.load(path)
    for number, op in itertools.product(range(SAMPLES), op_db):
        name = f"op.{op.name}" + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if not wanted(name):
            continue
        try:
            samples = samples_of(op)
        except Exception:
            continue
        for sample in samples[number:number + 1]:
            kwargs = {n: v for n, v in sample.kwargs.items() if any(True for _ in tensors_in(v))}
            plain = {n: v for n, v in sample.kwargs.items() if n not in kwargs}
            args = ((sample.input, *sample.args), kwargs)
            yield f"{name}.{number}", lambda op=op, plain=plain, args=args: torch.export.export(OneOperator(op.op, plain), args)


def json_of(program):
    example, program._example_inputs = program._example_inputs, None
    out = io.BytesIO()
    torch.export.save(strip_program(program), out)
    program._example_inputs = example
    with zipfile.ZipFile(out) as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        return archive.read(name).decode()


def decompose(programs, rows, dialect, table):
    """run_decompositions of many programs; what it overrides is overridden once for all of them, because it takes long."""
    composites, others = exported._split_decomp_table_to_cia_and_python_decomp(table)
    override = exported._override_composite_implicit_decomp
    with override(composites):
        exported._override_composite_implicit_decomp = lambda _: contextlib.nullcontext()
        try:
            for program, row in zip(programs, rows):
                try:
                    made = exported._decompose_exported_program(
                        program, cia_to_decomp=composites, python_decomp_table=others, joint_loss_index=None,
                        decompose_custom_triton_ops=True)
                    row[dialect] = printed(made)
                except Exception as error:
                    print(f"{row['name']}: {dialect}: {type(error).__name__}: {str(error).strip()[:100]}", flush=True)
        finally:
            exported._override_composite_implicit_decomp = override


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    start, count = time.time(), 0
    waiting = programs(options.only)
    while chunk := list(itertools.islice(waiting, AT_ONCE)):
        made, rows = [], []
        for name, make in chunk:
            try:
                torch.manual_seed(0)
                program = make()
                rows.append({"name": name, "program": json_of(program)})
                made.append(program)
            except Exception as error:
                print(f"{name}: not exported: {type(error).__name__}", flush=True)
        decompose(made, rows, "aten", {})
        decompose(made, rows, "core", torch.export.default_decompositions())
        with zipfile.ZipFile(options.out, "a") as archive:
            entry = zipfile.ZipInfo(f"{count // AT_ONCE:02}.json", (1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, json.dumps(rows), zipfile.ZIP_DEFLATED, 9)
        count += AT_ONCE
        print(f"{count} programs, {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
