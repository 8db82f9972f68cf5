"""Tenon beside PyTorch eager, AOTInductor, ONNX Runtime and OpenVINO, model by model, in turn: a table of ratios, and its picture.

bench/table.py [--quick] [--models TEXT] [--engines a,b] [--rounds N] [--seconds S] [--threads N] [--batch N] [--fresh]
               [--svg FILE] [--json FILE]"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TENON = ROOT / "build-bench" / "bin" / "tenon"
FILES = ROOT / "build-bench" / "files"
KEPT = ROOT / "build-bench" / "peers"  # what the other engines compiled
INFERENCE = ["eager", "aoti", "aoti frozen", "onnxruntime", "openvino"]
TRAINING = ["eager step", "compiled step"]


class Peer:
    """A process that holds one model in one engine."""

    def __init__(self, engine, model, batch, threads):
        self.environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
        KEPT.mkdir(parents=True, exist_ok=True)
        self.command = [sys.executable, pathlib.Path(__file__).parent / "peer.py", engine, model.name, str(batch), str(threads), KEPT]
        self.process = self.started()
        self.times = []
        told = self.hear()
        self.compile_seconds, self.failed = told.get("compile_seconds", 0), told.get("failed")

    def started(self, *more):
        return subprocess.Popen([*self.command, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                env=self.environment)

    def hear(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"failed": "the process died"}

    def measure(self, seconds):
        if self.failed:
            return
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        told = self.hear()
        self.failed = told.get("failed")
        if not self.failed:
            self.times.append(told["ms"])

    def close(self):
        """Returns the most memory that loading and running took, in a process that does nothing else."""
        self.process.stdin.close()
        self.process.wait()
        if self.failed:
            return None
        self.process = self.started("--memory")
        peak = self.hear().get("peak_mb")
        self.process.stdin.close()
        self.process.wait()
        return peak


class Tenon:
    """The same model, compiled by tenon."""

    failed = None

    def __init__(self, model, batch, threads):
        import numpy
        import torch

        self.threads, self.times, self.peak = threads, [], 0
        FILES.mkdir(parents=True, exist_ok=True)
        stem = FILES / "".join(c if c.isalnum() else "_" for c in f"{model.name} {batch}")
        self.compiled, source, data = stem.with_suffix(".so"), stem.with_suffix(".pt2"), stem.with_suffix(".npz")
        torch.manual_seed(0)
        module, sample = model.make(), model.inputs(batch)
        torch.export.save(torch.export.export(module.train() if model.classes else module.eval(), sample), source)
        start = time.perf_counter()
        if model.classes:
            arrays = {f"arr_{i}": x.numpy() for i, x in enumerate(sample)}
            target = numpy.random.default_rng(0).integers(0, model.classes, batch)
            numpy.savez(data, **arrays, target=target)
            self.tell("train", source, "--data", data, "-o", stem.with_suffix(".out.pt2"), "--optimizer", "adamw,lr=1e-3", "--step", self.compiled)
            numpy.savez(data, **arrays, **{f"arr_{len(arrays)}": target})
            self.inputs = ["--inputs", data]
        else:
            self.tell("compile", source, "-o", self.compiled)
            self.inputs = ["--huge-pages"] if model.huge_pages else []
        self.compile_seconds = time.perf_counter() - start
        if model.classes:  # the time of one step aside, training needs more files than compiling
            self.compile_seconds = None

    def tell(self, *arguments):
        done = subprocess.run([TENON, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            self.failed = (done.stderr.strip().splitlines() or ["?"])[-1][:200]
        return done.stdout

    def measure(self, seconds):
        if self.failed:
            return
        told = self.tell("bench", self.compiled, *self.inputs, "--json", "--seconds", max(seconds, 0.01), "--threads", self.threads)
        if not self.failed:
            told = json.loads(told)
            self.times.append(told["median_ms"])
            self.peak = told["peak_bytes"] / 1e6

    def close(self):
        return self.peak


def measured(model, options):
    batch = options.batch if options.batch and not model.classes else model.batch
    engines = {"tenon": Tenon(model, batch, options.threads)}
    for engine in TRAINING if model.classes else INFERENCE:
        if not options.engines or engine in options.engines:
            engines[engine] = Peer(engine, model, batch, options.threads)
    for _ in range(options.rounds):
        for engine in engines.values():
            engine.measure(options.seconds)
            time.sleep(0.05)
    out = {"model": model.name, "batch": batch, "asked": model.asked}
    for name, e in engines.items():
        peak = e.close()
        out[name] = {"failed": e.failed} if e.failed else {"ms": statistics.median(e.times), "compile_s": e.compile_seconds, "peak_mb": peak}
    best = min((out[n]["ms"] for n in engines if n != "tenon" and "ms" in out[n]), default=None)
    if best and "ms" in out["tenon"]:
        out["ratio"] = best / out["tenon"]["ms"]
    return out


def number(x):
    return "-" if x is None else f"{x:.4g}"


def row(result):
    def cell(name):
        told = result.get(name, {})
        return number(told.get("ms")) if "failed" not in told else "failed"

    names = INFERENCE if "eager" in result or "eager step" not in result else TRAINING
    return [result["model"] + (f", batch {result['batch']}" if result["batch"] != 1 and "train" not in result["model"] else ""), cell("tenon"),
            *(cell(n) for n in names), number(result.get("ratio")), number(result["asked"] or None)]


def table(results, names):
    lines = [["model (ms)", "Tenon", *names, "to the best", "asked"]] + [row(r) for r in results]
    return "\n".join("| " + " | ".join(line) + " |" + ("\n|" + "---|" * len(line) if i == 0 else "") for i, line in enumerate(lines))


def beside(results, what, scale=1):
    """Compile seconds or peak memory: Tenon's, and the least of the peers'."""
    lines = []
    for r in results:
        peers = [r[n][what] for n in INFERENCE + TRAINING if n in r and r[n].get(what) is not None]
        own = r["tenon"].get(what)
        lines.append(f"| {r['model']} | {number(own)} | {number(min(peers) if peers else None)} |")
    return "\n".join(lines)


def picture(results, machine):
    """Bars: how many times as fast as the best peer. One is a tie."""
    shown = [r for r in results if "ratio" in r]
    width, left, line, top = 760, 250, 26, 56
    most = max([r["ratio"] for r in shown] + [r["asked"] for r in shown] + [1.5])
    at = lambda x: left + (width - left - 70) * x / most
    height = top + line * len(shown) + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           '<text x="16" y="22" font-size="15" font-weight="bold">Times as fast as the best of the peers</text>',
           f'<text x="16" y="40" fill="#666">{machine}</text>']
    for i, r in enumerate(shown):
        y = top + i * line
        colour = "#2a7f62" if r["ratio"] >= 1 else "#b5523b"
        out.append(f'<text x="{left - 10}" y="{y + 16}" text-anchor="end">{r["model"]}</text>')
        out.append(f'<rect x="{left}" y="{y + 3}" width="{at(r["ratio"]) - left:.1f}" height="{line - 8}" fill="{colour}"/>')
        out.append(f'<text x="{at(r["ratio"]) + 6:.1f}" y="{y + 16}">{r["ratio"]:.2f}</text>')
        if r["asked"]:
            out.append(f'<path d="M{at(r["asked"]):.1f} {y + 1}v{line - 4}" stroke="#222" stroke-width="2"/>')
    end = top + line * len(shown)
    out.append(f'<path d="M{at(1):.1f} {top - 4}V{end + 4}" stroke="#888" stroke-dasharray="4 3"/>')
    out.append(f'<text x="{at(1):.1f}" y="{end + 20}" text-anchor="middle" fill="#666">1: a tie; black marks: what was asked</text></svg>')
    return "\n".join(out) + "\n"


def machine_name(threads):
    model = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    wide = "AVX-512" if " avx512f " in open("/proc/cpuinfo").read() else "AVX2"
    return f"{model}, {os.cpu_count()} processors, {wide}, {threads} threads, {platform.system()} {platform.release().split('-')[0]}"


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--quick", action="store_true", help="small models, few rounds")
    parse.add_argument("--models", default="", help="those whose name contains it")
    parse.add_argument("--engines", default="", help="peers to run, with commas between; all by default")
    parse.add_argument("--rounds", type=int)
    parse.add_argument("--seconds", type=float, help="for each engine in each round")
    parse.add_argument("--threads", type=int, default=2)
    parse.add_argument("--batch", type=int, help="of inference; 1 by default")
    parse.add_argument("--fresh", action="store_true", help="the other engines compile anew; otherwise what they compiled before is used")
    parse.add_argument("--svg")
    parse.add_argument("--json")
    options = parse.parse_args()
    options.engines = [e for e in options.engines.split(",") if e]
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.seconds = options.seconds or (0.2 if options.quick else 1.0)
    import models

    if options.fresh:
        shutil.rmtree(KEPT, ignore_errors=True)
    results = {"inference": [], "training": []}
    for kind, list_of in (("inference", models.INFERENCE), ("training", models.TRAINING)):
        for model in list_of:
            if options.models.lower() in model.name.lower() and (model.quick or not options.quick):
                results[kind].append(measured(model, options))
                print("\t".join(row(results[kind][-1])), file=sys.stderr, flush=True)
    everything = results["inference"] + results["training"]
    machine = machine_name(options.threads)
    print(f"{machine}; medians of {options.rounds} rounds in turn\n")
    for kind, names in (("inference", INFERENCE), ("training", TRAINING)):
        if results[kind]:
            print(table(results[kind], names), end="\n\n")
    print("| compiling, s | Tenon | least of the peers |\n|---|---|---|\n" + beside(everything, "compile_s"), end="\n\n")
    print("| peak memory, MB | Tenon | least of the peers |\n|---|---|---|\n" + beside(everything, "peak_mb"))
    if options.svg:
        pathlib.Path(options.svg).write_text(picture(everything, machine))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"machine": machine, **results}, indent=1))


if __name__ == "__main__":
    main()
