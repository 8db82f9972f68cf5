"""Records calls of operators from real PyTorch:  record_ops.py OUTDIR [--only SUBSTRING ...]

Calls come from three sources: hand-written ones (extra_samples.py); PyTorch's own operator samples, exported as one-op
programs and run node by node; and the operators autograd calls for those samples, for the ones only backward uses.
Of all calls of an overload a few are kept, chosen to differ from each other. Each file <letter>.zip holds for each of its
overloads <op>.<overload>.json, a list of cases as described in case.py, and <op>.<overload>.bin, the bytes of the tensors.
"""

import argparse
import collections
import itertools
import json
import logging
import pathlib
import pickle
import random
import sys
import time
import warnings
import zipfile

import numpy
import torch
from torch import fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import extra_samples  # noqa: E402
from case import Copies, Unusable, Writer, bind, meets_complex, tensors_in, usable  # noqa: E402
from run_case import record  # noqa: E402
from targets import FIRST_LIST  # noqa: E402

NAMESPACES = ("aten", "quantized_decomposed", "torchao", "torchvision", "transformers")
SOURCES = ("extra", "export", "autograd")
COMPLEX_SAMPLES = {torch.complex64: 16, torch.complex128: 2, torch.float32: 8}
SAMPLES = {torch.float32: 40, torch.float64: 3, torch.bfloat16: 2, torch.float16: 2, torch.int64: 4, torch.bool: 3,
           torch.int32: 1, torch.uint8: 1}


def features(given):
    """What distinguishes a call from others of the same overload."""
    found = set()
    tensors = list(tensors_in(given))
    found.add(("dtypes", tuple(sorted({str(t.dtype) for t in tensors}))))
    shapes = {tuple(t.shape) for t in tensors}
    if len(shapes) > 1:
        found.add("several shapes")
    for name, value in given.items():
        found.add((name, "given"))
        for tensor in tensors_in(value):
            found.add((name, tensor.dtype))
            found.add((name, "rank", tensor.dim()))
            if tensor.numel() == 0:
                found.add((name, "empty"))
            if not tensor.is_contiguous():
                found.add((name, "strided"))
            if 1 in tensor.shape:
                found.add((name, "size one"))
        if isinstance(value, (bool, str, torch.dtype, torch.memory_format)) or value is None:
            found.add((name, value))
        elif isinstance(value, (int, float)):
            found.add((name, type(value), (value > 0) - (value < 0)))
            found.add((name, "whole", value == int(value) if abs(value) < 1e9 else value))
            if value in (0, 1, 2, -1):
                found.add((name, float(value)))
        elif isinstance(value, (list, tuple)):
            found.add((name, "length", len(value)))
            found.add((name, "kinds", tuple(sorted({type(v).__name__ for v in value}))))
            numbers = [v for v in value if isinstance(v, (int, float))]
            found.add((name, "equal", len(set(numbers)) <= 1))
            found.update((name, "member", v) for v in numbers if v in (-1, 0, 1, 2))
    return found


class Calls:
    """The calls seen so far, by overload; of equal-looking ones only the first."""

    def __init__(self, only, not_these=(), of_complex=False):
        self.only = only
        self.of_complex = of_complex
        self.not_these = not_these
        self.by_overload = collections.defaultdict(list)
        self.seen = set()

    @staticmethod
    def is_of_complex(name, given):
        """Calls that meet complex numbers are kept apart, with those that make them of real ones."""
        base = name.split(".")[0]
        return meets_complex(given) or base in ("complex", "polar", "view_as_complex") or "fft" in base and "shift" not in base and (
            "freq" not in base)

    def add(self, source, overload, args, kwargs):
        if not isinstance(overload, torch._ops.OpOverload) or overload.namespace not in NAMESPACES:
            return
        name = overload_name(overload)
        if name in self.not_these or self.only and not any(text in name for text in self.only):
            return
        given = bind(overload, args, kwargs)
        try:
            if not usable(given) or self.of_complex != self.is_of_complex(name, given):
                return
            marks = frozenset(features(given))
        except (TypeError, OverflowError, ValueError):
            return
        key = (name, marks)
        if source != "extra" and key in self.seen:
            return
        self.seen.add(key)
        size = sum(t.untyped_storage().nbytes() for t in tensors_in(given))
        self.by_overload[name].append((source, marks, size, overload, Copies()(given)))


