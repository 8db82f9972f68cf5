"""Records what PyTorch prints for small programs: tests/data/golden/<name>.txt, and one program that has stack traces.

Run with PyTorch 2.15 from the root of the repository: python tests/golden/record_text.py
"""
import linecache
import pathlib
import warnings

import torch

warnings.filterwarnings("ignore")
DATA = pathlib.Path(__file__).parent.parent / "data"
PROGRAMS = """a_mlp_dynamic b_digits_train h_dynamic_views h_every_view i_statistics j_constants j_nested_inputs
    k_conversions l_nested_regions""".split()

# Compiled under a short name, so that the traces in the file carry no path of a machine.
SOURCE = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3, 4))
        self.register_buffer("count", torch.zeros(()), persistent=False)
    def forward(self, input, pick):
        y = input @ self.weight.T
        self.count.add_(1)
        values, places = y.sort(dim=-1, descending=True)
        def left(v): return v + 1
        def right(v): return v * float("-inf")
        z = torch.cond(pick, left, right, (values,))
        return z, places, torch.zeros(input.shape[0] * 2 + 1, dtype=torch.bfloat16), -0.5
"""


def traced_program():
    lines = SOURCE.splitlines(True)
    linecache.cache["model.py"] = (len(SOURCE), None, lines, "model.py")
    scope = {"torch": torch, "__name__": "model"}
    exec(compile(SOURCE, "model.py", "exec"), scope)
    model = scope["Model"]()
    shapes = {"input": {0: torch.export.Dim("batch", min=2, max=9)}, "pick": None}
    inputs = (torch.arange(20.0).reshape(5, 4), torch.tensor(True))
    return torch.export.export(model, inputs, dynamic_shapes=shapes)


def main():
    golden = DATA / "golden"
    golden.mkdir(exist_ok=True)
    torch.export.save(traced_program(), golden / "traced.pt2")
    files = [DATA / "pt2" / "torch-2.15" / f"{name}.pt2" for name in PROGRAMS] + [golden / "traced.pt2"]
    for file in files:
        (golden / f"{file.stem}.txt").write_text(str(torch.export.load(file)))


if __name__ == "__main__":
    main()
