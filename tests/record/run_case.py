"""Repeats one call in its own dtypes and in float64, with gradients, and makes its JSON."""

import re

import torch

from case import DTYPES, UNDEFINED, WIDER, Copies, Unusable, call, max_error, tensors_in


# PyTorch 2.15 itself dies with an illegal instruction in the backward of these.
DIES_IN_BACKWARD = ("aten::matrix_exp", "aten::linalg_matrix_exp")

# What these give depends on the dtype itself: a float64 run is no reference.
OF_ITS_DTYPE = ("view", "nan_to_num", "nan_to_num_", "nextafter", "nextafter_", "frexp", "hash_tensor")
# Likewise of these: which integer a number goes to is decided by its last bits.
ROUNDING = ("quantize", "quant_", "qparams", "obs_fq", "obs_fake_quant", "pack_mm", "embedding_byte", "embedding_4bit", "embedding_2bit", "int_scaled_matmul")


def execute(overload, given, double=False, seed=1):
    """Returns (results as a list, the arguments after the call)."""
    arguments = Copies(double)(given)
    torch.manual_seed(seed)
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    try:
        results = call(overload, arguments)
    finally:
        torch.set_default_dtype(torch.float32)
    if not overload._schema.returns:
        results = []
    elif not (isinstance(results, tuple) and len(overload._schema.returns) > 1):
        results = [results]
    return list(results), arguments


