"""Reads recordings back and repeats every call with this PyTorch:  check_recordings.py FOLDER

Shows that the files say all that is needed: arguments are built from the file alone, and results, written arguments and
strides must agree with what was recorded.
"""

import json
import pathlib
import sys
import zipfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from case import DTYPES, tensors_in  # noqa: E402
from run_case import execute  # noqa: E402

NAMES = {name: dtype for dtype, name in DTYPES.items()}


class Reader:
    def __init__(self, data):
        self.data = data

    def storage(self, tensor):
        offset, length = tensor["storage"]
        raw = bytearray(self.data[offset:offset + length])
        dtype = NAMES[tensor["dtype"]]
        return torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)

    def argument(self, tensor):
        return None if tensor is None else torch.as_strided(self.storage(tensor), tensor["sizes"], tensor["strides"], tensor["offset"])

    def expected(self, tensor):
        return self.storage(tensor).reshape(tensor["sizes"])

    def value(self, value):
        if not isinstance(value, dict):
            return value
        (kind, content), = value.items()
        if kind == "t":
            return self.argument(content)
        if kind == "tl":
            return [self.argument(t) for t in content]
        if kind == "f":
            return float(content)
        if kind == "fl":
            return [float(v) for v in content]
        if kind == "dtype":
            return NAMES[content]
        if kind == "device":
            return torch.device(content)
        if kind in ("layout", "memory_format"):
            return getattr(torch, content)
        return content


def flat(values):
    for value in values:
        if isinstance(value, list):
            yield from flat(value)
        else:
            yield value


def check_tensor(reader, tensor, stored, reference, error):
    assert DTYPES[tensor.dtype] == stored["dtype"], "dtype"
    assert list(tensor.size()) == stored["sizes"] and list(tensor.stride()) == stored["strides"], "sizes or strides"
    if reference is None and "storage" not in stored:
        return
    wanted = reader.expected(stored if reference is None else reference)
    a, b = tensor.detach().double(), wanted.double()
    near = (a - b).abs() <= (0 if reference is None else 2 * error) + 1e-6 * b.abs()
    assert bool((near | (a == b) | (a.isnan() & b.isnan())).all()), "values"


def check(overload, case, reader):
    given = {name: reader.value(value) for name, value in case["args"].items()}
    results, after = execute(overload, given)
    stored = list(flat([[r["t"]] if isinstance(r, dict) and "t" in r else r.get("tl", []) if isinstance(r, dict) else []
                        for r in case["results"]]))
    count = len(stored)
    references = list(flat(case.get("reference", [None] * count)))
    errors = list(flat(case.get("error", [None] * count)))
    if len(references) != count:  # a list result without references is one null
        references, errors = [None] * count, [None] * count
    for tensor, record, reference, error in zip(tensors_in(results), stored, references, errors, strict=True):
        check_tensor(reader, tensor, record, reference, error)
    for name, record in case.get("written", {}).items():
        check_tensor(reader, after[name], record["value"], record["reference"], record["error"])


def main():
    bad = cases = gradients = random = 0
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                if not entry.endswith(".json"):
                    continue
                name = entry.removesuffix(".json")
                packet, kind = name.split(".")
                space, _, packet = packet.rpartition("::")
                overload = getattr(getattr(getattr(torch.ops, space or "aten"), packet), kind)
                reader = Reader(archive.read(f"{name}.bin"))
                for number, case in enumerate(json.loads(archive.read(entry))):
                    cases += 1
                    gradients += "grad" in case
                    random += case["random"]
                    try:
                        check(overload, case, reader)
                    except Exception as error:
                        bad += 1
                        print(f"{name} case {number}: {type(error).__name__}: {str(error)[:160]}")
    print(f"{cases} cases, {gradients} with gradients, {random} random, {bad} do not agree")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
