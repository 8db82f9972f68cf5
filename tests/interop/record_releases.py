"""Records the small programs with other releases of PyTorch:  record_releases.py 2.4.1 2.5.1 ... [--python PATH]

Each release is installed into a virtual environment that is deleted afterwards (several GB), unless --python names one that
is there. Files go to tests/data/pt2/torch-X.Y; inputs and numbers beside them only where this release's are not those of
tests/data/pt2/reference, where the newest release has its own.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from compare import compare, load  # noqa: E402

DATA = HERE.parent / "data" / "pt2"


def install(release, folder):
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-cache-dir", f"torch=={release}", "numpy<2"], check=True)
    return python


def same_inputs(a, b):
    return a.keys() == b.keys() and all(a[k].dtype == b[k].dtype and a[k].tobytes() == b[k].tobytes() for k in a)


def as_in_reference(stem, folder):
    """Whether the committed reference has the same inputs and results for this set of inputs."""
    if not (DATA / "reference" / f"{stem}.json").exists():
        return False
    mine, theirs = (json.loads((at / f"{stem}.json").read_text()) for at in (folder, DATA / "reference"))
    for key in ("mixed", "random", "shared", "gradient", "reload"):
        if mine[key] != theirs[key]:
            return False
    if not same_inputs(load(folder / f"{stem}.in.npz"), load(DATA / "reference" / f"{stem}.in.npz")):
        return False
    for kind in ("out", "grad"):
        results, reference = (load(at / f"{stem}.{kind}.npz") for at in (folder, DATA / "reference"))
        # Reference runs are stored as they are, in float64 for programs of one dtype.
        keys = {key: {"dtype": value.dtype.name, "error": None} for key, value in reference.items()}
        if compare(results, reference, keys) or any(mine["keys"][key]["dtype"] != theirs["keys"][key]["dtype"] for key in keys):
            return False
    return True


def record(release, python):
    out = DATA / f"torch-{'.'.join(release.split('.')[:2])}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        subprocess.run([python, HERE / "export_programs.py", folder, "--small"], check=True)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        for file in sorted(folder.glob("*.pt2")):
            shutil.copy(file, out)
            infos = [p.name.removesuffix(".json") for p in folder.glob(f"{file.stem}.json")]
            infos += [p.name.removesuffix(".json") for p in folder.glob(f"{file.stem}.[0-9]*.json")]
            if all(as_in_reference(stem, folder) for stem in infos):
                continue
            for own in [p for stem in infos for p in folder.glob(f"{stem}.*") if p.suffix != ".pt2"]:
                shutil.copy(own, out)
        if (folder / "skipped.txt").exists():
            shutil.copy(folder / "skipped.txt", out)
    files = list(out.iterdir())
    print(f"{out.name}: {len(list(out.glob('*.pt2')))} programs, {len(list(out.glob('*.json')))} with numbers of their own, "
          f"{sum(f.stat().st_size for f in files)} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="+", help="2.4.1 2.5.1 ...")
    parser.add_argument("--python", help="of an environment that has this one release")
    options = parser.parse_args()
    for release in options.releases:
        if options.python:
            record(release, options.python)
            continue
        with tempfile.TemporaryDirectory() as folder:
            record(release, install(release, pathlib.Path(folder)))


if __name__ == "__main__":
    main()