def same(a, b):
    if isinstance(a, torch.Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.is_floating_point() or a.is_complex():
            if a.is_complex():
                a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
            a, b = a.double(), b.double()
            return bool(((a == b) | (a.isnan() & b.isnan())).all())
        return torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return all(same(a[k], b[k]) for k in a)
    return a == b or (a != a and b != b)


def single_precision(given):
    """Whether float32 and complex64 are the only floating dtypes among the arguments, so that a float64 run is a reference."""
    kinds = {t.dtype for t in tensors_in(given) if t.is_floating_point() or t.is_complex()}
    named = {v for v in given.values() if isinstance(v, torch.dtype) and (v.is_floating_point or v.is_complex)}
    return (kinds | named) <= set(WIDER)


def has_reference(name, given):
    return single_precision(given) and name not in OF_ITS_DTYPE and not any(part in name for part in ROUNDING)


def each(result, function):
    return [function(item) for item in result] if isinstance(result, (list, tuple)) else function(result)


def record(writer, overload, given):
    results, after = execute(overload, given, seed=1)
    again, again_after = execute(overload, given, seed=2)
    name = overload._schema.name.split("::")[1]
    undefined = name in UNDEFINED
    random = undefined or not (same(results, again) and same(after, again_after))
    if any(t.dtype not in DTYPES or t.layout != torch.strided for t in tensors_in(results)):
        raise Unusable("a result of another dtype or layout")
    if any(t.numel() > 4000 for t in tensors_in(results)):
        raise Unusable("a large result")

    exact = exact_after = None
    if not random and has_reference(name, given):
        try:
            exact, exact_after = execute(overload, given, double=True)
        except Exception as error:
            raise Unusable(f"no float64 run: {error}") from None

    encoded = {"args": encode_arguments(writer, overload, given)}
    encoded["results"] = [encode_result(writer, r, random, exact is not None) for r in results]
    if exact is not None:
        pairs = [compare(writer, own, ref) for own, ref in zip(results, exact)]
        if any(reference is not None for reference, _ in pairs):
            encoded["reference"] = [reference for reference, _ in pairs]
            encoded["error"] = [error for _, error in pairs]
    encoded["aliases"] = [each(r, lambda t: alias_of(t, after)) for r in results]
    written = encode_written(writer, given, after, exact_after, random, overload)
    if written:
        encoded["written"] = written
    encoded["random"] = random
    if not random:
        gradients = encode_gradients(writer, overload, given, set(written), results)
        if gradients is not None:
            encoded["grad"] = gradients
    return encoded


def encode_arguments(writer, overload, given):
    pointers = [p for p in {t.untyped_storage().data_ptr(): None for t in tensors_in(given)} if p]
    shared = [p for p in pointers if sum(t.untyped_storage().data_ptr() == p for t in tensors_in(given)) > 1]
    by_name = {a.name: a for a in overload._schema.arguments}
    return {name: writer.value(value, by_name[name], shared) for name, value in given.items()}


def encode_result(writer, result, random, has_reference):
    def tensor(value):
        if value is None:
            return None
        if random or (has_reference and value.dtype in WIDER):
            return writer.meta(value)
        return {**writer.meta(value), "offset": 0, "storage": writer.raw(value)}

    if isinstance(result, torch.Tensor):
        return {"t": tensor(result)}
    if isinstance(result, (list, tuple)):
        return {"tl": [tensor(item) for item in result]}
    return None if random and result is not None else writer.value(result)


def compare(writer, own, exact):
    """(reference, error) of a result."""
    if isinstance(own, (list, tuple)):
        pairs = [compare(writer, a, b) for a, b in zip(own, exact)]
        return ([p[0] for p in pairs], [p[1] for p in pairs]) if any(p[0] for p in pairs) else (None, None)
    if not isinstance(own, torch.Tensor):
        if not isinstance(own, float) and own != exact:
            raise Unusable("float64 gives another number")
        return None, None
    if own.dtype in WIDER:
        if exact.dtype != WIDER[own.dtype]:
            raise Unusable("the float64 run gives another dtype")
        error = max_error(own, exact)
        if error > 0.01 * max(1.0, float(finite_abs(exact).max()) if exact.numel() else 0.0):
            raise Unusable("float32 is far from float64")
        return writer.expected_tensor(exact, own), error
    if not same(own, exact):
        raise Unusable("the float64 run gives other integers")
    return None, None


def alias_of(tensor, after):
    if not isinstance(tensor, torch.Tensor) or not tensor.untyped_storage().data_ptr():
        return None
    for name, value in after.items():
        for i, other in enumerate(tensors_in(value)):
            if other.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr():
                return name if isinstance(value, torch.Tensor) else f"{name}[{i}]"
    return None


def encode_written(writer, given, after, exact_after, random, overload):
    written = {}
    declared = {a.name for a in overload._schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    for name, value in after.items():
        if not isinstance(value, torch.Tensor):
            continue
        metadata_changed = value.shape != given[name].shape or value.stride() != given[name].stride()
        if name not in declared and not metadata_changed and same(value, given[name]):
            continue
        entry = {"value": writer.meta(value), "reference": None, "error": None}
        if random:
            pass
        elif exact_after is not None and value.dtype in WIDER:
            entry["reference"] = writer.expected_tensor(exact_after[name], value)
            entry["error"] = max_error(value, exact_after[name])
        else:
            entry["value"] = {**writer.meta(value), "offset": 0, "storage": writer.raw(value)}
        written[name] = entry
    return written


class Leaf(torch.autograd.Function):
    """The leaf's bytes and strides in a tensor that the operator may write to."""

    @staticmethod
    def forward(ctx, leaf):
        return Copies()(leaf).detach()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def differentiate(overload, given, written, cotangents, double, refused=()):
    """The gradients by name, None where autograd gives none; arguments that cannot have one are left out."""
    try:
        return differentiate_once(overload, given, written, cotangents, double, refused)
    except RuntimeError as error:
        named = re.search(r"with respect to argument '(\w+)'|derivative for '(?:[\w.:]+: )?(\w+)'", str(error))
        name = named and (named[1] or named[2])
        if not name or name in refused or name not in given:
            raise
        return differentiate(overload, given, written, cotangents, double, (*refused, name))


def differentiate_once(overload, given, written, cotangents, double, refused):
    arguments = Copies(double)(given)
    leaves = {}

    def prepare(name, value, writable):
        if not (isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())) or name in refused:
            return value
        leaves[name] = value.detach().requires_grad_()
        return Leaf.apply(leaves[name]) if writable else leaves[name]

    for name, value in arguments.items():
        if isinstance(value, list):
            arguments[name] = [prepare(f"{name}[{i}]", item, False) for i, item in enumerate(value)]
        else:
            arguments[name] = prepare(name, value, name in written)
    if not leaves:
        return None
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    try:
        with torch.enable_grad():
            results = call(overload, arguments)
        flat = list(tensors_in(results if isinstance(results, (list, tuple)) else [results]))
        pairs = [(r, c) for r, c in zip(flat, cotangents) if r.requires_grad and c is not None]
        if not pairs:
            return None
        grads = torch.autograd.grad([r for r, _ in pairs], list(leaves.values()),
                                    [c.to(r.dtype) for r, c in pairs], allow_unused=True)
    finally:
        torch.set_default_dtype(torch.float32)
    return dict(zip(leaves, grads)), [r.requires_grad for r in flat]


def cotangent(result, generator):
    """Eighths, so that they are exact in every dtype."""
    def eighths():
        return torch.randn(result.shape, generator=generator, dtype=torch.float64).mul(8).round().div(8)

    if result.is_complex():
        return torch.complex(eighths(), eighths()).to(result.dtype)
    return eighths().to(result.dtype) if result.is_floating_point() else None


def finite_abs(tensor):
    parts = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return parts.nan_to_num(0, 0, 0).abs()


def encode_gradients(writer, overload, given, written, results):
    if not overload._schema.returns or overload._schema.name in DIES_IN_BACKWARD:
        return None
    generator = torch.Generator().manual_seed(5)
    flat = list(tensors_in(results))
    cotangents = [cotangent(t, generator) for t in flat]
    double = has_reference(overload._schema.name.split("::")[1], given)
    try:
        found = differentiate(overload, given, written, cotangents, False)
        if found is None:
            return None
        own, reached = found
        exact = differentiate(overload, given, written, cotangents, True)[0] if double else own
    except (RuntimeError, NotImplementedError, IndexError, TypeError):
        return None
    if any(g is not None and g.layout != torch.strided for g in own.values()):
        return None
    wrt = {}
    try:
        for name, gradient in own.items():
            if gradient is None or exact[name] is None:
                wrt[name] = None
            else:
                error = max_error(gradient, exact[name]) if double else None
                wrt[name] = {"reference": writer.expected_tensor(exact[name], gradient), "error": error}
    except Unusable:
        return None
    stored = iter([writer.expected_tensor(c) if r and c is not None else None for c, r in zip(cotangents, reached)])
    shaped = []
    for result in results:
        if isinstance(result, (list, tuple)):
            shaped.append([next(stored) if isinstance(item, torch.Tensor) else None for item in result])
        else:
            shaped.append(next(stored) if isinstance(result, torch.Tensor) else None)
    return {"cotangents": shaped, "wrt": wrt}
