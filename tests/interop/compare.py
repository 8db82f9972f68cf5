"""When numbers are right: at most 4 times PyTorch's own error plus a part of the tensor's largest value."""

import zipfile

import numpy

PARTS = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2, "float64": 1e-12, "float": 1e-12,
         "complex64": 2e-6, "complex128": 1e-12}


def load(path):
    """The arrays of an .npz file; none where there is no file."""
    try:
        with numpy.load(path) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except FileNotFoundError:
        return {}
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: {error}") from None


def mistake(got, reference, dtype, error, narrower=False):
    """What is wrong with one array, or nothing. `error` is PyTorch's own, none where its own run is the reference; `narrower` says that
    numbers of less than 64 bits went into it, which round as their sums are ordered."""
    if got.shape != reference.shape:
        return f"shape {list(got.shape)}, expected {list(reference.shape)}"
    stored = {"bfloat16": "float32", "float": "float64", "int": "int64"}.get(dtype, dtype)
    if got.dtype.name != stored:
        return f"dtype {got.dtype.name}, expected {stored}"
    if dtype not in PARTS:
        different = int((got != reference).sum())
        return f"{different} of {got.size} elements differ" if different else None
    if dtype.startswith("complex"):
        got, reference = (numpy.stack([value.real, value.imag]) for value in (got, reference))
    got, reference = got.astype(numpy.float64), reference.astype(numpy.float64)
    finite = numpy.isfinite(reference)
    if not numpy.array_equal(got[~finite], reference[~finite], equal_nan=True) or not numpy.isfinite(got[finite]).all():
        return "infinities or NaN in other places"
    if not finite.any():
        return None
    difference = numpy.abs(got[finite] - reference[finite]).max()
    part = max(PARTS[dtype], PARTS["float32"]) if narrower and error is None else PARTS[dtype]
    allowed = 4 * (error or 0.0) + part * numpy.abs(reference[finite]).max()
    return f"error {difference:.3g}, allowed {allowed:.3g}" if difference > allowed else None


def compare(got, reference, keys):
    """Mistakes by key. `keys` gives the dtype and PyTorch's own error of each reference; both must have the same keys."""
    mistakes = [f"{key} is missing" for key in reference if key not in got]
    mistakes += [f"{key} is not expected" for key in got if key not in reference]
    narrower = any(keys[key]["dtype"] in ("float32", "float16", "bfloat16", "complex64") for key in reference)
    for key in reference:
        if key in got:
            found = mistake(got[key], reference[key], keys[key]["dtype"], keys[key]["error"], narrower)
            if found:
                mistakes.append(f"{key}: {found}")
    return mistakes
