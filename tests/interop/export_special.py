"""Files that can only be shown and converted, or run on another device:  export_special.py OUTDIR [--check TENON]

complex_numbers.pt2     complex tensors
custom_object.pt2       an object of a class in C++ (special/scale_object.cpp is built for it)
custom_object_2_6.pt2   the same by PyTorch 2.6, which pickles it among the constants; it stays
custom_operator.pt2     an operator that only this script has
effect_tokens.pt2       an operator with an effect, which a token orders
several_models.pt2      two programs, `first` and `second`, as torch.export.pt2_archive packages them
on_cuda.pt2             a program on cuda:0; made from one exported on the CPU, because that needs no such device
on_cuda_flat.pt2        the same in the flat format of PyTorch 2.7, made from tests/data/pt2/torch-2.7
prints.pt2              prints numbers and tensors; prints.txt is what PyTorch printed
autocast_2_6.pt2        k_autocast of programs_state.py, exported by PyTorch 2.6; it stays
aotinductor.pt2         an archive that holds a compiled model and no program

--check converts each with Tenon, loads the result and compares results: what PyTorch reads must be what it wrote.
"""

import argparse
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import torch
from torch import library
from torch import nn
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
from torch.export.pt2_archive._package import load_pt2, package_pt2

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from strip import check_no_paths, strip_program  # noqa: E402

DATA = HERE.parent / "data" / "pt2"


def exported(module, *args, **options):
    return strip_program(torch.export.export(module, args, **options))


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, dtype=torch.complex64))

    def forward(self, x):
        return (x * self.weight + 1j).abs(), torch.view_as_real(x * 2)


def build_objects():
    """Builds and loads the custom class; the library stays loaded."""
    folder = pathlib.Path(tempfile.mkdtemp())
    root = pathlib.Path(torch.__file__).parent
    built = folder / "libscale_object.so"
    subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", HERE / "special" / "scale_object.cpp", "-o", built,
                    f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include", f"-L{root}/lib", "-lc10", "-ltorch_cpu"],
                   check=True)
    torch.classes.load_library(built)

    @torch._library.register_fake_class("tenon_test::Scale")
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @classmethod
        def __obj_unflatten__(cls, fields):
            return cls(dict(fields)["factor"])

    library.register_fake("tenon_test::scaled")(lambda x, s: torch.empty_like(x))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.classes.tenon_test.Scale(2.5)
        self.weight = nn.Parameter(torch.randn(3))

    def forward(self, x):
        return torch.ops.tenon_test.scaled(x, self.scale) + self.weight


@library.custom_op("tenon_test::doubled", mutates_args=())
def doubled(x: torch.Tensor, times: int = 1) -> torch.Tensor:
    return x * 2**times


doubled.register_fake(lambda x, times=1: torch.empty_like(x))


