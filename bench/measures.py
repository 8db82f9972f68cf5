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


def mlp():
    nn = torch.nn
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def bert():
    import transformers

    config = transformers.BertConfig(vocab_size=1000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
                                     intermediate_size=1024, return_dict=False)
    return transformers.BertModel(config)


def run(name, wanted, make, sample, rounds=5):
    """Medians of interleaved rounds, each a median of many calls."""
    path = exported(make.__name__, make, sample)
    module = torch.export.load(path).module()
    ours, theirs = [], []
    with torch.no_grad():
        calls = max(5, min(2000, int(0.3 / median(3, lambda: module(*sample)))))
        for _ in range(rounds):
            ours.append(tenon("run", path))
            theirs.append(1e6 * median(calls, lambda: module(*sample)))
    line(name, statistics.median(ours), "us", wanted, statistics.median(theirs))


def main():
    torch.manual_seed(0)
    wide = exported("wide", Wide, (torch.randn(1, 1600),))
    line(f"open a .pt2 of {wide.stat().st_size / 1e6:.0f} MB", tenon("open", wide), "ms", "< 5 ms",
         1e3 * median(3, lambda: torch.export.load(wide)))

    x, y = torch.ones(10), torch.ones(10)

    def calls():
        for _ in range(10000):
            torch.add(x, y)
    line("eager add of ten elements", tenon("eager"), "us", "< 0.5 us", 1e6 * median(5, calls) / 10000)

    image = (torch.randn(1, 3, 224, 224),)
    resnet50 = exported("resnet50", torchvision.models.resnet50, image)
    print(f"{'resnet50, from file to lowered program':44} {tenon('lower', resnet50):8.2f} ms {'< 60 ms':>9}", flush=True)
    run("MLP 64-256-256-10, batch 1, prepared", "< 1 x", mlp, (torch.randn(1, 64),))
    run("resnet18, 224x224, prepared", "< 1.5 x", torchvision.models.resnet18, image)
    run("BERT, 4 layers of 256, 128 tokens, prepared", "< 1.5 x", bert, (torch.randint(0, 1000, (1, 128)),))


if __name__ == "__main__":
    main()
