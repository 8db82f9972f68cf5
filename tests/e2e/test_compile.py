"""tenon compile, and what run, show and bench do with its files."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import numpy

from command import DIGITS, FILES, REFERENCE, ROOT, TENON, CommandTest, reference, tenon


class Compile(CommandTest):
    def compiled(self, file, *arguments):
        out = self.scratch / (file.stem + ".so")
        self.good("compile", file, "-o", out, *arguments)
        return out

    def test_gives_the_numbers_that_pytorch_gave(self):
        for name in ("a_mlp", "a_mlp_dynamic", "b_odd_cnn_eval", "h_mutated_input", "i_statistics", "j_nested_inputs", "k_reductions"):
            expected = reference(f"{name}.out.npz")
            results = self.results(self.compiled(FILES / f"{name}.pt2"), "--inputs", REFERENCE / f"{name}.in.npz")
            for key, array in expected.items():
                off = 2e-3 if array.dtype == numpy.float16 else 2e-4
                numpy.testing.assert_allclose(results[key], array, rtol=off, atol=off / 10, err_msg=f"{name}: {key}")

    def test_the_samples_are_kept_unless_they_are_not_wanted(self):
        file = FILES / "a_mlp.pt2"
        expected = self.results(file)["output_0"]
        numpy.testing.assert_allclose(self.results(self.compiled(file))["output_0"], expected, rtol=1e-5, atol=1e-6)
        message = self.refused("run", self.compiled(file, "--no-samples"))
        self.assertIn("the file stores no sample inputs; give them with --inputs", message)

    def test_wrong_inputs_get_the_same_sentences(self):
        file = FILES / "a_mlp_dynamic.pt2"
        library = self.compiled(file)
        (name, array), = reference("a_mlp_dynamic.in.npz").items()
        for wrong in ({name: array[..., :-1]}, {name: array.astype(numpy.float64)}, {"nonsense": array}, {}, {name: array[0]}):
            arrays = self.save("w.npz", **wrong)
            ours, theirs = (self.refused("run", f, "--inputs", arrays) for f in (library, file))
            self.assertEqual(ours.replace(str(library), "F"), theirs.replace(str(file), "F"))

    def test_a_guard_is_checked(self):
        library = self.compiled(FILES / "j_guards.pt2")
        arrays = {**reference("j_guards.in.npz"), "x": numpy.ones(5, numpy.float32)}
        self.assertIn("the program was exported under (L['x'].size()[0] % 2) == 0", self.refused("run", library, "--inputs", self.save("g.npz", **arrays)))

    def test_random_numbers_are_the_interpreters(self):
        file = FILES / "b_digits_train_random.pt2"
        library = self.compiled(file)
        for seed in (0, 7):
            ours, theirs = self.results(library, "--seed", seed), self.results(file, "--seed", seed)
            numpy.testing.assert_allclose(ours["output_0"], theirs["output_0"], rtol=1e-4, atol=1e-5)

    def test_a_joint_program(self):
        joint = self.scratch / "joint.pt2"
        self.good("grad", FILES / "a_mlp_loss.pt2", "-o", joint, "--wrt", "all")
        expected, results = self.results(joint), self.results(self.compiled(joint))
        self.assertEqual(expected.keys(), results.keys())
        for key, array in expected.items():
            numpy.testing.assert_allclose(results[key], array, rtol=1e-4, atol=1e-6, err_msg=key)

    def test_the_same_bytes_twice_and_one_target_alone(self):
        file = FILES / "b_odd_cnn_eval.pt2"
        first = self.compiled(file).read_bytes()
        self.assertEqual(first, self.compiled(file).read_bytes())
        self.assertLess(self.compiled(file, "--target", "x86-64-v3").stat().st_size, len(first))
        self.assertIn("artifact for x86-64-v3, made by", self.good("show", self.scratch / "b_odd_cnn_eval.so"))

    def test_tuned_gives_the_same_numbers(self):
        file = FILES / "b_odd_cnn_eval.pt2"
        expected, results = self.results(file), self.results(self.compiled(file, "--tune"))
        self.assertEqual(expected.keys(), results.keys())
        for key, array in expected.items():
            numpy.testing.assert_allclose(results[key], array, rtol=1e-4, atol=1e-6, err_msg=key)

    def test_weights_in_half_precision(self):
        file = FILES / "a_mlp.pt2"
        expected = self.results(file)
        for dtype, error in (("f16", 2**-9), ("bf16", 2**-6)):
            results = self.results(self.compiled(file, "--weights", dtype))
            self.assertEqual(expected.keys(), results.keys())
            for key, array in expected.items():
                self.assertFalse(numpy.array_equal(results[key], array), key)
                numpy.testing.assert_allclose(results[key], array, rtol=0, atol=error * abs(array).max(), err_msg=key)
        self.assertIn("expected f32, f16 or bf16, got 'int4'", self.refused("compile", file, "-o", self.scratch / "x.so", "--weights", "int4", status=2))

    def test_without_a_compiler_and_with_an_empty_path(self):
        out = self.scratch / "o.so"
        done = subprocess.run([TENON, "compile", str(FILES / "a_mlp.pt2"), "-o", str(out)], env={"PATH": ""}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = subprocess.run([TENON, "compile", str(FILES / "a_mlp.pt2"), "-o", str(out), "--backend", "c"], env={"PATH": ""},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--backend c needs a C compiler", done.stderr)

    def test_only_libc_is_needed(self):
        library = self.compiled(FILES / "a_mlp.pt2")
        listed = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True).stdout
        self.assertNotIn("NEEDED", listed)
        self.assertNotIn("RELA", listed)

    def test_killed_while_writing_leaves_nothing(self):
        out = self.scratch / "k.so"
        for delay in (0.0, 0.003, 0.01, 0.03):
            child = subprocess.Popen([TENON, "compile", str(DIGITS / "digits_cnn.pt2"), "-o", str(out)])
            time.sleep(delay)
            child.send_signal(signal.SIGTERM)
            child.wait()
            if out.exists():
                self.good("show", out, "--verify")
                out.unlink()
            self.assertEqual(list(self.scratch.iterdir()), [])

    def test_bad_command_lines(self):
        file = FILES / "a_mlp.pt2"
        copy = self.scratch / "copy.pt2"
        shutil.copy(file, copy)
        self.refused("compile", copy, "-o", copy)
        self.refused("compile", file, "-o", self.scratch / "missing" / "o.so")
        self.refused("compile", file, "-o", "/dev/full")
        self.refused("compile", file)
        self.refused("compile", file, "-o", self.scratch / "o.so", "--target", "armv9", status=2)
        self.refused("compile", file, "-o", self.scratch / "o.so", "--backend", "llvm", status=2)
        self.refused("compile", self.scratch / "nothing.pt2", "-o", self.scratch / "o.so")
        self.assertFalse((self.scratch / "o.so").exists())


class Show(CommandTest):
    def test_text_and_json(self):
        library = self.scratch / "m.so"
        self.good("compile", FILES / "a_mlp_dynamic.pt2", "-o", library)
        text = self.good("show", library)
        self.assertRegex(text, r"input '\w+': f32\[s\d+, ")
        self.assertRegex(text, r"steps \d+: ")
        told = json.loads(self.good("show", library, "--json"))
        self.assertEqual(told["targets"], ["x86-64-v3", "x86-64-v4"])
        self.assertEqual(len(told["inputs"]), 1)
        self.assertGreater(told["steps"]["kernel"], 0)
        self.good("show", library, "--verify")

    def test_damaged_files_get_a_sentence(self):
        library = self.scratch / "m.so"
        self.good("compile", FILES / "a_mlp.pt2", "-o", library)
        good = library.read_bytes()
        for damaged in (good[:64], good[:len(good) // 2], good[:-1], good[:200] + b"\xff" * 400 + good[600:], b"\x7fELF" + b"\0" * 5000):
            library.write_bytes(damaged)
            for verb in (("show", library), ("run", library), ("bench", library, "--seconds", "0.01")):
                self.refused(*verb)
        flipped = bytearray(good)
        flipped[-100] ^= 1   # in the weights, which are last: the checksums tell
        library.write_bytes(flipped)
        self.refused("show", library, "--verify")
        library.write_bytes(b"")
        self.refused("show", library)

    def test_a_library_of_somebody_else(self):
        foreign = shutil.which("true")
        self.refused("show", foreign)
        self.refused("run", foreign)

    def test_stages_belong_to_pt2_files(self):
        library = self.scratch / "m.so"
        self.good("compile", FILES / "a_mlp.pt2", "-o", library)
        self.assertIn("a compiled program has no stages", self.refused("show", library, "--after=loops"))


class Bench(CommandTest):
    def test_json_is_one_object_alone(self):
        library = self.scratch / "m.so"
        self.good("compile", FILES / "b_odd_cnn_eval.pt2", "-o", library)
        for file in (library, FILES / "b_odd_cnn_eval.pt2"):
            told = json.loads(self.good("bench", file, "--json", "--seconds", "0.05", "--threads", "1"))
            self.assertLessEqual(told["min_ms"], told["median_ms"])
            self.assertLessEqual(told["median_ms"], told["p99_ms"])
            self.assertGreater(told["load_ms"], 0)
            self.assertGreater(told["peak_bytes"], 0)
        kernels = json.loads(self.good("bench", library, "--json", "--seconds", "0.05"))["kernels"]
        self.assertGreater(len(kernels), 0)
        self.assertTrue(all(k["ms"] >= 0 and "roofline" in k for k in kernels))
        self.assertIn("median", self.good("bench", library, "--seconds", "0.05"))


class Source(CommandTest):
    def build(self, folder, compiler, extra):
        """By the command that the source names."""
        command = re.search(r"^   (cc .*)$", (folder / "kernels.c").read_text(), re.M).group(1)
        words = [word for word in command.split() if not word.startswith("-march")]
        subprocess.run([compiler, *extra, *words[1:]], cwd=folder, check=True, capture_output=True, text=True, timeout=300)
        return folder / words[-1]

    def test_the_command_in_it_builds_the_same_numbers(self):
        for name in ("a_mlp_dynamic", "b_odd_cnn_eval", "k_reductions"):
            folder, library = self.scratch / name, self.scratch / f"{name}.so"
            self.good("compile", FILES / f"{name}.pt2", "-o", library, "--emit-source", folder)
            built = self.build(folder, "cc", ["-march=native"])
            ours, theirs = self.results(built), self.results(library)
            self.assertEqual(ours.keys(), theirs.keys())
            for key in ours:   # the same bits: emitters and library agree
                numpy.testing.assert_array_equal(ours[key], theirs[key], err_msg=f"{name}: {key}")

    def test_backend_c_gives_the_same_bits(self):
        native, c = self.scratch / "n.so", self.scratch / "c.so"
        self.good("compile", FILES / "a_mlp_loss.pt2", "-o", native)
        self.good("compile", FILES / "a_mlp_loss.pt2", "-o", c, "--backend", "c")
        numpy.testing.assert_array_equal(self.results(native)["output_0"], self.results(c)["output_0"])

    def test_a_folder_that_is_not_empty_is_refused(self):
        (self.scratch / "d").mkdir()
        (self.scratch / "d" / "x").touch()
        self.assertIn("expected a folder that is empty", self.refused("compile", FILES / "a_mlp.pt2", "--emit-source", self.scratch / "d"))

    def test_for_another_processor(self):
        compiler = shutil.which("aarch64-linux-gnu-gcc")
        if not compiler or not shutil.which("qemu-aarch64") or not shutil.which("aarch64-linux-gnu-g++"):
            self.skipTest("no cross compiler for AArch64, or no emulator")
        folder = self.scratch / "arm"
        self.good("compile", FILES / "a_mlp_dynamic.pt2", "--emit-source", folder)
        library = self.build(folder, compiler, [])
        program = self.scratch / "run"
        runtime = sorted(map(str, (ROOT / "runtime").glob("*.c")))
        subprocess.run([compiler, "-static", "-O1", "-D_GNU_SOURCE", '-DTENON_VERSION="test"', "-I", str(ROOT / "runtime" / "include"),
                        str(ROOT / "examples" / "c" / "run.c"), *runtime, "-lpthread", "-o", str(program)], check=True)
        there = subprocess.run(["qemu-aarch64", str(program), str(library)], capture_output=True, text=True)
        self.assertEqual((there.returncode, there.stderr), (0, ""))
        native = self.scratch / "n.so"
        self.good("compile", FILES / "a_mlp_dynamic.pt2", "-o", native)
        here = self.scratch / "here"
        subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", '-DTENON_VERSION="test"', "-I", str(ROOT / "runtime" / "include"),
                        str(ROOT / "examples" / "c" / "run.c"), *runtime, "-lpthread", "-o", str(here)], check=True)
        self.assertEqual(there.stdout, subprocess.run([str(here), str(native)], capture_output=True, text=True).stdout)
        self.assertRegex(there.stdout, r"output 0: \d+ elements of f32 ")