def overload_name(overload):
    return f"{overload._schema.name.removeprefix('aten::')}.{overload._overloadname}"


class Recorder(fx.Interpreter):
    def __init__(self, module, calls):
        super().__init__(module)
        self.calls = calls

    def call_function(self, target, args, kwargs):
        self.calls.add("export", target, args, kwargs)
        return super().call_function(target, args, kwargs)


class AutogradCalls(TorchDispatchMode):
    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls.add("autograd", function, args, kwargs or {})
        return function(*args, **(kwargs or {}))


class OneOperator(torch.nn.Module):
    def __init__(self, function, kwargs):
        super().__init__()
        self.function = function
        self.kwargs = kwargs

    def forward(self, *args):
        return self.function(*args, **self.kwargs)


def export_calls(calls, function, args, kwargs):
    tensors = {name: v for name, v in kwargs.items() if any(True for _ in tensors_in(v))}
    plain = {name: v for name, v in kwargs.items() if name not in tensors}

    class Program(OneOperator):
        def forward(self, args, tensors):
            return self.function(*args, **tensors, **self.kwargs)

    program = torch.export.export(Program(function, plain), (tuple(args), tensors))
    leaves = torch.utils._pytree.tree_leaves((tuple(args), tensors), is_leaf=lambda v: v is None)
    values, user = [], iter(Copies()(leaves))
    for spec in program.graph_signature.input_specs:
        if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT:
            values.append(next(user))
        else:
            values.append(Copies()(program.constants[spec.target]))
    Recorder(program.graph_module, calls).run(*values)


def autograd_calls(calls, op, sample):
    args = Copies()([sample.input, *sample.args])
    kwargs = Copies()(sample.kwargs)
    leaves = [t.requires_grad_() for t in tensors_in([args, kwargs]) if t.is_floating_point() or t.is_complex()]
    with AutogradCalls(calls):
        results = op.op(*args, **kwargs)
        results = sample.output_process_fn_grad(results)
        reached = [t for t in tensors_in(results if isinstance(results, (list, tuple)) else [results]) if t.requires_grad]
        if reached:
            torch.autograd.grad(reached, leaves, [torch.ones_like(t) for t in reached], allow_unused=True)


def samples_of(op, dtype, count):
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), 200))
    step = max(1, len(samples) // count)
    return [s for s in samples[::step][:count] if usable({"all": [s.input, s.args, s.kwargs]})]


def collect(calls, log):
    start = time.time()
    torch.use_deterministic_algorithms(True, warn_only=True)  # fills what torch.empty makes, so that recordings repeat
    for number, op in enumerate(op_db):
        supported = op.supported_dtypes("cpu")
        for dtype, count in (COMPLEX_SAMPLES if calls.of_complex else SAMPLES).items():
            if dtype not in supported:
                continue
            try:
                samples = samples_of(op, dtype, count)
            except Exception as error:
                log.append(f"{op.name} {dtype}: no samples: {short(error)}")
                continue
            for index, sample in enumerate(samples):
                torch.manual_seed(index)
                try:
                    export_calls(calls, op.op, [sample.input, *sample.args], sample.kwargs)
                except Exception as error:
                    log.append(f"{op.name} {dtype} sample {index}: {short(error)}")
                writes = op.inplace_variant
                if writes is not None and index < (8 if dtype == torch.float32 else 2) and not sample.broadcasts_input:
                    try:
                        export_calls(calls, writes, [sample.input, *sample.args], sample.kwargs)
                    except Exception as error:
                        log.append(f"{op.name} in place {dtype} sample {index}: {short(error)}")
                if index < 6 and dtype == torch.float32:
                    try:
                        autograd_calls(calls, op, sample)
                    except Exception as error:
                        log.append(f"{op.name} autograd {dtype} sample {index}: {short(error)}")
        if number % 50 == 49:
            print(f"samples of {number + 1} of {len(op_db)} operators, {time.time() - start:.0f} s", flush=True)


def save_calls(calls, path):
    found = [(c[0], name, c[4]) for name, entries in calls.by_overload.items() for c in entries if c[0] != "extra"]
    with path.open("wb") as file:
        pickle.dump(found, file)


def load_calls(calls, path):
    with path.open("rb") as file:
        for source, name, given in pickle.load(file):
            packet, overload = name.split(".")
            calls.add(source, getattr(getattr(torch.ops.aten, packet), overload), (), given)


def short(error):
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:150] if str(error).strip() else ''}"


