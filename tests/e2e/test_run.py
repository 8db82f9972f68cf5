"""tenon run: which key is which input, and what comes out."""

import json
import struct
import zipfile

import numpy

from command import DIGITS, FILES, REFERENCE, SPECIAL, CommandTest, reference, tenon


class Inputs(CommandTest):
    def test_by_name_and_by_position(self):
        arrays = reference("a_mlp.in.npz")
        self.assertEqual(len(arrays), 1)
        (name, array), = arrays.items()
        by_name = self.results(FILES / "a_mlp.pt2", "--inputs", self.save("n.npz", **{name: array}))
        by_position = self.results(FILES / "a_mlp.pt2", "--inputs", self.save("p.npz", arr_0=array))
        numpy.testing.assert_array_equal(by_name["output_0"], by_position["output_0"])
        numpy.testing.assert_allclose(by_name["output_0"], reference("a_mlp.out.npz")["output_0"], rtol=1e-4, atol=1e-5)

    def test_fortran_order_deflated_and_npy(self):
        (name, array), = reference("a_mlp.in.npz").items()
        expected = self.results(FILES / "a_mlp.pt2", "--inputs", self.save("c.npz", **{name: array}))["output_0"]
        deflated, single = self.scratch / "any.ending", self.scratch / "x.npy"
        with open(deflated, "wb") as file:
            numpy.savez_compressed(file, **{name: numpy.asfortranarray(array)})
        numpy.save(single, array)
        for path in (deflated, single):
            numpy.testing.assert_allclose(self.results(FILES / "a_mlp.pt2", "--inputs", path)["output_0"], expected, rtol=1e-6, atol=1e-7)

    def test_safetensors_in_and_out(self):
        (name, array), = reference("a_mlp.in.npz").items()
        given, results = self.scratch / "in.safetensors", self.scratch / "out.safetensors"
        header = json.dumps({name: {"dtype": "F32", "shape": array.shape, "data_offsets": [0, array.nbytes]}}).encode()
        given.write_bytes(struct.pack("<Q", len(header)) + header + array.tobytes())
        self.good("run", FILES / "a_mlp.pt2", "--inputs", given, "--outputs", results)
        written = results.read_bytes()
        length, = struct.unpack("<Q", written[:8])
        entry = json.loads(written[8:8 + length])["output_0"]
        begin, end = entry["data_offsets"]
        expected = reference("a_mlp.out.npz")["output_0"]
        self.assertEqual((entry["dtype"], tuple(entry["shape"])), ("F32", expected.shape))
        output = numpy.frombuffer(written[8 + length + begin:8 + length + end], numpy.float32).reshape(expected.shape)
        numpy.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)

    def test_an_unknown_key_lists_the_inputs(self):
        (name, array), = reference("a_mlp.in.npz").items()
        message = self.refused("run", FILES / "a_mlp.pt2", "--inputs", self.save("u.npz", **{name: array, "nonsense": array}))
        self.assertIn("'nonsense'", message)
        self.assertIn(f"the inputs are {name}: f32[", message)

    def test_inputs_that_break_a_guard_are_refused(self):
        joint = self.scratch / "joint.pt2"
        self.good("grad", FILES / "j_guards.pt2", "-o", joint, "--wrt", "all")
        wrong = {"x": (5, r"under \(L\['x'\].size\(\)\[0\] % 2\) == 0, where L\['x'\].size\(\)\[0\] is (s\d+)', but \1 is 5"),
                 "table_a_1": (7, r"L\['table'\]\['a'\]\[1\].size\(\)\[0\] is (s\d+)', but \1 is 7"),
                 "rest": (8, r"L\['rest'\].size\(\)\[0\] is (s\d+).*, but .*\1 is 8")}
        for name, (size, expected) in wrong.items():
            arrays = {**reference("j_guards.in.npz"), name: numpy.ones(size, numpy.float32)}
            for file in (FILES / "j_guards.pt2", joint):
                self.assertRegex(self.refused("run", file, "--inputs", self.save("g.npz", **arrays)), expected)

    def test_a_program_without_its_weights_is_shown_and_converted_but_not_run(self):
        for which in ("weight_0", "weight_"):
            file, converted = self.scratch / f"{which}.pt2", self.scratch / f"{which}_converted.pt2"
            with zipfile.ZipFile(FILES / "a_mlp.pt2") as old, zipfile.ZipFile(file, "w") as new:
                for entry in old.infolist():
                    empty = f"data/weights/{which}" in entry.filename
                    new.writestr(entry.filename, b"" if empty else old.read(entry))
            self.assertIn("0.weight", self.good("show", file))
            self.good("convert", file, converted)
            for each in (file, converted):
                for verb in (["run", each], ["compile", each, "-o", self.scratch / "no.so"]):
                    self.assertIn("the file has no contents for 0.weight, expected f32[16, 6]", self.refused(*verb))
            self.good("grad", file, "-o", converted)  # a joint program computes nothing yet
            self.assertIn("the file has no contents for 0.weight", self.refused("run", converted))

    def test_a_missing_input_is_named(self):
        tensors = reference("j_constants.in.npz")
        tensors.pop("y")
        message = self.refused("run", FILES / "j_constants.pt2", "--inputs", self.save("e.npz", **tensors))
        self.assertIn("e.npz: the input y is missing (f32[3])", message)
        self.assertNotIn("j_constants.pt2", message)

    def test_given_twice(self):
        (name, array), = reference("a_mlp.in.npz").items()
        path = self.save("t.npz", **{name: array, "arr_0": array})
        self.assertIn("given twice", self.refused("run", FILES / "a_mlp.pt2", "--inputs", path))

    def test_a_wrong_shape_and_a_wrong_dtype_name_the_input(self):
        (name, array), = reference("a_mlp.in.npz").items()
        for wrong in (array[..., :-1], array.astype(numpy.float64)):
            self.assertIn(name, self.refused("run", FILES / "a_mlp.pt2", "--inputs", self.save("w.npz", **{name: wrong})))

    def test_float32_for_bfloat16_both_ways(self):
        results = self.results(FILES / "a_mlp_bf16.pt2", "--inputs", REFERENCE / "a_mlp_bf16.in.npz")
        self.assertEqual(results["output_0"].dtype, numpy.float32)
        expected = reference("a_mlp_bf16.out.npz")["output_0"]
        numpy.testing.assert_allclose(results["output_0"], expected, atol=1.6e-2 * numpy.abs(expected).max())

    def test_constants_may_be_left_out_and_must_be_equal(self):
        file = FILES / "j_constants.pt2"
        tensors = reference("j_constants.in.npz")
        plain = self.results(file, "--inputs", self.save("t.npz", **tensors))
        given = {"times": numpy.int64(2), "arr_2": numpy.float64(1.5), "flag": numpy.bool_(True)}
        self.assertEqual(sorted(plain), sorted(self.results(file, "--inputs", self.save("g.npz", **tensors, **given))))
        for key, value in (("times", 3), ("arr_1", 3), ("factor", 1.25), ("flag", False)):
            message = self.refused("run", file, "--inputs", self.save("w.npz", **tensors, **{key: numpy.asarray(value)}))
            self.assertIn("constant", message)
        self.assertIn("None", self.refused("run", file, "--inputs", self.save("n.npz", **tensors, nothing=numpy.zeros(()))))

    def test_numbers_among_the_outputs_are_scalars_and_none_keeps_its_number(self):
        results = self.results(FILES / "j_constants.pt2")
        self.assertEqual((results["output_1"].item(), results["output_2"].item(), results["output_3"].item()), (2, 1.5, True))
        self.assertEqual((results["output_1"].dtype, results["output_1"].shape), (numpy.int64, ()))
        self.assertNotIn("output_4", results)

    def test_an_inputs_file_that_is_neither(self):
        path = self.scratch / "in.npz"
        path.write_text("no arrays")
        self.assertIn("neither an .npy nor an .npz", self.refused("run", FILES / "a_mlp.pt2", "--inputs", path))


