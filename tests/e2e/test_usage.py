"""Help, versions, exit statuses, and files that cannot be read or written."""

import json
import os
import subprocess
import unittest

from command import DIGITS, FILES, TENON, CommandTest, tenon

MLP = FILES / "a_mlp.pt2"


class Usage(CommandTest):
    def test_version(self):
        self.assertRegex(self.good("--version"), r"^tenon \d+\.\d+\.\d+\n$")

    def test_an_unknown_verb_is_named(self):
        self.assertIn("got 'frobnicate'", self.refused("frobnicate", status=2))

    def test_every_verb_has_help_with_an_example(self):
        for verb in ("show", "run", "grad", "convert", "train", "ops", "doctor"):
            self.assertIn("Example:\n  tenon " + verb, self.good(verb, "--help"))
            self.assertIn(verb, self.good("--help"))

    def test_a_usage_error_has_status_2_and_points_to_the_help(self):
        for arguments in ([], ["fly"], ["show"], ["show", MLP, "more"], ["show", MLP, "--after=nowhere"], ["run", MLP, "--threads", "0"],
                          ["run", MLP, "--seed", "x"], ["run", MLP, "--input", "x"], ["grad", MLP], ["convert", MLP],
                          ["show", MLP, "--of", "loss"]):
            self.assertIn("--help", self.refused(*arguments, status=2), arguments)

    def test_an_unknown_stage_lists_the_stages(self):
        self.assertIn("normalized", self.refused("show", MLP, "--after=nowhere", status=2))


class Files(CommandTest):
    def verbs(self, file):
        out = self.scratch / "out.pt2"
        return (["show", file], ["run", file], ["grad", file, "-o", out], ["convert", file, out])

    def refused_by_all(self, file):
        for arguments in self.verbs(file):
            yield self.refused(*arguments)
        self.assertFalse((self.scratch / "out.pt2").exists())

    def test_a_missing_file(self):
        for message in self.refused_by_all(self.scratch / "none.pt2"):
            self.assertIn("none.pt2", message)
            self.assertIn("No such file", message)

    def test_a_folder(self):
        for message in self.refused_by_all(self.scratch):
            self.assertIn("folder", message)

    def test_an_empty_file(self):
        (self.scratch / "empty.pt2").touch()
        for message in self.refused_by_all(self.scratch / "empty.pt2"):
            self.assertIn("empty", message)

    def test_no_zip(self):
        (self.scratch / "text.pt2").write_text("hello")
        for message in self.refused_by_all(self.scratch / "text.pt2"):
            self.assertIn("text.pt2", message)
            self.assertIn("zip", message)

    def test_the_input_is_not_overwritten(self):
        copy = self.scratch / "copy.pt2"
        copy.write_bytes(MLP.read_bytes())
        os.symlink(copy, self.scratch / "link.pt2")
        for out in (copy, self.scratch / "link.pt2", self.scratch / "." / "copy.pt2"):
            self.assertIn("overwrite", self.refused("convert", copy, out))
            self.assertIn("overwrite", self.refused("grad", copy, "-o", out))
            self.assertIn("overwrite", self.refused("run", copy, "--outputs", out))
        self.assertEqual(copy.read_bytes(), MLP.read_bytes())

    def test_an_output_in_a_missing_folder(self):
        out = self.scratch / "no" / "out.pt2"
        for arguments in (["convert", MLP, out], ["grad", MLP, "-o", out], ["run", MLP, "--outputs", out]):
            self.assertIn("no folder", self.refused(*arguments))

    def test_an_output_that_is_a_folder(self):
        for arguments in (["convert", MLP, self.scratch], ["grad", MLP, "-o", self.scratch], ["run", MLP, "--outputs", self.scratch]):
            self.assertIn("it is a folder", self.refused(*arguments))

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_full_standard_output(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TENON, "ops"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)

    def test_no_progress_in_a_pipe(self):
        self.assertEqual(tenon("run", DIGITS / "digits_cnn_eval.pt2").stderr, "")


class Lists(CommandTest):
    def test_ops_as_text(self):
        line = next(line for line in self.good("ops").splitlines() if line.startswith("aten::sigmoid "))
        self.assertIn("pointwise", line)
        self.assertIn("vjp", line)

    def test_ops_as_json(self):
        ops = {op["name"]: op for op in json.loads(self.good("ops", "--json"))}
        self.assertEqual(ops["aten::sigmoid"]["kind"], "pointwise")
        self.assertIn("scalar", ops["aten::sigmoid"]["rules"])
        self.assertEqual(list(ops), sorted(ops))

    def test_doctor(self):
        text = self.good("doctor")
        for word in ("tenon", "compiler", "processor", "threads", "limits"):
            self.assertIn(word, text)

    def test_doctor_without_a_compiler(self):
        self.assertIn("none found", self.good("doctor", env={"PATH": str(self.scratch), "CXX": ""}))
