"""Exports the programs of programs.py with this PyTorch:  export_programs.py OUTDIR [--small] [--only NAME-or-LETTER ...]

Next to NAME.pt2, for each set of inputs (NAME, NAME.1, NAME.2, ...):
  NAME.in.npz    the inputs, by input name
  NAME.out.npz   output_N, buffer.<name>, parameter.<name>, input.<name>: results and everything the program wrote
  NAME.grad.npz  grad.<name>: gradients of output_0 (tangent_output_0 = ones where it is not a scalar)
  NAME.json      per key: dtype, and the error of PyTorch's own float32 run against the float64 run stored in the npz
"shared" says that inputs lie in one storage, which npz cannot express: such a program is run with its stored samples.
Programs of several dtypes store PyTorch's own run, with error null.
skipped.txt lists the programs that this PyTorch cannot export or save, each with the reason; only releases before 2.9 may
skip one. Releases whose default is strict tracing export without it what strict tracing cannot.
"""

import argparse
import json
import pathlib
import sys
import time
import traceback

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from programs import RELEASE, programs  # noqa: E402
from reference import dtype_name, run, to_numpy, user_inputs  # noqa: E402
from strip import check_no_paths, strip_dates, strip_program  # noqa: E402


def with_errors(program, inputs, mixed, gradient):
    """The reference arrays, and what is known of each."""
    results = run(program, inputs, False, gradient)
    dtypes = {key: dtype_name(value) for key, value in results.items()}
    own = {key: to_numpy(value) for key, value in results.items()}
    if mixed:
        return own, {key: {"dtype": dtypes[key], "error": None} for key in own}
    exact = {key: to_numpy(value) for key, value in run(program, inputs, True, gradient).items()}
    assert own.keys() == exact.keys(), (own.keys(), exact.keys())
    errors = {}
    for key, value in own.items():
        floating = value.dtype.kind in "fc"
        if not floating:
            assert numpy.array_equal(value, exact[key]), key
        difference = float(numpy.abs(value - exact[key]).max()) if floating and value.size else 0.0
        errors[key] = {"dtype": dtypes[key], "error": difference}
    return exact, errors


def share_storage(inputs):
    pointers = [v.untyped_storage().data_ptr() for v in inputs.values() if isinstance(v, torch.Tensor) and v.numel()]
    return len(set(pointers)) < len(pointers)


def save(path, arrays):
    if arrays:
        numpy.savez_compressed(path, **arrays)


MAY_SKIP = RELEASE < (2, 9)
# Up to 2.5 files are functional, and PyTorch's gradient of as_strided_scatter is wrong where the gradient that comes in is
# expanded: its own numbers are no reference there.
WRONG_GRADIENTS = ["h_every_view"] if RELEASE < (2, 6) else []


class Skipped(Exception):
    """This PyTorch cannot do it."""


def attempt(what, *args, **kwargs):
    try:
        return what(*args, **kwargs)
    except Exception as error:
        if not MAY_SKIP:
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[0] if lines else "no reason given"
        raise Skipped(f"{type(error).__name__}: {reason[:200]}") from error


def exported(name):
    """The program and the case it was made from; building the case anew undoes what tracing wrote to the module."""
    case = attempt(programs[name])
    try:
        return case, attempt(torch.export.export, case.module, case.args, case.kwargs, dynamic_shapes=case.dynamic_shapes)
    except Skipped:
        case = programs[name]()
        return case, attempt(torch.export.export, case.module, case.args, case.kwargs, dynamic_shapes=case.dynamic_shapes,
                             strict=False)


def export(name, out):
    case, program = exported(name)
    path = out / f"{name}.pt2"
    attempt(torch.export.save, strip_program(program), path)
    strip_dates(path)
    check_no_paths(path)
    for number, (args, kwargs) in enumerate([(case.args, case.kwargs), *case.more]):
        stem = name if number == 0 else f"{name}.{number}"
        inputs = user_inputs(program, args, kwargs)
        save(out / f"{stem}.in.npz", {key: to_numpy(value) for key, value in inputs.items()})
        info = {"torch": torch.__version__.split("+")[0], "program": f"{name}.pt2", "letter": programs[name].letter,
                "mixed": case.mixed, "random": case.random, "reload": case.reload, "refused": case.refused,
                "retired": case.retired, "shared": share_storage(inputs), "gradient": False, "keys": {}}
        if not case.random:
            results, info["keys"] = with_errors(program, inputs, case.mixed, False)
            save(out / f"{stem}.out.npz", results)
            if case.gradient and name not in WRONG_GRADIENTS:
                try:
                    gradients, errors = attempt(with_errors, program, inputs, case.mixed, True)
                except Skipped as reason:  # an operator of a functional graph that this PyTorch cannot differentiate
                    print(f"{name}: without gradients: {reason}", flush=True)
                    gradients, errors = {}, {}
                info["gradient"] = bool(gradients)
                info["keys"].update(errors)
                save(out / f"{stem}.grad.npz", gradients)
        (out / f"{stem}.json").write_text(json.dumps(info, indent=1) + "\n")
    return path.stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--small", action="store_true", help="only those that are committed")
    parser.add_argument("--only", nargs="*", default=[], help="names or letters")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(2)
    failed, skipped = [], []
    for name, build in programs.items():
        if options.small and not build.small:
            continue
        if options.only and name not in options.only and build.letter not in options.only:
            continue
        start = time.time()
        try:
            size = export(name, options.out)
            print(f"{name}: {size} bytes, {time.time() - start:.1f} s", flush=True)
        except Skipped as reason:
            print(f"{name}: skipped: {reason}", flush=True)
            skipped.append(f"{name}: {reason}\n")
            for left in options.out.glob(f"{name}.*"):
                left.unlink()
        except Exception:
            traceback.print_exc()
            failed.append(name)
    if skipped:
        (options.out / "skipped.txt").write_text("".join(skipped))
    if failed:
        sys.exit(f"not exported: {', '.join(failed)}")


if __name__ == "__main__":
    main()