class Results(CommandTest):
    def test_printed_without_outputs(self):
        text = self.good("run", FILES / "a_mlp.pt2")
        self.assertRegex(text, r"^output_0  f32\[\d+, \d+\]  \[-?\d")
        self.assertIn(", ...]", text)

    def test_updated_buffers_have_keys(self):
        results = self.results(DIGITS / "digits_cnn.pt2")
        self.assertIn("buffer.features.1.running_mean", results)
        self.assertEqual(results["buffer.features.1.num_batches_tracked"].shape, ())

    def test_written_inputs_have_keys(self):
        results = self.results(FILES / "h_mutated_input.pt2", "--inputs", REFERENCE / "h_mutated_input.in.npz")
        expected = reference("h_mutated_input.out.npz")
        self.assertEqual(sorted(results), sorted(expected))
        for key in expected:
            numpy.testing.assert_allclose(results[key], expected[key], rtol=1e-4, atol=1e-5)

    def test_inputs_that_share_storage_come_from_the_samples(self):
        results = self.results(FILES / "h_shared_inputs.pt2")
        expected = reference("h_shared_inputs.out.npz")
        self.assertEqual(sorted(results), sorted(expected))
        for key in expected:
            numpy.testing.assert_allclose(results[key], expected[key], rtol=1e-4, atol=1e-5)

    def test_the_seed_decides_random_numbers(self):
        first, again, other = [self.results(DIGITS / "digits_cnn.pt2", "--seed", seed)["output_0"] for seed in (1, 1, 2)]
        numpy.testing.assert_array_equal(first, again)
        self.assertFalse(numpy.array_equal(first, other))

    def test_threads_do_not_change_results(self):
        one, two = [self.results(DIGITS / "digits_cnn_eval.pt2", "--threads", n)["output_0"] for n in (1, 2)]
        numpy.testing.assert_array_equal(one, two)

    def test_the_trained_network_reads_digits(self):
        with numpy.load(DIGITS / "digits.npz") as digits:
            images, labels = digits["images"][1437:], digits["labels"][1437:]
        scores = self.results(DIGITS / "digits_cnn_eval.pt2", "--inputs",
                              self.save("i.npz", images=images[:, None].astype(numpy.float32) / 16))["output_0"]
        self.assertGreater((scores.argmax(1) == labels).mean(), 0.9)


