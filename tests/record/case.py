"""One call of one operator: how it is described, repeated, and written down.

The JSON of a case:
  args       {name: value}, the arguments that were given, named by the schema; what is missing has its default
  results    [value]; a tensor has no "storage" where reference or random makes its data superfluous
  reference  [tensor or null]: the result of the same call with float64 in place of float32
  error      [number or null]: largest error of PyTorch's own float32 result against the reference
  aliases    [name or null]: the argument whose storage the result shares
  written    {name: {"value": tensor, "reference": tensor or null, "error": number or null}}: arguments after the call
  grad       {"cotangents": [tensor or null], "wrt": {name: {"reference": tensor, "error": number or null} or null}};
             null where PyTorch gives no gradient, missing where the argument can have none.
             Left out where PyTorch cannot differentiate the call.
  random     true: the data of the results is not determined
Where a result is a list of tensors, its entries in reference, error, aliases and cotangents are lists too. Gradients of
members of a list argument are named name[i].
Values: null, true, false, {"i": 5}, {"f": 1.5 or "inf", "-inf", "nan"}, {"s": text}, {"dtype": "f32"}, {"device": "cpu"},
{"layout": "strided"}, {"memory_format": "contiguous_format"}, {"t": tensor}, {"tl": [tensor or null]}, {"il": [..]},
{"fl": [..]}, {"bl": [..]}, {"sl": [..]}, {"c": [real, imaginary]}.
tensor = {"dtype", "sizes", "strides", "offset", "storage": [byte offset, byte length]}, the bytes being those of the whole
storage; "shared": k marks arguments that lie in one storage. Expected tensors (reference, written, gradients, results)
are stored contiguous, whatever their "strides" say: those are the strides PyTorch gave the tensor. Float64 that is exact
in float32 is stored as such.
"""

import math

import torch

DTYPES = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
          torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool",
          torch.uint16: "u16", torch.uint64: "u64", torch.complex64: "c64", torch.complex128: "c128"}
WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}

UNDEFINED = ("empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided", "resize_",
             "resize_as_", "empty_quantized")


class Unusable(Exception):
    """The call cannot be recorded: why."""


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def bind(overload, args, kwargs):
    """The arguments by schema name, only those given."""
    given = {}
    for value, argument in zip(args, overload._schema.arguments):
        given[argument.name] = value
    given.update(kwargs)
    return given


def call(overload, given):
    names = [a.name for a in overload._schema.arguments if not a.kwarg_only]
    positional = []
    for name in names:
        if name not in given:
            break
        positional.append(given[name])
    rest = {name: value for name, value in given.items() if name not in names[:len(positional)]}
    return overload(*positional, **rest)


class Copies:
    """Copies arguments, keeping strides and shared storage; float32 and complex64 become twice as wide if double."""

    def __init__(self, double=False):
        self.double = double
        self.storages = {}

    def tensor(self, tensor):
        source = tensor.detach()
        storage = source.untyped_storage()
        key = (storage.data_ptr() or id(tensor), source.dtype)
        if key not in self.storages:
            flat = torch.empty(0, dtype=source.dtype).set_(storage).clone()
            self.storages[key] = flat.to(WIDER.get(flat.dtype, flat.dtype)) if self.double else flat
        storage = self.storages[key].untyped_storage()  # not as_strided: some operators refuse views
        return torch.empty(0, dtype=self.storages[key].dtype).set_(storage, source.storage_offset(), source.size(), source.stride())

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, (list, tuple)):
            return [self(item) for item in value]
        if isinstance(value, dict):
            return {name: self(item) for name, item in value.items()}
        if self.double and isinstance(value, torch.dtype):
            return WIDER.get(value, value)
        return value


def usable(given, limit=2000):
    for tensor in tensors_in(given):
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided or tensor.is_quantized:
            return False
        if tensor.dtype not in DTYPES or tensor.device.type != "cpu" or tensor.is_neg() or tensor.is_conj():
            return False
        if tensor.numel() > limit or tensor.untyped_storage().nbytes() // tensor.element_size() > 2 * limit:
            return False
    return not any(isinstance(value, torch.Generator) or value is torch.complex32 for value in given.values())


def meets_complex(given):
    return any(t.is_complex() for t in tensors_in(given)) or any(
        isinstance(value, complex) or value in (torch.complex64, torch.complex128)
        for value in given.values() if not isinstance(value, torch.Tensor))


