"""One model in one engine, in a process of its own: `peer.py ENGINE MODEL BATCH THREADS KEPT [--memory]`. Says what compiling took, then
measures each time a line with a number of seconds comes in. Talks JSON, a line each. What an engine wrote is kept in the folder KEPT with the time
that it took and with the inputs, and found there the next time: the tuning of AOTInductor takes minutes a model. With --memory it says how much
memory the engine needs to load what is kept and to run it; nothing else is made in that process."""

import json
import os
import pathlib
import re
import statistics
import sys
import time


def resident(which="VmRSS"):
    """What is resident, or VmHWM, the most that was. (getrusage would count what the process had that started this one.)"""
    return int(re.search(rf"{which}:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024


class Eager:
    """The module itself."""

    def prepare(self, module, sample):
        pass

    def load(self, make, sample):
        import torch

        module, sample = make().eval(), [torch.from_numpy(x) for x in sample]
        return lambda: module(*sample)


class Inductor:
    def __init__(self, options):
        self.options = options

    def prepare(self, module, sample):
        import torch

        if not kept(".pt2").exists():
            program = torch.export.export(module, sample)
            torch._inductor.aoti_compile_and_package(program, package_path=str(kept(".pt2")), inductor_configs=self.options)

    def load(self, make, sample):
        import torch

        run, sample = torch._inductor.aoti_load_package(str(kept(".pt2"))), [torch.from_numpy(x) for x in sample]
        return lambda: run(*sample)


class OnnxRuntime:
    def prepare(self, module, sample):
        import torch

        if not kept(".onnx").exists():
            torch.onnx.export(module, sample, str(kept(".onnx")), dynamo=True, external_data=True, verbose=False)

    def load(self, make, sample):
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = THREADS
        session = ort.InferenceSession(str(kept(".onnx")), options, providers=["CPUExecutionProvider"])
        feed = {i.name: x for i, x in zip(session.get_inputs(), sample)}
        return lambda: session.run(None, feed)


class OpenVino(OnnxRuntime):
    def load(self, make, sample):
        import openvino as ov

        core = ov.Core()
        compiled = core.compile_model(core.read_model(str(kept(".onnx"))), "CPU",
                                      {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32"})
        request = compiled.create_infer_request()
        return lambda: request.infer(sample)


class Training(Eager):
    def __init__(self, compiled):
        self.compiled = compiled

    def load(self, make, sample):
        import torch

        module, sample = make().train(), [torch.from_numpy(x) for x in sample]
        target = torch.randint(0, CLASSES, (len(sample[0]),))
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
        forward = torch.compile(module) if self.compiled else module

        def step():
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(forward(*sample), target).backward()
            optimizer.step()

        return step


ENGINES = {
    "eager": Eager(),
    "aoti": Inductor({}),
    "aoti frozen": Inductor({"freezing": True, "max_autotune": True}),
    "onnxruntime": OnnxRuntime(),
    "openvino": OpenVino(),
    "eager step": Training(False),
    "compiled step": Training(True),
}
WITHOUT_TORCH = ("onnxruntime", "openvino")


def say(**message):
    print(json.dumps(message), file=TO, flush=True)


def kept(ending):
    return KEPT / (NAME + ending)


def needed_memory(engine, name):
    """The most that is resident while the engine loads and runs, above what it is once everything is imported."""
    global CLASSES
    import numpy

    make = None
    if engine in WITHOUT_TORCH:
        __import__(engine)
    else:
        import torch

        import models

        torch.set_num_threads(THREADS)
        model = next(m for m in models.INFERENCE + models.TRAINING if m.name == name)
        make, CLASSES = model.make, model.classes
        torch.set_grad_enabled(CLASSES > 0)
        if engine.startswith("aoti"):
            import torch._inductor
        else:  # what making the model imports
            make()
    with numpy.load(kept(".npz")) as arrays:
        sample = [arrays[a] for a in arrays]
    before = resident()
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts anew
    call = ENGINES[engine].load(make, sample)
    for _ in range(3):
        call()
    say(peak_mb=(resident("VmHWM") - before) / 1e6)


def main():
    global CLASSES
    engine, name, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if "--memory" in sys.argv:
        return needed_memory(engine, name)
    import numpy
    import torch

    import models

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    model = next(m for m in models.INFERENCE + models.TRAINING if m.name == name)
    CLASSES = model.classes
    module, sample = model.make().eval(), model.inputs(batch)
    start = time.perf_counter()
    with torch.set_grad_enabled(model.classes > 0):
        try:
            ENGINES[engine].prepare(module, sample)
            call = ENGINES[engine].load(lambda: module, [x.numpy() for x in sample])
            call()
        except Exception as e:  # an engine that cannot do a model is left out of its line
            return say(failed=f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:200])
        if not kept(".seconds").exists():
            kept(".seconds").write_text(str(time.perf_counter() - start))
        numpy.savez(kept(".npz"), *(x.numpy() for x in sample))
        say(compile_seconds=float(kept(".seconds").read_text()))
        for line in sys.stdin:
            times, end = [], time.perf_counter() + float(line)
            while len(times) < 3 or time.perf_counter() < end:
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
            say(ms=1e3 * statistics.median(times))


THREADS = int(sys.argv[4])
KEPT = pathlib.Path(sys.argv[5])
NAME = "".join(c if c.isalnum() else "_" for c in " ".join(sys.argv[1:5]))
CLASSES = 0
TO = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what engines print goes elsewhere
main()
