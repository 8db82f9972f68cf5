"""Runs build-bench/bin/measures and the same things in PyTorch, in turn, and prints both."""

import pathlib
import statistics
import subprocess
import sys
import time

import torch
import torchvision

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEASURES = ROOT / "build-bench" / "bin" / "measures"
FILES = ROOT / "build-bench" / "files"


class Wide(torch.nn.Module):
    """100 MB of weights."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*[torch.nn.Linear(1600, 1600) for _ in range(10)])

    def forward(self, x):
        return self.layers(x)


def exported(name, make, sample):
    path = FILES / f"{name}.pt2"
    if not path.exists():
        FILES.mkdir(parents=True, exist_ok=True)
        torch.export.save(torch.export.export(make().eval(), sample), path)
    return path


def tenon(*arguments):
    out = subprocess.run([MEASURES, *map(str, arguments)], capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(out.stderr)
    return float(out.stdout.split()[1])


def median(runs, function):
    function()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def line(name, ours, unit, wanted, theirs):
    print(f"{name:44} {ours:8.2f} {unit:2} {wanted:>9} {theirs:8.2f} {unit}  ({ours / theirs:.2f} x)", flush=True)


def main():
    torch.manual_seed(0)
    wide = exported("wide", Wide, (torch.randn(1, 1600),))
    line(f"open a .pt2 of {wide.stat().st_size / 1e6:.0f} MB", tenon("open", wide), "ms", "< 50 ms",
         1e3 * median(3, lambda: torch.export.load(wide)))

    x, y = torch.ones(10), torch.ones(10)

    def calls():
        for _ in range(10000):
            torch.add(x, y)
    line("eager add of ten elements", tenon("eager"), "us", "< 2 us", 1e6 * median(5, calls) / 10000)

    image = (torch.randn(1, 3, 224, 224),)
    resnet = exported("resnet18", torchvision.models.resnet18, image)
    module = torch.export.load(resnet).module()
    with torch.no_grad():
        theirs = median(5, lambda: module(*image))
    line("resnet18, 224x224, interpreter", tenon("run", resnet), "s", "< 2 s", theirs)


if __name__ == "__main__":
    main()
