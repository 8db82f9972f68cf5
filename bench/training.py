"""A training step of Tenon beside one of PyTorch, on the same model, weights and batch: time per step and memory.

training.py [--threads N] [NAME ...]  Each way runs in a process of its own, one after the other; times are the lowest, so that other work on
the machine counts little. Memory is the most that was resident: of Tenon the whole process with the mapped files, of PyTorch what came
on top of the library.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = 16


def mlp():
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)), torch.randn(64, 256), 10


def digits():
    sys.path.insert(0, str(ROOT / "examples" / "digits"))
    from export_digits import DigitsCnn

    return DigitsCnn(dropout=0.0), torch.randn(64, 1, 8, 8), 10


def resnet18():
    from torchvision.models import resnet18

    return resnet18(num_classes=10), torch.randn(4, 3, 64, 64), 10


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 64, num_layers=2, batch_first=True), nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True, activation="gelu", norm_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.layers(x)[:, -1])


MODELS = {
    "perceptron, batch 64": mlp,
    "digits network, batch 64": digits,
    "resnet18, batch 4, 64x64": resnet18,
    "LSTM, 2 layers, batch 16": lambda: (Lstm(), torch.randn(16, 24, 32), 10),
    "transformer, 2 layers, batch 8": lambda: (Transformer(), torch.randn(8, 64, 128), 10),
}


def resident(which):
    """VmRSS now, or VmHWM, the most since clear_refs was written."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(rf"{which}:\s+(\d+) kB", status)[1]) * 1024


def in_pytorch(name, threads):
    """In a process of its own: prints seconds per step and bytes."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    torch.randn(8, 8).mm(torch.randn(8, 8))  # what every process loads
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    model, x, classes = MODELS[name]()
    target = torch.arange(len(x)) % classes
    optimizer = torch.optim.AdamW(model.parameters())
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    print(json.dumps({"step": min(times[3:]), "bytes": resident("VmHWM") - before}))


def epochs_of_tenon(program, folder, name, batches, threads):
    """The shortest epoch of so many batches, in seconds, and the most bytes of the process."""
    torch.manual_seed(0)
    model, x, classes = MODELS[name]()
    file, data = folder / "model.pt2", folder / "data.npz"
    if not file.exists():
        torch.export.save(torch.export.export(model.train(), (x,)), file)
    (given,) = torch.export.load(file).graph_signature.user_inputs
    target = (torch.arange(len(x)) % classes).numpy()
    numpy.savez(data, **{given: numpy.concatenate([x.numpy()] * batches), "target": numpy.concatenate([target] * batches)})
    command = ["/usr/bin/env", "time", "-v"] if pathlib.Path("/usr/bin/time").exists() else []
    done = subprocess.run([*command, program, "train", file, "--data", data, "--optimizer", "adamw", "--epochs", "6", "--batch", str(len(x)),
                           "--threads", str(threads), "--json", "-o", folder / "out.pt2"], capture_output=True, text=True, check=True)
    most = re.search(r"Maximum resident set size \(kbytes\): (\d+)", done.stderr)
    times = [json.loads(line)["seconds"] for line in done.stdout.splitlines()]
    return min(times[1:]), int(most[1]) * 1024 if most else None


def in_tenon(program, folder, name, threads):
    """By the difference of long and short epochs, so that saving the state, once an epoch, does not count."""
    (short, size), (long, _) = (epochs_of_tenon(program, folder, name, batches, threads) for batches in (2, 2 + STEPS))
    return {"step": (long - short) / STEPS, "bytes": size}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of models")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--pytorch", help=argparse.SUPPRESS)  # the model to run here
    options = parser.parse_args()
    if options.pytorch:
        return in_pytorch(options.pytorch, options.threads)
    program = next((p for p in (ROOT / "build-bench" / "bin" / "tenon", ROOT / "build" / "bin" / "tenon") if p.exists()), None)
    if not program:
        sys.exit("build/bin/tenon is missing: run make first")
    names = [name for name in MODELS if not options.names or any(part in name for part in options.names)]
    print(f"{'training step (AdamW)':34}{'Tenon':>12}{'PyTorch':>12}{'ratio':>8}{'memory':>12}{'PyTorch':>12}")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            ours = in_tenon(program, pathlib.Path(folder), name, options.threads)
        other = [sys.executable, __file__, "--pytorch", name, "--threads", str(options.threads)]
        theirs = json.loads(subprocess.run(other, capture_output=True, text=True, check=True).stdout)
        memory = f"{ours['bytes'] / 2**20:9.0f} MB" if ours["bytes"] else "-"
        print(f"{name:34}{ours['step'] * 1e3:9.2f} ms{theirs['step'] * 1e3:9.2f} ms{theirs['step'] / ours['step']:8.2f}{memory:>12}"
              f"{theirs['bytes'] / 2**20:9.0f} MB", flush=True)


main()