def number(value):
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


class Writer:
    """Collects tensor bytes; equal bytes are kept once."""

    def __init__(self):
        self.data = bytearray()
        self.known = {}

    def bytes(self, data):
        if not data:
            return [0, 0]
        if data not in self.known:
            self.data += bytes(-len(self.data) % 16)
            self.known[data] = len(self.data)
            self.data += data
        return [self.known[data], len(data)]

    def forget_after(self, length):
        """Drops what was added since the data had this length."""
        del self.data[length:]
        self.known = {data: at for data, at in self.known.items() if at < length}

    def raw(self, flat):
        flat = torch.empty(flat.numel(), dtype=flat.dtype).copy_(flat.detach().reshape(-1))
        if flat.is_complex():
            flat = torch.view_as_real(flat).reshape(-1)
        return self.bytes(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")

    def meta(self, tensor):
        return {"dtype": DTYPES[tensor.dtype], "sizes": list(tensor.size()), "strides": list(tensor.stride())}

    def argument_tensor(self, tensor, shared):
        if tensor is None:
            return None
        storage = tensor.untyped_storage()
        flat = torch.empty(0, dtype=tensor.dtype).set_(storage)
        encoded = {**self.meta(tensor), "offset": tensor.storage_offset(), "storage": self.raw(flat)}
        if storage.data_ptr() in shared:
            encoded["shared"] = shared.index(storage.data_ptr())
        return encoded

    def expected_tensor(self, tensor, like=None):
        """Stored contiguous; float64 that is exact in float32 is stored as float32."""
        if tensor is None:
            return None
        encoded = self.meta(tensor if like is None else like)
        for narrow, wide in WIDER.items():
            if tensor.dtype == wide:
                short = tensor.to(narrow)
                parts = [torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in (short.to(wide), tensor)]
                if torch.equal(*[t.nan_to_num(1e300) for t in parts]):
                    tensor = short
        encoded["dtype"] = DTYPES[tensor.dtype]
        return {**encoded, "offset": 0, "storage": self.raw(tensor)}

    def value(self, value, argument=None, shared=()):
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, torch.Tensor):
            return {"t": self.argument_tensor(value, shared)}
        if isinstance(value, torch.dtype):
            return {"dtype": DTYPES[value]}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.layout):
            return {"layout": str(value).removeprefix("torch.")}
        if isinstance(value, torch.memory_format):
            return {"memory_format": str(value).removeprefix("torch.")}
        if isinstance(value, int):
            return {"i": value}
        if isinstance(value, float):
            return {"f": number(value)}
        if isinstance(value, complex):
            return {"c": [number(value.real), number(value.imag)]}
        if isinstance(value, str):
            return {"s": value}
        if isinstance(value, (list, tuple)):
            kind = str(argument.type) if argument is not None else ""
            if "Tensor" in kind or any(isinstance(v, torch.Tensor) for v in value):
                return {"tl": [self.argument_tensor(v, shared) for v in value]}
            if all(isinstance(v, bool) for v in value) and ("bool" in kind or value):
                return {"bl": list(value)}
            if all(isinstance(v, int) for v in value) and "float" not in kind:
                return {"il": list(value)}
            if all(isinstance(v, (int, float)) for v in value):
                return {"fl": [number(v) for v in value]}
            if all(isinstance(v, str) for v in value):
                return {"sl": list(value)}
        raise Unusable(f"a value of type {type(value).__name__}")


def max_error(own, exact):
    """None-safe largest difference; Unusable where one is finite and the other is not."""
    if own.is_complex():
        own, exact = torch.view_as_real(own.resolve_conj()), torch.view_as_real(exact.resolve_conj())
    own, exact = own.detach().double(), exact.detach().double()
    if own.shape != exact.shape:
        raise Unusable("float64 gives another shape")
    finite = torch.isfinite(own)
    if not torch.equal(finite, torch.isfinite(exact)):
        raise Unusable("float32 overflows")
    if not torch.equal(own[~finite].nan_to_num(7.0), exact[~finite].nan_to_num(7.0)):
        raise Unusable("float32 gives another infinity")
    return float((own[finite] - exact[finite]).abs().max()) if finite.any() else 0.0
