"""tenon show, grad and convert on whole files, and the commands of the README."""

import json
import os
import re
import subprocess
import zipfile

import numpy

from command import DIGITS, FILES, REFERENCE, ROOT, SPECIAL, CommandTest, reference, tenon

STAGES = ("read", "normalized", "functional", "joint", "partition")


class Show(CommandTest):
    def test_as_pytorch_prints_it(self):
        text = self.good("show", FILES / "a_mlp_dynamic.pt2")
        self.assertEqual(text.strip(), (ROOT / "tests/data/golden/a_mlp_dynamic.txt").read_text().strip())

    def test_every_stage(self):
        for stage in STAGES:
            self.assertTrue(self.good("show", DIGITS / "digits_cnn.pt2", f"--after={stage}"), stage)
        self.assertTrue(self.good("show", FILES / "a_mlp.pt2", "--after=loops"))

    def test_json_of_every_stage(self):
        for stage in STAGES:
            program = json.loads(self.good("show", DIGITS / "digits_cnn.pt2", f"--after={stage}", "--json"))
            self.assertEqual((program["stage"], program["torch_version"][:4]), (stage, "2.15"))
            self.assertEqual(len(program["graphs"]), 2 if stage == "partition" else 1)
            self.assertTrue(program["graphs"][0]["nodes"])
        self.assertIn("loops", json.loads(self.good("show", FILES / "a_mlp.pt2", "--after=loops", "--json")))

    def test_wrt_chooses_the_gradients(self):
        text = self.good("show", FILES / "a_mlp.pt2", "--after=joint", "--wrt=0.weight")
        self.assertIn("gradient of parameter 0.weight", text)
        self.assertNotIn("gradient of parameter 0.bias", text)

    def test_an_unknown_name_to_differentiate_by(self):
        self.assertIn("nowhere", self.refused("show", FILES / "a_mlp.pt2", "--after=joint", "--wrt=nowhere"))

    def test_an_output_that_is_not_there(self):
        self.assertIn("output", self.refused("show", FILES / "a_mlp.pt2", "--after=joint", "--of=output_7"))

    def with_unknown_operator(self):
        path = self.scratch / "unknown.pt2"
        with zipfile.ZipFile(FILES / "a_mlp.pt2") as old, zipfile.ZipFile(path, "w") as new:
            for entry in old.infolist():
                data = old.read(entry)
                if entry.filename.endswith("models/model.json"):
                    data = data.replace(b"torch.ops.aten.relu.default", b"torch.ops.aten.no_such_op.default")
                    data = data.replace(b"torch.ops.aten.linear.default", b"torch.ops.aten.nor_this.default")
                new.writestr(entry.filename, data)
        return path

    def test_missing_operators_are_listed_and_the_rest_is_shown(self):
        for arguments in ([], ["--json"], ["--after=functional"]):
            done = tenon("show", self.with_unknown_operator(), *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn("nor_this", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn("nor_this", done.stdout)

    def test_missing_operators_stop_run(self):
        self.assertIn("nor_this", self.refused("run", self.with_unknown_operator()))


class Grad(CommandTest):
    def test_the_joint_program_runs_with_the_same_inputs(self):
        joint = self.scratch / "joint.pt2"
        self.assertIn("0.weight", self.good("grad", FILES / "a_mlp.pt2", "-o", joint, "--wrt", "all"))
        results = self.results(joint, "--inputs", REFERENCE / "a_mlp.in.npz")
        expected = reference("a_mlp.out.npz") | reference("a_mlp.grad.npz")
        self.assertEqual(sorted(results), sorted(expected))
        for key in expected:
            numpy.testing.assert_allclose(results[key], expected[key], rtol=1e-4, atol=1e-5)

    def test_stored_samples_hold_a_cotangent_of_ones(self):
        joint = self.scratch / "joint.pt2"
        self.good("grad", FILES / "a_mlp.pt2", "-o", joint)
        numpy.testing.assert_allclose(self.results(joint)["grad.0.weight"], reference("a_mlp.grad.npz")["grad.0.weight"],
                                      rtol=1e-4, atol=1e-5)

    def test_a_cotangent_can_be_given(self):
        joint = self.scratch / "joint.pt2"
        self.good("grad", FILES / "a_mlp.pt2", "-o", joint)
        inputs = reference("a_mlp.in.npz")
        out = reference("a_mlp.out.npz")["output_0"]
        twos = self.save("two.npz", **inputs, tangent_output_0=numpy.full(out.shape, 2, numpy.float32))
        numpy.testing.assert_allclose(self.results(joint, "--inputs", twos)["grad.0.weight"],
                                      2 * reference("a_mlp.grad.npz")["grad.0.weight"], rtol=1e-4, atol=1e-5)

    def test_parameters_are_the_default(self):
        joint = self.scratch / "joint.pt2"
        self.good("grad", FILES / "a_mlp.pt2", "-o", joint)
        grads = [key for key in self.results(joint) if key.startswith("grad.")]
        self.assertEqual(len(grads), 6)

    def test_buffers_of_the_digits_are_still_updated(self):
        joint = self.scratch / "joint.pt2"
        self.good("grad", DIGITS / "digits_cnn.pt2", "-o", joint)
        results = self.results(joint, "--seed", "3")
        self.assertIn("buffer.features.1.running_mean", results)
        self.assertIn("grad.features.0.weight", results)


    def test_extra_files_and_the_calls_of_submodules_are_kept(self):
        file, joint = self.scratch / "extra.pt2", self.scratch / "joint.pt2"
        with zipfile.ZipFile(FILES / "a_mlp.pt2") as old, zipfile.ZipFile(file, "w") as new:
            for entry in old.infolist():
                new.writestr(entry.filename, old.read(entry))
            root = old.namelist()[0].split("/")[0]
            new.writestr(f"{root}/extra/note.txt", "beside the program")
        self.good("grad", file, "-o", joint)
        with zipfile.ZipFile(joint) as archive:
            self.assertEqual(archive.read("joint/extra/note.txt"), b"beside the program")
        names = [entry["fqn"] for entry in module_calls(file)]
        self.assertGreater(len(names), 1)
        self.assertEqual([entry["fqn"] for entry in module_calls(joint)], names)

    def test_by_a_buffer(self):
        file, joint = FILES / "i_gradient_through_a_buffer.pt2", self.scratch / "joint.pt2"
        self.assertIn("memory", self.good("grad", file, "-o", joint, "--wrt", "memory"))
        results = self.results(joint)
        # The program: memory *= weight; memory[1:3] += x; the sum of memory squared.
        x, after = reference("i_gradient_through_a_buffer.in.npz")["x"], results["buffer.memory"]
        before = reference("i_gradient_through_a_buffer.grad.npz")["grad.weight"] / (2 * after)
        weight = (after - numpy.array([0, x[0], x[1], 0])) / before
        self.assertEqual([key for key in results if key.startswith("grad.")], ["grad.memory"])
        numpy.testing.assert_allclose(results["grad.memory"], 2 * after * weight, rtol=1e-4)

    def gradients(self, file, *arguments):
        joint = self.scratch / f"of_{file.stem}.pt2"
        self.good("grad", file, "-o", joint, *arguments)
        return joint, self.results(joint)

    def test_inputs_that_share_memory_which_is_written(self):
        # x = memory[:8].view(2, 4), y = memory[3:9]; the sum of y before and after x is doubled.
        joint, results = self.gradients(FILES / "h_shared_inputs.pt2", "--wrt", "inputs")
        numpy.testing.assert_allclose(results["output_0"], reference("h_shared_inputs.out.npz")["output_0"], rtol=1e-5)
        numpy.testing.assert_array_equal(results["grad.x"], [[0, 0, 0, 3], [3, 3, 3, 3]])
        numpy.testing.assert_array_equal(results["grad.y"], [3, 3, 3, 3, 3, 2])

    def test_one_tensor_given_twice_and_written(self):
        file = FILES / "h_same_input_twice.pt2"  # x.add_(1), then x * y
        joint, results = self.gradients(file, "--wrt", "inputs")
        for name in ("x", "y"):
            numpy.testing.assert_allclose(results[f"grad.{name}"], 2 * results["input.x"], rtol=1e-6)
        message = self.refused("run", joint, "--inputs", REFERENCE / "h_same_input_twice.in.npz")
        self.assertIn("x is f32[3] by [1] from 0, y is f32[3] by [1] from 0", message)

    def test_regions_without_gradients_are_kept(self):
        for file in sorted(FILES.glob("l_*.pt2")):
            once, first = self.gradients(file, "--wrt", "all")
            _, second = self.gradients(once, "--wrt", "all")
            for key in first:
                if key.startswith("grad."):
                    numpy.testing.assert_allclose(second[key], first[key], rtol=1e-5, atol=1e-6, err_msg=f"{file.name} {key}")
        self.assertIn("wrap_with_set_grad_enabled", self.good("show", self.scratch / "of_l_no_grad_region.pt2"))

    def test_second_gradients(self):
        # memory *= weight; memory[1:3] += x; the sum of memory squared: 2 * memory * after, then 2 * memory ** 2.
        once, first = self.gradients(FILES / "i_gradient_through_a_buffer.pt2")
        _, second = self.gradients(once, "--of", "grad.weight")
        before = first["grad.weight"] / (2 * first["buffer.memory"])
        numpy.testing.assert_array_equal(second["output_1"], first["grad.weight"])
        numpy.testing.assert_allclose(second["grad.weight"], 2 * before ** 2, rtol=1e-4)
        self.assertIn("there are those of weight", self.refused("grad", once, "-o", self.scratch / "no.pt2", "--of", "grad.x"))


def module_calls(file):
    with zipfile.ZipFile(file) as archive:
        model = next(name for name in archive.namelist() if name.endswith("models/model.json"))
        return json.loads(archive.read(model))["graph_module"]["module_call_graph"]


class Convert(CommandTest):
    def test_a_converted_program_shows_and_runs_the_same(self):
        for release in ("torch-2.4", "torch-2.5", "torch-2.6", "torch-2.7", "torch-2.8", "torch-2.9", "torch-2.11", "torch-2.15"):
            file, out = FILES.parent / release / "a_mlp_dynamic.pt2", self.scratch / f"{release}.pt2"
            self.assertEqual(self.good("convert", file, out), "")
            self.assertEqual(self.good("run", file), self.good("run", out))
            self.assertEqual(self.good("show", file), self.good("show", out))

    def test_unreadable_samples_are_dropped_with_a_warning(self):
        bad, out = self.scratch / "bad.pt2", self.scratch / "out.pt2"
        with zipfile.ZipFile(FILES / "a_mlp.pt2") as old, zipfile.ZipFile(bad, "w") as new:
            for entry in old.infolist():
                new.writestr(entry.filename, b"junk" if "sample_inputs" in entry.filename else old.read(entry))
        done = tenon("convert", bad, out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning", done.stderr)
        self.assertIn("sample inputs", self.refused("run", out))
        self.good("run", out, "--inputs", REFERENCE / "a_mlp.in.npz")


class OtherDevices(CommandTest):
    def test_a_program_of_a_gpu_runs_on_the_cpu_when_told_to(self):
        for name in ("on_cuda", "on_cuda_flat"):
            file, moved = SPECIAL / f"{name}.pt2", self.scratch / f"{name}.pt2"
            self.assertIn("--device cpu", self.refused("run", file))
            self.assertIn("--device cpu", self.refused("grad", file, "-o", moved))
            self.assertIn("--device cpu", self.refused("show", file, "--after=functional"))
            self.good("show", file)
            self.good("convert", file, moved, "--device", "cpu")
            self.assertEqual(self.good("run", file, "--device", "cpu"), self.good("run", moved))
            self.good("grad", file, "-o", moved, "--device", "cpu")
            self.good("run", moved)

    def test_what_a_moved_program_computes_is_what_it_computed(self):
        results = self.results(SPECIAL / "on_cuda_flat.pt2", "--device", "cpu")
        expected = self.results(FILES.parent / "torch-2.7" / "l_writes_inside_a_region.pt2")
        self.assertEqual(results.keys(), expected.keys())
        for key in expected:
            numpy.testing.assert_array_equal(results[key], expected[key])

    def test_there_is_no_other_device(self):
        done = tenon("run", SPECIAL / "on_cuda.pt2", "--device", "cuda")
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected cpu", done.stderr)

    def test_what_can_only_be_shown_is_shown_and_says_why_it_does_not_run(self):
        for name, reason in (("custom_object", "pickle"), ("effect_tokens", "an operator is not supported"),
                             ("autocast_2_6", "autocast")):
            file = SPECIAL / f"{name}.pt2"
            self.assertIn("ExportedProgram:", tenon("show", file).stdout)
            self.assertEqual(tenon("convert", file, self.scratch / "out.pt2").returncode, 0)
            self.assertIn(reason, self.refused("run", file))


class SeveralModels(CommandTest):
    def test_one_is_chosen_by_name(self):
        file, out = SPECIAL / "several_models.pt2", self.scratch / "second.pt2"
        self.assertIn("--model NAME", self.refused("show", file))
        self.assertIn("'first', 'second'", self.refused("show", file, "--model", "third"))
        self.good("convert", file, out, "--model", "second")
        self.assertEqual(self.good("show", out), self.good("show", file, "--model", "second"))
        self.assertEqual(self.good("run", out), self.good("run", file, "--model", "second"))
        self.assertNotEqual(self.good("run", out), self.good("run", file, "--model", "first"))

    def test_a_compiled_package_holds_none(self):
        self.assertIn("AOTInductor", self.refused("run", SPECIAL / "aotinductor.pt2"))


class Readme(CommandTest):
    def test_its_commands_work(self):
        for name in ("build", "examples", "tests"):
            os.symlink(ROOT / name, self.scratch / name)
        blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
        lines = [line for block in blocks for line in block.splitlines() if line.startswith("build/bin/tenon")]
        self.assertGreaterEqual(len(lines), 4)
        for line in lines:
            done = subprocess.run(["sh", "-c", line], cwd=self.scratch, capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
