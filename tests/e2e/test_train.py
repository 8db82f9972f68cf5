"""tenon train: wrong data, stopping and going on, what is written."""

import json
import pathlib
import resource
import signal
import subprocess
import time

import numpy

from command import DIGITS, FILES, ROOT, TENON, CommandTest, tenon

CNN = DIGITS / "digits_cnn.pt2"  # trains with dropout, so random draws matter
MLP = FILES / "a_mlp.pt2"        # f32[5, 6] to f32[5, 3]: takes batches of 5 and no others


class TrainTest(CommandTest):
    def setUp(self):
        super().setUp()
        with numpy.load(DIGITS / "train.npz") as data:
            self.images, self.labels = data["images"][:150], data["target"][:150]
        self.data = self.save("data.npz", images=self.images, target=self.labels)
        self.out = self.scratch / "out.pt2"
        self.state = self.scratch / "out.state.safetensors"

    def train(self, *options, data=None, out=None, threads=1):
        return ["train", CNN, "--data", data or self.data, "-o", out or self.out, "--threads", threads, "--batch", "32", *options]

    def elsewhere(self, folder):
        """The same name in another folder: a .pt2 has its own name in it."""
        (self.scratch / folder).mkdir()
        return self.scratch / folder / "out.pt2"

    def metadata(self, path):
        with open(path, "rb") as file:
            return json.loads(file.read(int.from_bytes(file.read(8), "little")))["__metadata__"]


class Data(TrainTest):
    def refused_with(self, expected, **arrays):
        message = self.refused(*self.train(data=self.save("wrong.npz", **arrays)))
        self.assertIn(expected, message)
        self.assertIn("wrong.npz", message)
        self.assertFalse(self.out.exists())
        self.assertFalse(self.state.exists())

    def test_wrong_names_are_listed(self):
        expected = "expected images: f32[s34, 1, 8, 8], target: i64[s34] (or arr_0, arr_1, ... in this order)"
        self.refused_with(expected, images=self.images)
        self.refused_with(expected, image=self.images, target=self.labels)

    def test_a_wrong_dtype_is_named(self):
        self.refused_with("images: expected f32[s34, 1, 8, 8], got f64[150, 1, 8, 8]", images=self.images.astype("f8"), target=self.labels)

    def test_wrong_sizes_are_named(self):
        self.refused_with("images: expected 4 dimensions", images=self.images[:, 0], target=self.labels)
        self.refused_with("images, dimension 3: expected 8, got 7", images=self.images[..., :7], target=self.labels)
        self.refused_with("target has 149 samples and images has 150", images=self.images, target=self.labels[1:])
        self.refused_with("there are no samples", images=self.images[:0], target=self.labels[:0])

    def test_a_class_out_of_range_is_found_before_the_first_step(self):
        wrong = self.labels.copy()
        wrong[77] = 10
        self.refused_with("sample 77 has the class 10; the program tells 10 classes apart, so expected 0 to 9", images=self.images, target=wrong)
        wrong[77] = -1
        self.refused_with("sample 77 has the class -1", images=self.images, target=wrong)

    def test_held_out_data_are_checked_too(self):
        held_out = self.save("held_out.npz", images=self.images, target=self.labels + 5)
        self.assertIn("held_out.npz: target: sample", self.refused(*self.train("--eval", held_out)))

    def test_classes_of_any_integer_dtype_arrays_by_position_and_fortran_order(self):
        expected = self.good(*self.train("--json"))
        for name, arrays in {"narrow": {"images": self.images, "target": self.labels.astype("u1")},
                             "position": {"arr_0": self.images, "arr_1": self.labels},
                             "fortran": {"images": numpy.asfortranarray(self.images), "target": self.labels}}.items():
            got = self.good(*self.train("--json", data=self.save(f"{name}.npz", **arrays)))
            self.assertEqual(json.loads(got)["loss"], json.loads(expected)["loss"], name)

    def test_a_program_of_one_batch_size_takes_no_other(self):
        data = self.save("mlp.npz", input=numpy.ones((12, 6), "f4"), target=numpy.zeros(12, "i8"))
        message = self.refused("train", MLP, "--data", data, "-o", self.out, "--batch", "4")
        self.assertIn("a batch of 4: input input, dimension 0: expected 5, got 4", message)
        few = self.save("few.npz", input=numpy.ones((3, 6), "f4"), target=numpy.zeros(3, "i8"))
        self.assertIn("it has 3 samples, fewer than a batch of 5", self.refused("train", MLP, "--data", few, "-o", self.out))
        self.assertIn("10 samples in 2 batches of 5 (the last, short one is left out", self.good("train", MLP, "--data", data, "-o", self.out))

    def test_the_last_short_batch_is_used_where_the_program_takes_it(self):
        self.assertIn("150 samples in 5 batches of 32;", self.good(*self.train()))


    def test_data_larger_than_memory_are_mapped(self):
        """A gigabyte of images where the process may have a quarter of that for itself."""
        samples = 1 << 22
        header = json.dumps({"images": {"dtype": "F32", "shape": [samples, 1, 8, 8], "data_offsets": [0, samples * 256]},
                             "target": {"dtype": "U8", "shape": [samples], "data_offsets": [samples * 256, samples * 257]}}).encode()
        header += b" " * (-len(header) % 8)
        large = self.scratch / "large.safetensors"
        with open(large, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + samples * 257)  # zeros that take no place
        command = self.train("--save-every", "0.000001s", data=large)
        process = subprocess.Popen([TENON, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 28, 1 << 28)))
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 100
        while process.poll() is None and not self.state.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertIsNone(process.poll(), "it ended before the first save")
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, -signal.SIGINT, errors)
        self.assertTrue(self.state.exists())