@library.custom_op("tenon_test::noted", mutates_args=())
def noted(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


noted.register_fake(lambda x: torch.empty_like(x))
_register_effectful_op(torch.ops.tenon_test.noted.default, _EffectType.ORDERED)


class Effect(nn.Module):
    def forward(self, x):
        return torch.ops.tenon_test.noted(x + 1) * 2


class Operator(nn.Module):
    def forward(self, x):
        return torch.ops.tenon_test.doubled(x + 1, times=3).sum()


class Prints(nn.Module):
    def forward(self, x, n):
        printed = torch._higher_order_ops.print
        printed("x is {} and {{n}} {:>5}", x, n.item())
        printed("{first:.3f} of {sum:.4f}, {shape}: {y!r}", first=x[0, 0], sum=x.sum(), shape=x.shape[0], y=n)
        printed("{} {} {}", x > 0, x.double() * 1000, torch.arange(30) * 111)
        printed("{}", torch.zeros(0, 2))
        return x * 2


class Placed(nn.Module):
    """Makes tensors on the device of its input, in the graph and in a constant."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)
        self.register_buffer("count", torch.zeros(()))
        self.table = torch.randn(4)

    def forward(self, x):
        with torch.no_grad():
            self.count.add_(1)
            steps = torch.arange(4, device=x.device, dtype=x.dtype)
        mask = torch.zeros(4, device=x.device).to(x.device)
        return self.layer(x) * steps + mask + self.table * self.count


def moved(data, entry):
    """The bytes of an entry with everything that was on the CPU on cuda:0."""
    if entry.endswith(".json"):
        def walk(value):
            if isinstance(value, dict):
                if set(value) <= {"type", "index"} and value.get("type") == "cpu":
                    return {"type": "cuda", "index": 0}
                return {key: walk(item) for key, item in value.items()}
            return [walk(item) for item in value] if isinstance(value, list) else value
        return json.dumps(walk(json.loads(data))).encode()
    if entry.endswith(".pt") and data:
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
            for inner in old.namelist():
                content = old.read(inner)
                if inner.endswith("data.pkl"):  # BINUNICODE: X, a length, the text
                    content = content.replace(b"X\x03\0\0\0cpu", b"X\x06\0\0\0cuda:0")
                new.writestr(zipfile.ZipInfo(inner, (1980, 1, 1, 0, 0, 0)), content)
        return out.getvalue()
    return data


def on_cuda(source, path):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.namelist():
            new.writestr(zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0)), moved(old.read(entry), entry))


def make(out):
    torch.manual_seed(7)
    build_objects()
    x = torch.randn(2, 3)
    torch.export.save(exported(Complex(), torch.randn(3, dtype=torch.complex64)), out / "complex_numbers.pt2")
    torch.export.save(exported(Scaled(), torch.randn(3)), out / "custom_object.pt2")
    torch.export.save(exported(Operator(), torch.randn(3)), out / "custom_operator.pt2")
    torch.export.save(exported(Effect(), torch.randn(3)).run_decompositions({}), out / "effect_tokens.pt2")
    prints = exported(Prints(), x, torch.tensor(4))
    torch.export.save(prints, out / "prints.pt2")
    with open(out / "prints.txt", "w") as text, contextlib.redirect_stdout(text):
        prints.module()(x, torch.tensor(4))
    package_pt2(str(out / "several_models.pt2"), exported_programs={
        "first": exported(nn.Linear(3, 2), x), "second": exported(nn.Sequential(nn.Linear(3, 5), nn.ReLU()), x)})
    cpu = out / "cpu.pt2"
    torch.export.save(exported(Placed(), x, dynamic_shapes=({0: torch.export.Dim("batch")},)), cpu)
    on_cuda(cpu, out / "on_cuda.pt2")
    cpu.unlink()
    on_cuda(DATA / "torch-2.7" / "l_writes_inside_a_region.pt2", out / "on_cuda_flat.pt2")
    with zipfile.ZipFile(out / "aotinductor.pt2", "w") as archive:
        for name, data in {"archive_format": "pt2", "archive_version": "0", ".data/version": "6\n", "byteorder": "little",
                           "data/aotinductor/model/model.wrapper.so": "\x7fELF", "data/aotinductor/model/model.wrapper.cpp": ""}.items():
            archive.writestr(zipfile.ZipInfo(f"model/{name}", (1980, 1, 1, 0, 0, 0)), data)
    for file in out.glob("*.pt2"):
        check_no_paths(file)


def results(program):
    args, kwargs = program.example_inputs
    return torch.utils._pytree.tree_leaves(program.module()(*args, **kwargs))


def same(a, b):
    return str(a.graph_signature) == str(b.graph_signature) and a.graph_module.code == b.graph_module.code and \
        all(torch.equal(x, y) for x, y in zip(results(a), results(b), strict=True))


def check(folder, tenon):
    """The names of the files that PyTorch does not read again as they were."""
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / "copy.pt2"

        def converted(name, *options):
            subprocess.run([tenon, "convert", folder / name, copy, *options], check=True)
            return torch.export.load(copy)

        for name in ("complex_numbers.pt2", "custom_object.pt2", "custom_operator.pt2"):
            if not same(torch.export.load(folder / name), converted(name)):
                wrong.append(name)
        old = converted("custom_object_2_6.pt2")  # which this PyTorch does not read itself
        (given,), _ = old.example_inputs
        if not torch.equal(old.module()(given), given * 2.5 + old.state_dict["weight"]):
            wrong.append("custom_object_2_6.pt2")
        tokens, copied = torch.export.load(folder / "effect_tokens.pt2"), converted("effect_tokens.pt2")
        if (str(tokens.graph_signature), tokens.graph_module.code) != (str(copied.graph_signature), copied.graph_module.code):
            wrong.append("effect_tokens.pt2")
        models = load_pt2(str(folder / "several_models.pt2")).exported_programs
        for model in ("first", "second"):
            if not same(models[model], converted("several_models.pt2", "--model", model)):
                wrong.append(f"several_models.pt2, {model}")
        for name in ("on_cuda.pt2", "on_cuda_flat.pt2"):
            program = converted(name, "--device", "cpu")
            if any(t.device.type != "cpu" for t in [*program.state_dict.values(), *results(program)]):
                wrong.append(name)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--check", metavar="TENON", help="files that are there already, through this Tenon")
    options = parser.parse_args()
    if options.check:
        build_objects()
        wrong = check(options.out, options.check)
        sys.exit(f"PyTorch reads something else after convert: {', '.join(wrong)}" if wrong else 0)
    options.out.mkdir(parents=True, exist_ok=True)
    make(options.out)


if __name__ == "__main__":
    main()
