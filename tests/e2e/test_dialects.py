"""tenon convert --dialect, tenon show --tree and tenon diff."""

import numpy

from command import DIGITS, FILES, CommandTest, tenon


class Dialects(CommandTest):
    def converted(self, name, *options):
        out = self.scratch / "converted.pt2"
        self.good("convert", FILES / f"{name}.pt2", out, *options)
        return out

    def test_aten_has_no_writes_and_keeps_composites(self):
        text = self.good("show", self.converted("b_odd_cnn_train", "--dialect", "aten"))
        self.assertIn("torch.ops.aten.conv2d.default", text)
        self.assertIn("torch.ops.aten._native_batch_norm_legit_functional.default", text)
        self.assertIn("BUFFER_MUTATION target='norm.running_mean'", text)
        self.assertNotIn("add_.Tensor", text)

    def test_core_has_no_composites_but_those_kept(self):
        text = self.good("show", self.converted("a_mlp", "--dialect", "core"))
        self.assertIn("torch.ops.aten.addmm.default", text)
        self.assertNotIn("torch.ops.aten.linear.default", text)
        text = self.good("show", self.converted("a_mlp", "--dialect", "core", "--keep", "linear"))
        self.assertIn("torch.ops.aten.linear.default", text)

    def test_the_numbers_stay(self):
        for name in ("a_mlp", "b_digits_eval", "h_writes_to_parts", "i_statistics", "n_assertion_on_all_elements"):
            before = self.results(FILES / f"{name}.pt2")
            for dialect in ("aten", "core"):
                after = self.results(self.converted(name, "--dialect", dialect))
                self.assertEqual(before.keys(), after.keys())
                for key, value in before.items():
                    numpy.testing.assert_allclose(after[key], value, rtol=1e-4, atol=1e-5, err_msg=f"{name} {dialect} {key}")

    def test_an_assertion_stays_though_the_file_says_what_it_asserts(self):
        for dialect in ("aten", "core"):
            converted = self.converted("n_assertion_on_all_elements", "--dialect", dialect)
            self.assertIn("_assert_scalar", self.good("show", converted))
            low = self.scratch / "low.npz"
            numpy.savez(low, x=numpy.full(4, -200, "f4"))
            self.assertIn("assertion", self.refused("run", converted, "--inputs", low))

    def test_joint_programs_are_decomposed_too(self):
        joint, out = self.scratch / "joint.pt2", self.scratch / "core.pt2"
        self.good("grad", FILES / "a_mlp_loss.pt2", "-o", joint)
        self.good("convert", joint, out, "--dialect", "core")
        before, after = self.results(joint), self.results(out)
        self.assertEqual(before.keys(), after.keys())
        for key, value in before.items():
            numpy.testing.assert_allclose(after[key], value, rtol=1e-4, atol=1e-5, err_msg=key)

    def test_there_is_no_way_back_to_training(self):
        aten = self.converted("a_mlp", "--dialect", "aten")
        said = self.refused("convert", aten, self.scratch / "training.pt2", "--dialect", "training")
        self.assertIn("cannot become one of the training dialect", said)

    def test_an_operator_to_keep_that_is_none(self):
        said = self.refused("convert", FILES / "a_mlp.pt2", self.scratch / "out.pt2", "--dialect", "core", "--keep", "linaer")
        self.assertIn("there is no operator 'linaer'", said)

    def test_usage(self):
        said = self.refused("convert", FILES / "a_mlp.pt2", self.scratch / "out.pt2", "--dialect", "edge", status=2)
        self.assertIn("expected training, aten or core, got 'edge'", said)


class Tree(CommandTest):
    def test_modules_with_sizes_and_parameters(self):
        lines = self.good("show", DIGITS / "digits_cnn.pt2", "--tree").splitlines()
        self.assertEqual(lines[0].split(), ["module", "nodes", "parameters", "buffers", "size"])
        self.assertIn("(program): DigitsCnn", lines[1])
        self.assertTrue(any(line.startswith("  features: Sequential") for line in lines), lines)
        convolution = next(line for line in lines if "0: Conv2d" in line)
        self.assertEqual(convolution.split()[2:], ["1", "160", "0", "640", "B"])


class Diff(CommandTest):
    def test_equal_programs(self):
        self.assertEqual(self.good("diff", FILES / "a_mlp.pt2", FILES / "a_mlp.pt2"), "")

    def test_a_converted_file_is_the_same_program(self):
        out = self.scratch / "same.pt2"
        self.good("convert", FILES / "b_digits_train.pt2", out)
        self.assertEqual(self.good("diff", FILES / "b_digits_train.pt2", out), "")

    def test_what_differs_is_said_and_the_status_is_1(self):
        out = self.scratch / "core.pt2"
        self.good("convert", FILES / "a_mlp.pt2", out, "--dialect", "core")
        done = tenon("diff", FILES / "a_mlp.pt2", out)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("graph\n", done.stdout)
        self.assertIn("+ addmm", done.stdout)
        self.assertIn("dialect: TRAINING and ATEN", done.stdout)
        self.assertNotIn("state\n", done.stdout)

    def test_state_is_compared_bit_by_bit(self):
        done = tenon("diff", FILES / "a_mlp.pt2", FILES / "a_mlp_bf16.pt2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("state '0.weight': f32[16, 6] and bf16", done.stdout)

    def test_trouble_has_status_2(self):
        self.assertIn("nowhere.pt2", self.refused("diff", self.scratch / "nowhere.pt2", FILES / "a_mlp.pt2", status=2))