class Options(TrainTest):
    def test_wrong_options_are_sentences(self):
        for option, value, expected in (
                ("--optimizer", "lion", "optimizer: expected sgd, adam, adamw, rmsprop or adagrad, got 'lion'"),
                ("--optimizer", "sgd,rate=1", "optimizer sgd: there is no argument 'rate'; it takes lr, momentum, dampening"),
                ("--optimizer", "adam,lr=fast", "optimizer adam: lr: expected a number, got 'fast'"),
                ("--optimizer", "adam,lr=-1", "optimizer adam: lr: expected 0 or more, got -1"),
                ("--loss", "hinge", "loss: expected cross_entropy, mse, bce_with_logits or none, got 'hinge'"),
                ("--loss", "none", "output_0 is the loss itself and has one element"),
                ("--schedule", "step", "schedule step: give step_size=N"),
                ("--freeze", "encoder.*", "no parameter matches 'encoder.*'; there are features.0.weight"),
                ("--freeze", "*", "there is nothing to train")):
            self.assertIn(expected, self.refused(*self.train(option, value)))

    def test_usage_errors_have_status_2(self):
        for options in (("--save-every", "soon"), ("--epochs", "0"), ("--batch", "x"), ("--accumulate", "0"), ("--group", "*.bias")):
            self.refused(*self.train(*options), status=2)
        self.assertIn("--clip-norm: expected a number above 0, got '-1'", self.refused(*self.train("--clip-norm", "-1"), status=2))

    def test_the_file_that_is_read_is_not_written(self):
        self.refused("train", CNN, "--data", self.data, "-o", CNN)
        self.refused("train", CNN, "--data", self.data, "-o", self.data)

    def test_json_has_a_line_for_each_epoch(self):
        lines = [json.loads(line) for line in self.good(*self.train("--json", "--epochs", "3", "--eval", self.data)).splitlines()]
        self.assertEqual([(line["epoch"], line["step"]) for line in lines], [(1, 5), (2, 10), (3, 15)])
        for line in lines:
            self.assertEqual(set(line), {"epoch", "step", "loss", "accuracy", "eval_loss", "eval_accuracy", "samples_per_second", "seconds"})

    def test_the_step_as_a_library_goes_on_learning(self):
        step, again = self.scratch / "step.so", self.scratch / "results.npz"
        self.good(*self.train("--optimizer", "sgd,lr=0.01", "--step", step))
        batch = self.save("batch.npz", images=self.images[:32], target=self.labels[:32])
        self.good("run", step, "--inputs", batch, "--outputs", again)
        with numpy.load(again) as results:
            self.assertEqual(results["buffer.optimizer.step"], 6)
            self.assertLess(results["output_0"], 2.5)
            self.assertIn("parameter.classifier.weight", results.files)

    def test_the_step_learns_from_plain_c(self):
        step, program, batch, state = (self.scratch / name for name in ("step.so", "train_c", "batch.bin", "learnt.safetensors"))
        self.good(*self.train("--optimizer", "sgd,lr=0.05,momentum=0.9", "--step", step))
        runtime = ROOT / "runtime"
        subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", '-DTENON_VERSION="test"', "-I", runtime / "include",
                        ROOT / "examples" / "c" / "train.c", *sorted(runtime.glob("*.c")), "-lpthread", "-o", program], check=True)
        batch.write_bytes(self.images[:32].tobytes() + self.labels[:32].tobytes())
        lines = subprocess.run([program, step, batch, state], check=True, capture_output=True, text=True).stdout.splitlines()
        losses = [float(line.split()[1]) for line in lines]
        self.assertEqual(len(losses), 10)
        self.assertLess(losses[-1], 0.8 * losses[0])
        with open(state, "rb") as file:
            self.assertIn("classifier.weight", json.loads(file.read(int.from_bytes(file.read(8), "little"))))
        batch.write_bytes(self.images[:3].tobytes())
        self.assertEqual(subprocess.run([program, step, batch, state], capture_output=True).returncode, 1)

    def test_products_in_bf16_learn_too(self):
        narrow, full = (json.loads(self.good(*self.train("--json", "--epochs", "3", "--optimizer", "sgd,lr=0.05,momentum=0.9", *more)).splitlines()[-1])["loss"]
                        for more in (("--precision", "bf16"), ()))
        self.assertNotEqual(narrow, full)
        self.assertAlmostEqual(narrow, full, delta=0.1)
        self.refused(*self.train("--precision", "f8"), status=2)

    def test_the_seed_decides_everything(self):
        first, again, other = (self.elsewhere(name) for name in ("first", "again", "other"))
        self.good(*self.train("--seed", "1", out=first))
        self.good(*self.train("--seed", "1", out=again, threads=2))
        self.good(*self.train("--seed", "2", out=other))
        self.assertEqual(first.read_bytes(), again.read_bytes())
        self.assertNotEqual(first.read_bytes(), other.read_bytes())


