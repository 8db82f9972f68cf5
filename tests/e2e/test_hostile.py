"""What a terminal, a file system and a machine with little memory see of files that mean harm."""

import os
import signal
import subprocess
import sys
import time
import unittest

from command import FILES, ROOT, TENON, CommandTest, tenon

sys.path.insert(0, str(ROOT / "tests" / "errors"))
from archive import Archive  # noqa: E402

MLP = FILES / "a_mlp.pt2"


class Warnings(CommandTest):
    def test_one_about_samples_names_its_file_once(self):
        archive = Archive(MLP)
        archive.entries["data/sample_inputs/model.pt"] = b"nonsense"
        bad = self.scratch / "bad.pt2"
        bad.write_bytes(archive.pack())
        expected = f"tenon: {bad}: warning: the sample inputs are left out: data/sample_inputs/model.pt: not a valid zip archive"
        for verb, *out in (("compile", "-o", "out.so"), ("convert", "out.pt2"), ("grad", "-o", "joint.pt2")):
            done = tenon(verb, bad, *out, cwd=self.scratch)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stderr.startswith(expected), done.stderr)
            self.assertEqual(done.stderr.count(str(bad)), 1, done.stderr)


class Terminal(CommandTest):
    def changed(self, old, new, name="bad.pt2"):
        archive = Archive(MLP)
        text = archive.entries["models/model.json"].decode()
        self.assertIn(old, text)
        archive.entries["models/model.json"] = text.replace(old, new).encode()
        path = self.scratch / name
        path.write_bytes(archive.pack())
        return path

    def assert_harmless(self, text):
        for character in text:
            code = ord(character)
            self.assertTrue(code in (9, 10) or 32 <= code < 127 or code >= 160, repr(text))
            self.assertNotIn(code, range(0x202A, 0x202F), repr(text))

    def test_what_a_file_says_is_escaped_on_stdout(self):
        archive = Archive(MLP)
        model = archive.model
        for node in model["graph_module"]["graph"]["nodes"]:
            node["metadata"] = {"stack_trace": "  File \"\x1b]0;title\x07\u009b31m\u202e.py\", line 1, in f\n    x = 1\x1b[2J\n"}
        archive.model = model
        path = self.scratch / "trace.pt2"
        path.write_bytes(archive.pack())
        for stage in ("read", "functional", "loops"):
            self.assert_harmless(self.good("show", path, "--after", stage))
        self.assertIn("\\x1b]0;title", self.good("show", path))

    def test_what_a_file_says_is_escaped_on_stderr(self):
        path = self.changed("torch.ops.aten.linear.default", "torch.ops.aten.\\u001b[31m\\u202e.default")
        message = self.refused("show", path)
        self.assert_harmless(message)
        self.assertIn("\\x1b[31m", message)

    def test_a_file_name_is_escaped(self):
        path = self.scratch / "a\x1b[31m\nb.pt2"
        path.write_bytes(b"no zip")
        self.assert_harmless(self.refused("show", path))

    def test_a_message_is_one_line_of_limited_length(self):
        path = self.changed('"schema_version"', '"' + "k" * 5_000_000 + '": 1, "schema_version"')
        self.good("show", path)
        path = self.changed("torch.ops.aten.linear.default", "torch.ops.aten." + "a\\n" * 100_000)
        self.assertLess(len(self.refused("show", path)), 1100)


class OutputFiles(CommandTest):
    def test_a_pipe_as_input_does_not_block(self):
        os.mkfifo(self.scratch / "pipe")
        for verb in (["show"], ["run"], ["convert"]):
            more = [self.scratch / "out.pt2"] if verb == ["convert"] else []
            self.assertIn("pipe or a device", self.refused(*verb, self.scratch / "pipe", *more))
        self.assertIn("pipe or a device", self.refused("run", MLP, "--inputs", self.scratch / "pipe"))

    def test_a_link_to_nothing_leads_to_the_file_written(self):
        link = self.scratch / "link.pt2"
        link.symlink_to("there.pt2")
        self.good("convert", MLP, link)
        self.assertTrue(link.is_symlink())
        self.assertTrue((self.scratch / "there.pt2").is_file())

    def test_a_full_device_is_named(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TENON, "show", MLP], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "tenon: cannot write to the standard output: No space left on device\n")

    def test_a_folder_of_the_system_is_refused_for_its_own_reason(self):
        message = self.refused("convert", MLP, "/proc/self/x.pt2")
        self.assertTrue("No such file" in message or "cannot be written" in message or "Permission" in message, message)

    def test_signals_leave_nothing_half_written(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            out = self.scratch / "out.pt2"
            process = subprocess.Popen([TENON, "grad", FILES / "b_digits_train.pt2", "-o", out],
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            deadline = time.monotonic() + 30
            while process.poll() is None and time.monotonic() < deadline:
                if any(self.scratch.glob(".tenon-*")):
                    process.send_signal(number)
                    break
            process.wait(timeout=30)
            self.assertEqual(list(self.scratch.glob(".tenon-*")), [])
            out.unlink(missing_ok=True)


class Memory(CommandTest):
    def test_a_limit_stops_a_run_with_a_sentence(self):
        self.assertIn("needs more memory than the 1024 bytes of --max-memory", self.refused("run", MLP, "--max-memory", "1K"))
        self.good("run", MLP, "--max-memory", "1G")

    def test_a_limit_stops_every_verb(self):
        out = self.scratch / "out"
        words = "needs more memory than the 1048576 bytes of --max-memory"
        for arguments in (["show", MLP], ["show", MLP, "--after=kernels"], ["grad", MLP, "-o", out], ["convert", MLP, out],
                          ["convert", MLP, out, "--dialect", "core"], ["compile", MLP, "-o", out], ["bench", MLP]):
            self.assertIn(words, self.refused(*arguments, "--max-memory", "1M"))
            self.assertFalse(out.exists())
        # 1 would say that the two differ.
        self.assertIn(words, self.refused("diff", MLP, MLP, "--max-memory", "1M", status=2))

    def test_a_limit_that_is_no_number_is_a_usage_error(self):
        self.assertIn("expected a number of bytes", self.refused("run", MLP, "--max-memory", "lots", status=2))


if __name__ == "__main__":
    unittest.main()
