"""Runs an exported program node by node, in its own dtypes or with float64 in place of float32."""

import itertools

import numpy
import torch
from torch import fx
from torch.export._tree_utils import reorder_kwargs
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

LOW = (torch.float16, torch.bfloat16)
WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}
WRITTEN = {OutputKind.BUFFER_MUTATION: "buffer", OutputKind.USER_INPUT_MUTATION: "input"}


def promote(value):
    return WIDER.get(value, value) if isinstance(value, torch.dtype) else value


class Run(fx.Interpreter):
    """Interprets the graph as written, in-place operators and set-grad regions included."""

    def __init__(self, module, double):
        super().__init__(module)
        self.double = double

    def call_function(self, target, args, kwargs):
        if "_assert_tensor_metadata" in str(target):
            return None
        if "wrap_with_set_grad_enabled" in str(target):
            with torch.set_grad_enabled(args[0]):
                return Run(args[1], self.double).run(*args[2:])
        if self.double:
            args, kwargs = fx.node.map_aggregate((args, kwargs), promote)
        return super().call_function(target, args, kwargs)


class Copies:
    """Copies tensors so that those that shared storage share it again, as float64 if asked to."""

    def __init__(self, double):
        self.double = double
        self.storages = {}

    def __call__(self, tensor):
        source = tensor.detach()
        storage = source.untyped_storage()
        key = (storage.data_ptr() or id(tensor), source.dtype)
        if key not in self.storages:
            flat = torch.empty(0, dtype=source.dtype).set_(storage).clone()
            self.storages[key] = flat.to(promote(flat.dtype)) if self.double else flat
        return self.storages[key].as_strided(source.size(), source.stride(), source.storage_offset())


def identity(tensor):
    return (tensor.untyped_storage().data_ptr() or id(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride())


def dtype_name(value):
    """As in PyTorch, without "torch."; bfloat16 is stored as float32 in npz but called by its name."""
    return str(value.dtype).removeprefix("torch.") if isinstance(value, torch.Tensor) else type(value).__name__


def to_numpy(value):
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj()
        return (value.float() if value.dtype == torch.bfloat16 else value).contiguous().numpy().copy()
    return numpy.asarray(value)


def user_inputs(program, args, kwargs):
    """The program's inputs by name, flattened as PyTorch does; constants are left out."""
    leaves, _ = torch.utils._pytree.tree_flatten((args, reorder_kwargs(kwargs, program.call_spec.in_spec)))
    specs = [s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    assert len(leaves) == len(specs), (len(leaves), specs)
    return {s.arg.name: leaf for s, leaf in zip(specs, leaves) if not isinstance(s.arg, ConstantArgument)}


def run(program, inputs, double, gradient):
    """Returns {key: value}: outputs, written buffers and inputs; with gradient, the gradients of output_0."""
    copies = Copies(double)
    leaves, values, initial, named = {}, [], {}, {}
    by_identity = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT and isinstance(spec.arg, ConstantArgument):
            values.append(spec.arg.value)
            continue
        if spec.kind == InputKind.USER_INPUT:
            source, key = inputs[spec.arg.name], f"input.{spec.arg.name}"
        else:
            known = program.state_dict if spec.target in program.state_dict else program.constants
            source, key = known[spec.target], f"{spec.kind.name.lower()}.{spec.target}"
        if not isinstance(source, torch.Tensor):
            values.append(source)
            continue
        value = copies(source)
        if gradient and (source.is_floating_point() or source.is_complex()) and spec.kind in (InputKind.USER_INPUT, InputKind.PARAMETER):
            if spec.kind == InputKind.PARAMETER:
                value = by_identity.setdefault(identity(source), value)
                value.requires_grad_()
                leaves[spec.target] = value
            else:
                value.requires_grad_()
                leaves[spec.arg.name] = value
                value = Leaf.apply(leaves[spec.arg.name])
        named[key] = value
        initial[key] = (value.detach().clone(), value._version)
        values.append(value)
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    try:
        with torch.set_grad_enabled(gradient):
            outputs = Run(program.graph_module, double).run(*values)
    finally:
        torch.set_default_dtype(torch.float32)
    results = {}
    flat = torch.utils._pytree.tree_leaves(outputs, is_leaf=lambda v: v is None)
    numbers = itertools.count()
    for spec, value in zip(program.graph_signature.output_specs, flat, strict=True):
        if spec.kind in WRITTEN:  # a graph without writes returns what it would have written
            results[f"{WRITTEN[spec.kind]}.{spec.target}"] = value
            continue
        key = f"output_{next(numbers)}"
        if value is not None and not isinstance(value, str):
            results[key] = value
    for key, value in named.items():
        before, version = initial[key]
        written = value._version != version or not torch.equal(value.detach().nan_to_num(), before.nan_to_num())
        if written and not key.startswith("constant_tensor."):
            results[key] = value
    if not gradient:
        return results
    first = results.get("output_0")
    if not (isinstance(first, torch.Tensor) and first.requires_grad and first.is_floating_point()):
        return {}
    found = torch.autograd.grad(first, list(leaves.values()), torch.ones_like(first), allow_unused=True)
    return {f"grad.{name}": value for name, value in zip(leaves, found) if value is not None}


class Leaf(torch.autograd.Function):
    """The same bytes and strides as the leaf, but writable under autograd."""

    @staticmethod
    def forward(ctx, leaf):
        ctx.shape = leaf.shape
        storage = leaf.detach().untyped_storage().clone()
        flat = torch.empty(0, dtype=leaf.dtype).set_(storage)
        return torch.as_strided(flat, leaf.size(), leaf.stride(), leaf.storage_offset()).detach()

    @staticmethod
    def backward(ctx, gradient):
        return gradient
