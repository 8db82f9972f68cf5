#!/usr/bin/env python3
"""Makes the small seeds under tests/fuzz/seeds from files that PyTorch and NumPy write. Needs both; run by hand."""
import collections
import io
import json
import pathlib
import zipfile

import numpy as np
import torch

here = pathlib.Path(__file__).parent / "seeds"


def put(target, name, content):
    folder = here / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def saved(value, **options):
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


def zipped(files, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files:
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return out.getvalue()


def numpy_saved(save, *arrays, **named):
    out = io.BytesIO()
    save(out, *arrays, **named)
    return out.getvalue()


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 3)

    def forward(self, x, scale: float):
        return torch.relu(self.linear(x)) * scale


torch.manual_seed(0)
state = Small().state_dict()
program = torch.export.export(
    Small(), (torch.randn(4, 2), 0.5), dynamic_shapes={"x": {0: torch.export.Dim("n", min=2, max=64)}, "scale": None}
)
for node in program.graph.nodes:  # the true ones name this machine's folders
    if "stack_trace" in node.meta:
        node.meta["stack_trace"] = '  File "model.py", line 3, in forward\n    return x\n'
buffer = io.BytesIO()
torch.export.save(program, buffer)
archive = zipfile.ZipFile(io.BytesIO(buffer.getvalue()))
sample = (
    (torch.arange(6.0).reshape(2, 3), 1, -(2**40), 1.5, None, True, "text"),
    {"k": [torch.ones(2, dtype=torch.uint16), ()], "s": {1, 2}, "d": collections.deque([1], 3), "b": b"ab"},
)

put("zip", "export.pt2", buffer.getvalue())
put("zip", "save.pt", saved(state))
put("zip", "stored.zip", zipped([("a/b", b"hello"), ("c", b"")], zipfile.ZIP_STORED))
put("zip", "deflated.zip", zipped([("a/b", b"hello" * 50), ("inner.zip", saved([1]))], zipfile.ZIP_DEFLATED))

for name in archive.namelist():
    if name.endswith(".json"):
        put("json", pathlib.PurePath(name).name, archive.read(name))
put("json", "kinds.json", json.dumps([None, True, -1, 0.1, 1e300, 2**63, "h\u00e9\U0001f600\n", {"a": {}, "b": []}]).encode())
put("json", "large_object.json", json.dumps({f"k{i * 7 % 20}": i for i in range(20)}).encode())

for name, value, protocol in [("state", state, 2), ("sample", sample, 2), ("sample4", sample, 4), ("parameter", Small().linear.weight, 2)]:
    inner = zipfile.ZipFile(io.BytesIO(saved(value, pickle_protocol=protocol)))
    put("pickle", name, inner.read(next(n for n in inner.namelist() if n.endswith("data.pkl"))))

for dtype in ["<f2", "<f4", ">f8", "|i1", ">i8", "|b1", "<c8", ">c16"]:
    put("npy", f"{np.dtype(dtype).name}.npy", numpy_saved(np.save, np.arange(6).reshape(2, 3).astype(dtype)))
put("npy", "fortran.npy", numpy_saved(np.save, np.asfortranarray(np.eye(3, dtype="<u2"))))
put("npy", "scalar.npy", numpy_saved(np.save, np.array(3.0)))
put("npy", "stored.npz", numpy_saved(np.savez, a=np.arange(3), b=np.eye(2)))
put("npy", "deflated.npz", numpy_saved(np.savez_compressed, a=np.arange(30)))

# Files of older releases: their programs, the pickles of their weights, and the parts of whole flat files.
data = here.parents[1] / "data" / "pt2"
for release, stem in [("2.4", "a_mlp_dynamic"), ("2.4", "l_no_grad_region"), ("2.5", "h_strided_input_written"),
                      ("2.6", "m_condition"), ("2.6", "m_retired_operators"), ("2.6", "m_infinities")]:
    parts = []
    with zipfile.ZipFile(data / f"torch-{release}" / f"{stem}.pt2") as flat:
        for name in flat.namelist():
            content = flat.read(name)
            if name.endswith(".json"):
                put("program", f"{release}_{stem}", content)
            if name.endswith(".pt"):
                inner = zipfile.ZipFile(io.BytesIO(content))
                content = inner.read(next(n for n in inner.namelist() if n.endswith("data.pkl")))
                if name == "serialized_state_dict.pt":
                    put("weights", f"{release}_{stem}", content)
            parts.append(name.encode() + b"\n" + content)
    put("flat", f"{release}_{stem}", b"\n%%\n".join(parts))
# Graphs within graphs, and what vmap and jvp leave.
for stem in ("n_loop", "n_map_over_rows", "n_scan_of_a_cell", "n_associative_scan_of_sums"):
    with zipfile.ZipFile(data / "torch-2.15" / f"{stem}.pt2") as archive:
        put("program", f"{stem}.json", archive.read(f"{stem}/models/model.json"))


def traced(name, function, *inputs):
    class Program(torch.nn.Module):
        def forward(self, *args):
            return function(*args)

    made = torch.export.export(Program(), inputs)
    for node in made.graph.nodes:
        node.meta.pop("stack_trace", None)
    out = io.BytesIO()
    torch.export.save(made, out)
    with zipfile.ZipFile(out) as archive:
        put("program", f"{name}.json", archive.read(next(n for n in archive.namelist() if n.endswith("models/model.json"))))


traced("vmap_within_vmap", lambda x: torch.vmap(torch.vmap(lambda e: e * e + 1))(x).sum(0), torch.randn(2, 3))
traced("jvp", lambda x, t: torch.func.jvp(lambda v: v.sin() * v, (x,), (t,)), torch.randn(3), torch.randn(3))
for name in ("state", "parameter", "sample4"):
    put("weights", name, (here / "pickle" / name).read_bytes())

expressions = (here.parents[1] / "data" / "sym" / "expressions.txt").read_text().splitlines()
for kind in ("infix", "srepr"):
    lines = [line.removeprefix(kind + " ") for line in expressions if line.startswith(kind + " ")]
    for i, line in enumerate(lines[:: max(1, len(lines) // 24)]):
        put("sym", f"{kind}_{i:02}", line.encode())
guards = ["2*L['x'].size()[0] + 1 <= 4*L['args'][0]['a'].size()[1]", "L['x'].size()[0] % 8 == 0 and 2 <= L['x'].size()[1] < 10"]
for i, line in enumerate(guards):
    put("sym", f"guard_{i}", line.encode())
