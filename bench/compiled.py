"""Compiles models with tenon compile and runs them beside PyTorch eager, in turn: times, sizes, ratios."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import torch
import torchvision

from measures import bert, exported, mlp

ROOT = pathlib.Path(__file__).resolve().parent.parent
TENON = ROOT / "build-bench" / "bin" / "tenon"
FILES = ROOT / "build-bench" / "files"


class SmallCnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.layers = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                                    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 14 * 14, 10))

    def forward(self, x):
        return self.layers(x)


def bert_base():
    import transformers

    return transformers.BertModel(transformers.BertConfig(return_dict=False))


def tenon(*arguments):
    done = subprocess.run([TENON, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def compile_line(name, source, wanted, library):
    times = [seconds(lambda: tenon("compile", source, "-o", library)) for _ in range(3)]
    told = json.loads(tenon("show", library, "--json"))
    print(f"{name:30} compiled in {statistics.median(times):6.3f} s (wanted {wanted} s), {told['other_bytes'] / 1024:4.0f} KB beside the weights, "
          f"{sum(told['steps'].values())} steps", flush=True)


def run_line(name, library, module, sample, rounds=5):
    ours, theirs, load = [], [], []
    with torch.no_grad():
        module(*sample)
        calls = max(3, min(2000, int(0.3 / max(seconds(lambda: module(*sample)), 1e-6))))
        for _ in range(rounds):
            told = json.loads(tenon("bench", library, "--json", "--seconds", "0.5", "--threads", os.cpu_count()))
            ours.append(told["median_ms"])
            load.append(told["load_ms"])
            theirs.append(1e3 * statistics.median(seconds(lambda: module(*sample)) for _ in range(calls)))
    mine, eager = statistics.median(ours), statistics.median(theirs)
    print(f"{'':30} {mine:9.4f} ms, PyTorch eager {eager:9.4f} ms: {eager / mine:.2f} times as fast; file to first result "
          f"{statistics.median(load):.2f} ms", flush=True)


def main():
    torch.manual_seed(0)
    image = (torch.randn(1, 3, 224, 224),)
    models = [("MLP 64-256-256-10, batch 1", mlp, (torch.randn(1, 64),), 0.10),
              ("small CNN", SmallCnn, (torch.randn(1, 1, 28, 28),), 0.15),
              ("resnet18", torchvision.models.resnet18, image, 0.3),
              ("resnet50", torchvision.models.resnet50, image, 0.5),
              ("mobilenet_v2", torchvision.models.mobilenet_v2, image, 0.3),
              ("BERT, 4 layers of 256", bert, (torch.randint(0, 1000, (1, 128)),), 0.3),
              ("BERT base, 128 tokens", bert_base, (torch.randint(0, 1000, (1, 128)),), 1.1)]
    for name, make, sample, wanted in models:
        source = exported(make.__name__, make, sample)
        library = FILES / f"{make.__name__}.so"
        compile_line(name, source, wanted, library)
        run_line(name, library, torch.export.load(source).module(), sample)
    for name, make in (("joint resnet18", torchvision.models.resnet18), ("joint BERT, 4 layers", bert)):
        joint, library = FILES / f"{make.__name__}_joint.pt2", FILES / f"{make.__name__}_joint.so"
        if not joint.exists():
            tenon("grad", FILES / f"{make.__name__}.pt2", "-o", joint)
        compile_line(name, joint, 0.6, library)


if __name__ == "__main__":
    main()