class Stopping(TrainTest):
    WAYS = ("--epochs", "4", "--optimizer", "adamw,lr=0.01", "--schedule", "cosine,warmup=3", "--accumulate", "2", "--clip-norm", "1",
            "--seed", "3")

    def setUp(self):
        super().setUp()
        self.whole = self.elsewhere("whole")
        self.good(*self.train(*self.WAYS, out=self.whole))
        self.whole_state = self.whole.with_name("out.state.safetensors")

    def check_same(self):
        self.assertEqual(self.out.read_bytes(), self.whole.read_bytes())
        self.assertEqual(self.state.read_bytes(), self.whole_state.read_bytes())

    def stopped(self, how, after, resume):
        """Starts, sends a signal when the state has been saved so often, and waits for the end."""
        again = ["--resume", self.state] if resume else []
        process = subprocess.Popen([TENON, *map(str, self.train(*self.WAYS, "--save-every", "0.000001s", *again))],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        seen, stamp = 0, None
        deadline = time.monotonic() + 60
        while process.poll() is None and seen < after and time.monotonic() < deadline:
            now = self.state.stat().st_ino if self.state.exists() else None
            seen, stamp = seen + (now is not None and now != stamp), now
        if process.poll() is None:
            process.send_signal(how)
        errors = process.communicate(timeout=60)[1]
        return process.returncode, errors

    def test_killed_anywhere_it_goes_on_to_the_same_bits(self):
        killed = 0
        for after in (1, 2, 3, 2, 4):
            status, _ = self.stopped(signal.SIGKILL, after, resume=self.state.exists())
            killed += status == -signal.SIGKILL
            if status == 0:
                break
        self.assertGreater(killed, 0)
        done = tenon(*self.train(*self.WAYS, "--resume", self.state))
        self.assertEqual(done.returncode, 0, done.stderr)
        # The last signal may have come when all epochs were saved, and the program was not yet.
        self.assertTrue(done.stderr == "" or "has all of the 4 epochs already" in done.stderr, done.stderr)
        self.check_same()

    def test_ctrl_c_saves_and_says_how_to_go_on(self):
        status, errors = self.stopped(signal.SIGINT, 2, resume=False)
        self.assertEqual(status, -signal.SIGINT, errors)
        self.assertIn(f"go on with --resume {self.state}", errors)
        self.assertTrue(self.out.exists())
        position = self.metadata(self.state)
        self.assertLess(int(position["epoch"]), 4)
        self.good(*self.train(*self.WAYS, "--resume", self.state))
        self.check_same()

    def test_a_training_that_has_ended_goes_on_with_more_epochs(self):
        ways = ("--seed", "3", "--optimizer", "sgd,lr=0.05,momentum=0.9")
        self.good(*self.train(*ways, "--epochs", "4", out=self.whole))
        self.good(*self.train(*ways, "--epochs", "1"))
        self.good(*self.train(*ways, "--epochs", "4", "--resume", self.state))
        self.check_same()

    def test_other_settings_are_refused(self):
        for option, value, expected in (("--seed", "4", "started with seed '3', and now it is '4'"),
                                        ("--batch", "16", "started with batch '32', and now it is '16'"),
                                        ("--optimizer", "sgd", "which this training does not keep")):
            arguments = self.train(*self.WAYS, "--resume", self.whole_state)
            index = arguments.index(option)
            arguments[index + 1] = value
            self.assertIn(expected, self.refused(*arguments))

    def test_a_file_that_is_no_state_is_refused(self):
        wrong = self.scratch / "wrong.safetensors"
        for content in (b"", b"nonsense", self.whole_state.read_bytes()[:1000]):
            wrong.write_bytes(content)
            self.assertIn("wrong.safetensors", self.refused(*self.train(*self.WAYS, "--resume", wrong)))


class NotFinite(TrainTest):
    def test_a_loss_that_is_not_finite_stops_and_keeps_the_state(self):
        images = self.images.copy()
        images[140, 0, 0, 0] = numpy.nan
        message = self.refused(*self.train(data=self.save("nan.npz", images=images, target=self.labels)))
        self.assertRegex(message, r"at step [1-5] \(epoch 1, batch [1-5]\): the loss is not a finite number")
        self.assertIn("the state before it is in", message)
        self.assertTrue(message.startswith(f"{CNN}: at step "), message)
        step = int(message.split("at step ")[1].split()[0])
        self.assertEqual(int(self.metadata(self.state)["batch"]), step - 1)
        self.assertFalse(self.out.exists())

    def test_a_state_with_numbers_that_are_not_finite_is_not_saved(self):
        self.good(*self.train("--epochs", "1"))
        good = self.state.read_bytes()
        message = self.refused(*self.train("--epochs", "3", "--optimizer", "sgd,lr=1e38"))
        self.assertRegex(message, r"not finite|not a finite number")
        if self.state.read_bytes() != good:
            self.assertIn("the state before it is in", message)


class Sharing(TrainTest):
    """Parameters over the same memory: first.weight is second.weight, and view lies within first.bias."""

    def train(self, *options):
        data = self.save("tied.npz", x=numpy.linspace(-1, 1, 48, dtype="f4").reshape(8, 6))
        return ["train", FILES / "a_mlp_tied.pt2", "--data", data, "--loss", "none", "-o", self.out, *options]

    def test_those_that_overlap_cannot_both_be_trained(self):
        self.assertIn("the parameters first.bias and view overlap in memory and cannot both be trained", self.refused(*self.train()))

    def test_one_that_is_frozen_still_sees_the_other_change(self):
        done = tenon(*self.train("--freeze", "view", "--optimizer", "sgd,lr=0.01"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("interpreted, not compiled: view and first.bias share memory", done.stderr)
        self.assertIn("3 parameters", done.stdout)


class Demo(CommandTest):
    def test_it_reads_held_out_digits(self):
        done = subprocess.run([ROOT / "scripts" / "demo"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        share = float(done.stdout.split("held-out digits read right: ")[1].split(" %")[0])
        self.assertGreaterEqual(share, 97)
        self.assertIn(f"accuracy {share} %", done.stdout.split("loss over")[0].splitlines()[-11])
        self.assertNotIn("python", (ROOT / "scripts" / "demo").read_text())


class Files(TrainTest):
    def test_safetensors_data(self):
        header, data, at = {}, b"", 0
        for name, array, dtype in (("images", self.images, "F32"), ("target", self.labels, "I64")):
            header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
            data += array.tobytes()
            at += array.nbytes
        text = json.dumps(header).encode()
        path = pathlib.Path(self.scratch / "data.safetensors")
        path.write_bytes(len(text).to_bytes(8, "little") + text + data)
        self.assertEqual(json.loads(self.good(*self.train("--json", data=path)))["loss"], json.loads(self.good(*self.train("--json")))["loss"])