class Prints(CommandTest):
    """What a program prints is what PyTorch prints, interpreted, compiled and in a joint program, once each run."""

    def setUp(self):
        super().setUp()
        self.file = SPECIAL / "prints.pt2"
        self.expected = (SPECIAL / "prints.txt").read_text()

    def compiled(self):
        out = self.scratch / "prints.so"
        self.good("compile", self.file, "-o", out)
        return out

    def test_interpreted_and_compiled(self):
        for file in (self.file, self.compiled()):
            printed = self.good("run", file)
            self.assertTrue(printed.startswith(self.expected), printed)
            self.assertEqual(printed.count("x is tensor"), 1)

    def test_in_a_joint_program_and_in_other_dialects(self):
        files = [self.scratch / name for name in ("joint.pt2", "converted.pt2", "aten.pt2", "core.pt2")]
        self.assertEqual(tenon("grad", self.file, "-o", files[0], "--wrt", "x").returncode, 0)
        self.good("convert", self.file, files[1])
        self.good("convert", self.file, files[2], "--dialect", "aten")
        self.good("convert", self.file, files[3], "--dialect", "core")
        for file in files:
            self.assertTrue(self.good("run", file).startswith(self.expected), file.name)

    def test_a_compiled_program_names_the_function_that_prints(self):
        self.assertIn("tenon::print", self.good("show", self.compiled()))
