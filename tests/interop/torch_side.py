"""What real PyTorch makes of files that Tenon wrote."""

import importlib.util
import logging
import warnings

import programs  # noqa: F401 (the classes of its trees)
import torch
from torch.export.pt2_archive._package import load_pt2
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from reference import Copies, Run, run, to_numpy, user_inputs

if importlib.util.find_spec("torchvision"):
    import torchvision  # noqa: F401 (its operators)

torch.set_num_threads(1)
logging.disable(logging.WARNING)  # a file that cannot be loaded is reported in one line
GRADIENTS = (OutputKind.GRADIENT_TO_PARAMETER, OutputKind.GRADIENT_TO_USER_INPUT)


class Difference(Exception):
    pass


class Unchecked(Exception):
    """PyTorch lacks the package whose operators the file has."""


def load(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return torch.export.load(path)
        except RuntimeError:
            why = reason(path)
            if "failed to resolve torch.ops.torchao." in why and importlib.util.find_spec("torchao") is None:
                raise Unchecked(why) from None
            raise Difference(f"PyTorch does not load the file: {why}") from None


def reason(path):
    """Why the file cannot be loaded; torch.export.load keeps it to itself."""
    try:
        load_pt2(path)
    except Exception as error:
        return " ".join(str(error).strip().split("\n")[-1].split())[:300]
    return "no reason given"


def facts(program):
    """What must survive a conversion, as comparable text. The order of the state does not: 2.9 wrote it by name, 2.10 by storage."""
    ranges = {str(symbol): (str(r.lower), str(r.upper)) for symbol, r in program.range_constraints.items()}
    return {"signature": str(program.graph_signature), "ranges": ranges, "arguments": str(program.call_spec.in_spec),
            "results": str(program.call_spec.out_spec), "state": sorted(program.state_dict), "code": program.graph_module.code,
            "dialect": str(program.verifier.dialect)}


def leaves(program):
    args, kwargs = program.example_inputs
    return user_inputs(program, args, kwargs)


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a.nan_to_num(), b.nan_to_num())
    return type(a) is type(b) and a == b


def same_program(original, converted):
    """Fails where PyTorch sees a difference between the two files; random operators draw from the same seed."""
    a, b = load(original), load(converted)
    for what, value in facts(a).items():
        other = facts(b)[what]
        if value != other:
            raise Difference(f"{what} differ after convert: {str(value)[:200]} became {str(other)[:200]}")
    if (a.example_inputs is None) != (b.example_inputs is None):
        raise Difference("sample inputs were lost by convert")
    if a.example_inputs is None:
        return
    results = []
    for program in (a, b):
        torch.manual_seed(0)
        results.append(run(program, leaves(program), False, False))
    first, second = results
    if first.keys() != second.keys():
        raise Difference(f"results {list(first)} became {list(second)}")
    for key, value in first.items():
        if not same(value, second[key]):
            raise Difference(f"{key} differs after convert")


def given(arrays, name, meta):
    if name in arrays:
        return torch.from_numpy(arrays[name]).to(meta.dtype) if isinstance(meta, torch.Tensor) else arrays[name].item()
    return None


def run_converted(path, arrays, use_samples, gradient):
    """Results of a program that Tenon converted, and its gradients where asked for: {key: array}."""
    program = load(path)
    if use_samples:
        inputs = leaves(program)
    else:
        placeholders = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
        names = [spec.arg.name for spec in program.graph_signature.input_specs
                 if spec.kind == InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument)]
        inputs = {name: given(arrays, name, placeholders[name]) for name in names}
    results = run(program, inputs, False, False)
    if gradient:
        results |= run(program, inputs, False, True)
    return {key: to_numpy(value) for key, value in results.items()}


def run_joint(path, arrays, use_samples, outputs):
    """Runs a joint program that Tenon wrote: {"output_N" or "grad.NAME": array}. Cotangents are ones, as large as `outputs`."""
    program = load(path)
    samples = leaves(program) if program.example_inputs is not None else {}
    copies = Copies(False)
    placeholders = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    values, cotangents = [], []
    for spec in program.graph_signature.input_specs:
        if spec.kind != InputKind.USER_INPUT:
            known = program.state_dict if spec.target in program.state_dict else program.constants
            values.append(copies(known[spec.target]))
        elif isinstance(spec.arg, ConstantArgument):
            values.append(spec.arg.value)
        elif spec.arg.name.startswith("tangent_output_"):
            cotangents.append(len(values))
            values.append(None)
        elif use_samples:
            sample = samples[spec.arg.name]
            values.append(copies(sample) if isinstance(sample, torch.Tensor) else sample)
        else:
            values.append(given(arrays, spec.arg.name, placeholders[spec.arg.name]))
    for at in cotangents:
        name = program.graph_signature.input_specs[at].arg.name
        values[at] = torch.ones(outputs[name.removeprefix("tangent_")].shape, dtype=placeholders[name].dtype)
    with torch.no_grad():
        outputs = Run(program.graph_module, False).run(*values)
    results, number = {}, 0
    for spec, value in zip(program.graph_signature.output_specs, outputs):
        if spec.kind in GRADIENTS:
            results[f"grad.{spec.target}"] = to_numpy(value)
        elif spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
            if value is not None and not isinstance(value, str):
                results[f"output_{number}"] = to_numpy(value)
            number += 1
    return results
