"""Every program of tests/interop that compiles, beside PyTorch eager: which of them are slower than that?

bench/interop_models.py [--only PREFIX ...] [--threads N] [--seconds S] [--rounds N] [--all]

Prints the programs with the time of one call in both, slowest in proportion first, and says how many are slower than eager; --all prints
every one, else the twenty slowest. Programs that Tenon refuses, that draw random numbers or that PyTorch cannot save are left out and counted."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "interop"))
TENON = ROOT / "build-bench" / "bin" / "tenon"


def eager_ms(module, program, seconds):
    import torch

    times, end = [], time.perf_counter() + seconds
    with torch.no_grad():
        for _ in range(3):
            module(*program.args, **program.kwargs)
        while len(times) < 5 or time.perf_counter() < end:
            start = time.perf_counter()
            module(*program.args, **program.kwargs)
            times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def tell(*arguments):
    done = subprocess.run([TENON, *map(str, arguments)], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def tenon_ms(library, options):
    told = tell("bench", library, "--json", "--seconds", max(options.seconds, 0.01), "--threads", options.threads)
    return json.loads(told)["median_ms"] if told else None


def measured(name, build, folder, options):
    """The times of eager and Tenon, or why there are none."""
    import torch

    program = build()
    if program.refused or program.random or not program.reload:
        return "left out"
    file, library = folder / f"{name}.pt2", folder / f"{name}.so"
    try:
        exported = torch.export.export(program.module, program.args, program.kwargs, dynamic_shapes=program.dynamic_shapes)
        torch.export.save(exported, file)
    except Exception as e:
        return f"not exported: {type(e).__name__}"
    if tell("compile", file, "-o", library) is None:
        return "not compiled"
    eager, own = [], []
    for _ in range(options.rounds):
        eager.append(eager_ms(program.module, program, options.seconds))
        own.append(tenon_ms(library, options))
        if own[-1] is None:
            return "not run"
    file.unlink(), library.unlink()
    return statistics.median(eager), statistics.median(own)


def main():
    global TENON
    parse = argparse.ArgumentParser()
    parse.add_argument("--only", nargs="*", default=[], help="names that begin so")
    parse.add_argument("--threads", type=int, default=2)
    parse.add_argument("--seconds", type=float, default=0.05, help="for each engine in each round")
    parse.add_argument("--rounds", type=int, default=3)
    parse.add_argument("--all", action="store_true", help="print every program")
    parse.add_argument("--tenon", type=pathlib.Path, default=TENON, help="the command line to measure")
    options = parse.parse_args()
    TENON = options.tenon
    import torch
    from programs import programs

    torch.set_num_threads(options.threads)
    chosen = [(n, b) for n, b in programs.items() if not options.only or any(n.startswith(o) for o in options.only)]
    times, others = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, build) in enumerate(chosen):
            if sys.stderr.isatty():
                print(f"\r\033[K{i + 1} of {len(chosen)}: {name}", end="", file=sys.stderr, flush=True)
            try:
                found = measured(name, build, pathlib.Path(folder), options)
            except ImportError:
                found = "needs a package"
            except (RuntimeError, ValueError):  # it changes its own arguments, or prints
                found = "cannot be called again and again"
            if isinstance(found, str):
                others[found] = others.get(found, 0) + 1
            else:
                times.append((found[0] / found[1], name, *found))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    times.sort()
    print(f"| {'program':40} | eager, ms | Tenon, ms | times as fast |\n|---|---|---|---|")
    for ratio, name, eager, own in times if options.all else times[:20]:
        print(f"| {name:40} | {eager:9.4g} | {own:9.4g} | {ratio:13.3g} |")
    slower = [name for ratio, name, *_ in times if ratio < 1]
    print(f"\n{len(times)} programs measured, {len(slower)} slower than eager{': ' + ', '.join(slower) if slower else ''}")
    if others:
        print("not measured: " + ", ".join(f"{count} {why}" for why, count in sorted(others.items())))


if __name__ == "__main__":
    main()
