"""Calling the built command line, and the files that tests use."""

import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TENON = os.environ.get("TENON", str(ROOT / "build" / "bin" / "tenon"))
FILES = ROOT / "tests" / "data" / "pt2" / "torch-2.15"
REFERENCE = ROOT / "tests" / "data" / "pt2" / "reference"
SPECIAL = ROOT / "tests" / "data" / "pt2" / "special"
DIGITS = ROOT / "examples" / "digits"
signal.signal(signal.SIGINT, signal.default_int_handler)  # where these tests run in the background it is ignored, and so it would be by what they start


def tenon(*arguments, cwd=None, env=None):
    return subprocess.run([TENON, *map(str, arguments)], capture_output=True, text=True, timeout=120, cwd=cwd,
                          env=os.environ | (env or {}))


def reference(name):
    with numpy.load(REFERENCE / name) as arrays:
        return {key: arrays[key] for key in arrays.files}


class CommandTest(unittest.TestCase):
    """A scratch folder, and checks of what a command line did."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)

    def good(self, *arguments, **options):
        done = tenon(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), f"tenon {' '.join(map(str, arguments))}")
        return done.stdout

    def refused(self, *arguments, status=1):
        """One sentence on stderr, which is returned without "tenon: "."""
        done = tenon(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("tenon: "), lines[0])
        self.assertNotIn("internal error", lines[0])
        return lines[0].removeprefix("tenon: ")

    def save(self, name, **arrays):
        path = self.scratch / name
        numpy.savez(path, **arrays)
        return path

    def results(self, file, *arguments):
        out = self.scratch / "results.npz"
        self.good("run", file, *arguments, "--outputs", out)
        with numpy.load(out) as arrays:
            return {key: arrays[key] for key in arrays.files}