def choose(name, candidates, log, of_complex):
    """Cases of one overload: hand-written ones, then those that show most that was not shown yet."""
    wanted = name in FIRST_LIST and not of_complex
    only_autograd = all(c[0] == "autograd" for c in candidates)
    most = 24 if wanted else 4 if of_complex else 6 if only_autograd else 12
    budget = 50_000 if wanted else 4_000 if of_complex else 9_000 if only_autograd else 20_000
    if not only_autograd:
        candidates = [c for c in candidates if c[0] != "autograd"] or candidates
    writer, cases, shown = Writer(), [], collections.Counter()
    remaining = list(candidates)
    while remaining and len(cases) < most + sum(c[0] == "extra" for c in candidates):
        def gain(c):
            return (c[0] == "extra", sum(1_000_000 // (1 + 3 * shown[f]) for f in c[1]) * 600 // (600 + c[2]))
        best = max(range(len(remaining)), key=lambda i: gain(remaining[i]))
        source, marks, size, overload, given = remaining.pop(best)
        if source != "extra" and (len(cases) >= most or len(writer.data) > budget):
            break
        if source != "extra" and cases and len(writer.data) + 6 * size > 1.5 * budget:
            continue
        mark = len(writer.data)
        try:
            cases.append(record(writer, overload, given))
            shown.update(marks)
        except (Unusable, RuntimeError, NotImplementedError, IndexError, TypeError, ValueError) as error:
            writer.forget_after(mark)
            log.append(f"{name}: case left out ({source}): {short(error)}")
    return cases, bytes(writer.data)


def stored(out):
    """What a folder holds: overload -> (cases as text, data)."""
    found = {}
    for path in out.glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".json"):
                    name = name.removesuffix(".json")
                    found[name] = (archive.read(f"{name}.json").decode(), archive.read(f"{name}.bin"))
    return found


def write(out, recorded):
    for old in out.glob("*.zip"):
        old.unlink()
    groups = collections.defaultdict(list)
    for name in sorted(recorded):
        groups[name.split("::")[-1].lstrip("_")[0].lower()].append(name)
    total = 0
    for letter, names in sorted(groups.items()):
        path = out / f"{letter}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name in names:
                text, data = recorded[name]
                archive.writestr(entry(f"{name}.json"), text)
                archive.writestr(entry(f"{name}.bin"), data)
        total += path.stat().st_size
    return total


def entry(name):
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[], help="only overloads whose names contain one of these; the others stay as they are")
    parser.add_argument("--calls", type=pathlib.Path, help="keep the calls found here, or take them from here")
    parser.add_argument("--log", type=pathlib.Path, help="where to write what could not be recorded, and why")
    parser.add_argument("--extra-only", action="store_true", help="only the hand-written calls")
    parser.add_argument("--complex", action="store_true", help="calls that meet complex numbers, and no others; OUT is a folder of their own")
    parser.add_argument("--missing", action="store_true", help="only overloads that OUT does not hold yet")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    log = []
    calls = Calls(options.only, stored(options.out) if options.missing else (), options.complex)
    for overload, args, kwargs in extra_samples.samples():
        calls.add("extra", overload, args, kwargs)
    if options.calls is not None and options.calls.exists():
        load_calls(calls, options.calls)
    elif not options.extra_only:
        collect(calls, log)
        if options.calls is not None:
            save_calls(calls, options.calls)
    recorded = stored(options.out) if options.only or options.missing else {}
    count = 0
    print(f"{len(calls.by_overload)} overloads called", flush=True)
    for number, (name, candidates) in enumerate(sorted(calls.by_overload.items())):
        cases, data = choose(name, candidates, log, options.complex)
        if cases:
            recorded[name] = (json.dumps(cases, separators=(",", ":"), allow_nan=False), data)
            count += len(cases)
        if number % 100 == 99:
            print(f"recorded {number + 1} overloads", flush=True)
    size = write(options.out, recorded)
    missing = [name for name in FIRST_LIST if name not in recorded and not options.only and not options.complex]
    print(f"{len(recorded)} overloads, {count} cases new, {size} bytes")
    print(f"of the first list without cases: {', '.join(missing) or 'none'}")
    if options.log is not None:
        options.log.write_text("\n".join(log) + "\n")


if __name__ == "__main__":
    main()
