"""Operators of the user: examples/custom_op, built and named with --ops, in every verb; libraries that are wrong."""

import os
import subprocess
import unittest

import numpy

from command import ROOT, CommandTest, tenon

EXAMPLE = ROOT / "examples" / "custom_op"


def build(source, out):
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT / 'runtime' / 'include'}",
                    source, "-o", out], check=True)


class CustomOps(CommandTest):
    def setUp(self):
        super().setUp()
        self.mylib = self.scratch / "mylib.so"
        build(EXAMPLE / "mylib.c", self.mylib)
        with numpy.load(EXAMPLE / "reference.npz") as arrays:
            self.reference = {key: arrays[key] for key in arrays.files}

    def ran(self, file):
        """Results, and what the effects printed."""
        out = self.scratch / "out.npz"
        done = tenon("run", file, "--ops", self.mylib, "--outputs", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        with numpy.load(out) as arrays:
            return {key: arrays[key] for key in arrays.files}, done.stderr.splitlines()

    def compiled(self, file):
        out = self.scratch / "compiled.so"
        done = tenon("compile", file, "-o", out, "--ops", self.mylib)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return out

    def same(self, got, name):
        numpy.testing.assert_allclose(got, self.reference[name], rtol=1e-5, atol=1e-5)

    def test_programs_with_writes_and_effects_run_and_compile(self):
        for name in ("model", "model_decomposed"):
            for file in (EXAMPLE / f"{name}.pt2", self.compiled(EXAMPLE / f"{name}.pt2")):
                results, said = self.ran(file)
                self.same(results["output_0"], "loss")
                self.same(results["output_1"], "y")
                self.same(results["buffer.total"], "total")
                self.assertEqual([line.split(":")[0] for line in said], ["layer", "distances"])

    def test_the_older_form_of_a_writing_call_runs(self):
        for file in (EXAMPLE / "model_old.pt2", self.compiled(EXAMPLE / "model_old.pt2")):
            self.same(self.ran(file)[0]["output_0"], "old")

    def test_a_size_that_the_kernel_tells(self):
        for file in (EXAMPLE / "positive.pt2", self.compiled(EXAMPLE / "positive.pt2")):
            self.same(self.ran(file)[0]["output_0"], "positive")

    def test_gradients_are_pytorchs(self):
        for name in ("model", "model_decomposed"):
            joint = self.scratch / f"{name}_joint.pt2"
            self.assertEqual(tenon("grad", EXAMPLE / f"{name}.pt2", "-o", joint, "--ops", self.mylib).returncode, 0)
            for file in (joint, self.compiled(joint)):
                results, said = self.ran(file)
                for key in self.reference:
                    if key.startswith("grad."):
                        self.same(results[key], key)
                self.assertEqual(len(said), 2)

    def test_unknown_operators_are_shown_and_converted(self):
        for name in ("model", "model_decomposed", "model_old", "positive"):
            file, out = EXAMPLE / f"{name}.pt2", self.scratch / "converted.pt2"
            shown = tenon("show", file)
            self.assertIn("torch.ops.mylib.", shown.stdout)
            self.assertIn("Tenon does not have", shown.stderr)
            self.assertEqual(tenon("convert", file, out).returncode, 0)
            self.assertEqual(tenon("show", out).stdout, shown.stdout)
            self.assertIn("not supported: torch.ops.mylib.", self.refused("run", file))
            self.assertEqual(tenon("show", file, "--ops", self.mylib).returncode, 0)

    def test_a_compiled_program_names_what_it_misses(self):
        self.assertIn("the artifact calls 'mylib::", self.refused("run", self.compiled(EXAMPLE / "model.pt2")))

    def test_ops_lists_them(self):
        self.assertIn("mylib::distances ", self.good("ops", "--ops", self.mylib))

    def test_nothing_is_loaded_by_itself(self):
        done = tenon("run", EXAMPLE / "positive.pt2", cwd=self.scratch, env={"LD_LIBRARY_PATH": str(self.scratch)})
        self.assertEqual(done.returncode, 1)

    def test_wrong_libraries_are_refused(self):
        table = """#include <tenon/operator_table.h>
        static int kernel(const struct tenon_host_call* call, int64_t lo, int64_t hi) {{ (void)call, (void)lo, (void)hi; return 0; }}
        static const tenon_operator operators[] = {{{{.schema = "{schema}", .results = "{results}", .kernel = {kernel}}}}};
        const tenon_operator_table* tenon_operators(void) {{
          static const tenon_operator_table table = {{{version}, sizeof(tenon_operator), {count}, operators}};
          (void)kernel;
          return &table;
        }}"""
        good = {"schema": "bad::op(Tensor x) -> Tensor", "results": "x", "kernel": "kernel", "version": 1, "count": 1}
        for changes, sentence in (({"version": 7}, "has version 7, this Tenon reads version 1"),
                                  ({"count": 0}, "holds 0 entries"),
                                  ({"schema": "bad::op(Tensor x"}, "expected a schema such as"),
                                  ({"schema": "aten::op(Tensor x) -> Tensor"}, "is not the user's"),
                                  ({"results": "y"}, "expected an argument or a dtype"),
                                  ({"results": "x[n] -> x[k]"}, "is named by no argument"),
                                  ({"kernel": "NULL"}, "it has no kernel")):
            source, out = self.scratch / "bad.c", self.scratch / "bad.so"
            source.write_text(table.format(**(good | changes)))
            build(source, out)
            self.assertIn(sentence, self.refused("run", EXAMPLE / "positive.pt2", "--ops", out))
        source.write_text("int nothing;\n")
        build(source, out)
        self.assertIn("does not export tenon_operators", self.refused("run", EXAMPLE / "positive.pt2", "--ops", out))
        self.assertIn("cannot be loaded", self.refused("run", EXAMPLE / "positive.pt2", "--ops", self.scratch / "none.so"))
        source.write_text("not a library")
        self.assertIn("cannot be loaded", self.refused("run", EXAMPLE / "positive.pt2", "--ops", source))


if __name__ == "__main__":
    unittest.main()
