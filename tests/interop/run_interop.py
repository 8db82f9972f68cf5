"""Every program of programs.py through Tenon and back into real PyTorch:  run_interop.py [--only PREFIX ...]

Of each: `tenon show`; `tenon run` against the references; `tenon grad --wrt all` and a run of the joint program against
PyTorch's gradients; `tenon convert`, after which PyTorch loads the file with equal outputs, signature and ranges; the joint
program loaded and run by PyTorch. Then the same for the small files that several releases of PyTorch wrote: what this PyTorch
gets from the converted file is compared with what the release itself got; those before 2.7 it could not read otherwise.
Exports are made once into build/interop and again when the programs change.
"""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
from compare import compare, load  # noqa: E402

FIRST_READ = (2, 7)  # the oldest release whose files this PyTorch reads
COLUMNS = ("show", "run", "grad", "convert", "joint")


class Failure(Exception):
    pass


def tenon(options, *arguments):
    done = subprocess.run([options.tenon, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise Failure(f"tenon {arguments[0]}: status {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


class Case:
    """One .pt2 file with its references: (stem, information) for each set of inputs."""

    def __init__(self, file, references):
        self.file = file
        in_release = file.parent.name.startswith("torch-")
        self.name = f"{file.parent.name}/{file.stem}" if in_release else file.stem
        self.release = tuple(map(int, file.parent.name.removeprefix("torch-").split("."))) if in_release else None
        # Files of other releases have numbers of their own beside them where those differ from the newest release's.
        self.folder = references = file.parent if (file.parent / f"{file.stem}.json").exists() else references
        self.sets = []
        for path in sorted(references.glob(f"{file.stem}.json")) + sorted(references.glob(f"{file.stem}.[0-9]*.json")):
            self.sets.append((path.name.removesuffix(".json"), json.loads(path.read_text())))
        self.info = self.sets[0][1]

    def inputs(self, stem, info):
        """What the command line needs to run with this set of inputs."""
        path = self.folder / f"{stem}.in.npz"
        return [] if info["shared"] or not path.exists() else ["--inputs", path]

    def reference(self, stem, gradient):
        results = load(self.folder / f"{stem}.out.npz")
        return results | (load(self.folder / f"{stem}.grad.npz") if gradient else {})


def check_run(options, case, file, scratch, gradient):
    for stem, info in case.sets:
        if gradient and not info["gradient"]:
            continue
        out = scratch / f"{stem}.npz"
        tenon(options, "run", file, *case.inputs(stem, info), "--outputs", out)
        if info["random"]:
            continue
        reference = case.reference(stem, gradient)
        keys = {key: value for key, value in info["keys"].items() if key in reference}
        mistakes = compare(load(out), reference, keys)
        if mistakes:
            raise Failure(f"{stem}: " + "; ".join(mistakes[:4]) + (f"; and {len(mistakes) - 4} more" if len(mistakes) > 4 else ""))


def check_refused(options, case, scratch):
    """What computes it ends in one sentence that names the operator, and leaves nothing behind; it is shown with that sentence."""
    for verb in ("show", "run", "grad", "compile"):
        out = scratch / "refused"
        more = ["-o", out] if verb in ("grad", "compile") else []
        done = subprocess.run([options.tenon, verb, case.file, *more], capture_output=True, text=True)
        named = done.returncode == 1 and done.stderr.count("\n") == 1 and case.info["refused"] in done.stderr
        shown = case.info["refused"] in done.stdout
        if not named or out.exists() or shown != (verb == "show"):
            raise Failure(f"{verb}: expected a refusal that names {case.info['refused']}, got {done.returncode}: {done.stderr[:300]}")


def check_converted(case, converted):
    """This PyTorch must get from the converted file what the release that exported it got."""
    import torch_side
    for stem, info in case.sets:
        if info["random"]:
            continue
        reference = case.reference(stem, info["gradient"])
        got = torch_side.run_converted(converted, load(case.folder / f"{stem}.in.npz"), info["shared"], info["gradient"])
        mistakes = compare(got, reference, {key: value for key, value in info["keys"].items() if key in reference})
        if mistakes:
            raise Failure(f"{stem}, converted: " + "; ".join(mistakes[:4]))


def check_case(options, case):
    """The outcome of each column: "ok", "-" where there is nothing to ask, or what is wrong."""
    import torch_side
    outcome = dict.fromkeys(COLUMNS, "-")

    def column(name, check, *arguments):
        try:
            check(*arguments)
            outcome[name] = "ok"
        except torch_side.Unchecked:
            pass
        except (Failure, torch_side.Difference, subprocess.TimeoutExpired) as error:
            outcome[name] = str(error)
        except Exception as error:  # PyTorch refused the file
            outcome[name] = f"{type(error).__name__}: {str(error).strip()[:300]}"

    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        joint, converted = scratch / "joint.pt2", scratch / "converted.pt2"
        if case.info.get("refused"):
            column("run", check_refused, options, case, scratch)
        else:
            column("show", lambda: tenon(options, "show", case.file))
            column("run", check_run, options, case, case.file, scratch, False)

        def convert():
            tenon(options, "convert", case.file, converted)
            if not case.info["reload"]:
                return
            if case.release is None or (case.release >= FIRST_READ and not case.info.get("retired")):
                torch_side.same_program(case.file, converted)
            if case.release is not None:
                check_converted(case, converted)
        column("convert", convert)
        if case.info["gradient"]:
            def grad():
                tenon(options, "grad", case.file, "-o", joint, "--wrt", "all")
                check_run(options, case, joint, scratch, True)
            column("grad", grad)
            if joint.exists():
                def both():
                    for stem, info in case.sets:
                        got = torch_side.run_joint(joint, load(case.folder / f"{stem}.in.npz"), info["shared"],
                                                   case.reference(stem, False))
                        reference = load(case.folder / f"{stem}.grad.npz")
                        mistakes = compare({key: v for key, v in got.items() if key.startswith("grad.")}, reference,
                                           {key: v for key, v in info["keys"].items() if key in reference})
                        if mistakes:
                            raise Failure(f"{stem}: " + "; ".join(mistakes[:4]))
                column("joint", both)
    return case.name, outcome


def exports(options):
    """The folder of exported programs, made anew when the programs or PyTorch changed."""
    sources = sorted(HERE.glob("programs*.py")) + [HERE / n for n in ("export_programs.py", "reference.py", "strip.py")]
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in [*sources, ROOT / "tests" / "requirements.txt"])).hexdigest()
    folder = options.exports
    stamp = folder / "stamp"
    if not stamp.exists() or stamp.read_text() != digest:
        print("exporting programs with PyTorch ...", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*"):
            old.unlink()
        log = folder / "export.log"
        with open(log, "w") as out:
            done = subprocess.run([sys.executable, HERE / "export_programs.py", folder], stdout=out, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            sys.exit(f"the export of programs failed:\n{log.read_text()[-3000:]}")
        stamp.write_text(digest)
    return folder


def all_cases(options):
    small = options.files or ROOT / "tests" / "data" / "pt2"
    found = [Case(f, small / "reference") for release in sorted(small.glob("torch-*")) for f in sorted(release.glob("*.pt2"))]
    if not options.small and not options.files:
        folder = exports(options)
        found = [Case(f, folder) for f in sorted(folder.glob("*.pt2"))] + found
    return [case for case in found if not options.only or any(case.file.stem.startswith(word) for word in options.only)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default=str(ROOT / "build" / "bin" / "tenon"))
    parser.add_argument("--exports", type=pathlib.Path, default=ROOT / "build" / "interop")
    parser.add_argument("--small", action="store_true", help="only the committed files")
    parser.add_argument("--files", type=pathlib.Path, help="a folder of torch-X.Y folders, instead of the committed files")
    parser.add_argument("--only", nargs="*", default=[], help="only programs whose names start so: a_mlp, d_")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--totals", help="a file to append \"passed failed\" to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    cases = all_cases(options)
    wrong, passed, failed = [], 0, 0
    print(f"{'program':44}" + "".join(f"{c:>9}" for c in COLUMNS))
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for name, outcome in pool.map(check_case, [options] * len(cases), cases):
            marks = ["-" if o == "-" else "ok" if o == "ok" else "WRONG" for o in outcome.values()]
            print(f"{name:44}" + "".join(f"{m:>9}" for m in marks), flush=True)
            passed += marks.count("ok")
            failed += marks.count("WRONG")
            wrong += [f"{name}, {column}: {o}" for column, o in outcome.items() if o not in ("ok", "-")]
    for line in wrong:
        print(line)
    print(f"{passed} passed, {failed} failed")
    if options.totals:
        with open(options.totals, "a") as out:
            out.write(f"{passed} {failed}\n")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
