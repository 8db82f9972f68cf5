"""Makes .pt2 files with one mistake each:  make_bad_files.py OUTDIR

OUTDIR/index.json says of each file: "verdict" ("bad", or "good" where the oddity is legal), "mistake", and "verb": "all", "run"
(only `run` without --inputs reads it), "weights" (only verbs that read the bytes of payloads: run, convert, grad), "operators"
(verbs that must know each operator: convert keeps those it does not know) "compute" (run, grad, compile) or "execute" (run, compile).
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from archive import Archive  # noqa: E402
import bad_control  # noqa: E402
import bad_graphs  # noqa: E402
import bad_older  # noqa: E402
import bad_payloads  # noqa: E402
import bad_scale  # noqa: E402
import bad_zips  # noqa: E402

BASES = pathlib.Path(__file__).resolve().parent.parent / "data" / "pt2" / "torch-2.15"


class Files:
    """Collects files; `base` gives a fresh copy of a real program."""

    def __init__(self, out):
        self.out = out
        self.index = {}
        self.known = {}

    def base(self, name="a_mlp_dynamic"):
        if name not in self.known:
            self.known[name] = Archive(BASES / f"{name}.pt2")
        return self.known[name].copy()

    def raw(self, name, data, mistake, verb="all", verdict="bad"):
        file = f"{name}.pt2"
        assert file not in self.index, file
        (self.out / file).write_bytes(data)
        self.index[file] = {"verdict": verdict, "mistake": mistake, "verb": verb}

    def add(self, name, archive, mistake, verb="all", verdict="bad"):
        self.raw(name, archive.pack(), mistake, verb, verdict)

    def model(self, name, mistake, change, base="a_mlp_dynamic", verb="all", verdict="bad"):
        """Changes the program's JSON: change(model) edits it in place, or returns another."""
        archive = self.base(base)
        model = archive.model
        changed = change(model)
        archive.model = model if changed is None else changed
        assert archive.entries["models/model.json"] != self.base(base).entries["models/model.json"], name
        self.add(name, archive, mistake, verb, verdict)

    def config(self, name, mistake, change, base="a_mlp_dynamic", kind="weights", verb="all", verdict="bad"):
        archive = self.base(base)
        config = archive.config(kind)
        changed = change(config)
        archive.set_config(kind, config if changed is None else changed)
        self.add(name, archive, mistake, verb, verdict)


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    files = Files(out)
    for part in (bad_zips, bad_graphs, bad_control, bad_payloads, bad_older, bad_scale):
        part.make(files)
    (out / "index.json").write_text(json.dumps(files.index, indent=1) + "\n")
    print(f"{len(files.index)} files")


if __name__ == "__main__":
    main()
