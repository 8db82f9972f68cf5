"""One model in one engine, in a process of its own: `peer.py ENGINE MODEL BATCH THREADS [KEPT]`. Says what compiling took, then measures each time
a line with a number of seconds comes in. Talks JSON, a line each. What an engine wrote is kept in the folder KEPT with the time that it took, and
found there the next time: the tuning of AOTInductor takes minutes a model."""

import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time


def resident(which="VmRSS"):
    """What is resident, or VmHWM, the most that was. (getrusage would count what the process had that started this one.)"""
    return int(re.search(rf"{which}:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024


def eager(module, sample):
    return lambda: module(*sample)


def inductor(options):
    def make(module, sample):
        import torch

        path = KEPT / f"{NAME}.pt2"
        if not path.exists():
            program = torch.export.export(module, sample)
            torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs=options)
        run = torch._inductor.aoti_load_package(str(path))
        return lambda: run(*sample)

    return make


def onnx_file(module, sample):
    import torch

    path = KEPT / f"{NAME}.onnx"
    if not path.exists():
        torch.onnx.export(module, sample, str(path), dynamo=True, external_data=True, verbose=False)
    return str(path)


def onnxruntime(module, sample):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = ort.InferenceSession(onnx_file(module, sample), options, providers=["CPUExecutionProvider"])
    feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), sample)}
    return lambda: session.run(None, feed)


def openvino(module, sample):
    import openvino as ov

    core = ov.Core()
    compiled = core.compile_model(core.read_model(onnx_file(module, sample)), "CPU",
                                  {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    feed = [x.numpy() for x in sample]
    return lambda: request.infer(feed)


def training(compiled):
    def make(module, sample):
        import torch

        module.train()
        target = torch.randint(0, CLASSES, (len(sample[0]),))
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
        forward = torch.compile(module) if compiled else module

        def step():
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(forward(*sample), target).backward()
            optimizer.step()

        return step

    return make


ENGINES = {
    "eager": eager,
    "aoti": inductor({}),
    "aoti frozen": inductor({"freezing": True, "max_autotune": True}),
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "eager step": training(False),
    "compiled step": training(True),
}


def say(**message):
    print(json.dumps(message), file=TO, flush=True)


def main():
    engine, name, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    import torch

    import models

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    model = next(m for m in models.INFERENCE + models.TRAINING if m.name == name)
    global CLASSES
    CLASSES = model.classes
    module, sample = model.make().eval(), model.inputs(batch)
    before, start = resident(), time.perf_counter()
    with torch.set_grad_enabled(model.classes > 0):
        try:
            call = ENGINES[engine](module, sample)
            call()
        except Exception as e:  # an engine that cannot do a model is left out of its line
            return say(failed=f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:200])
        took = KEPT / f"{NAME}.seconds"
        if not took.exists():
            took.write_text(str(time.perf_counter() - start))
        say(compile_seconds=float(took.read_text()))
        for line in sys.stdin:
            times, end = [], time.perf_counter() + float(line)
            while len(times) < 3 or time.perf_counter() < end:
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
            say(ms=1e3 * statistics.median(times), peak_mb=(resident("VmHWM") - before) / 1e6)


THREADS = int(sys.argv[4])
KEPT = pathlib.Path(sys.argv[5] if len(sys.argv) > 5 else tempfile.mkdtemp())
NAME = "".join(c if c.isalnum() else "_" for c in " ".join(sys.argv[1:5]))
CLASSES = 0
TO = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what engines print goes elsewhere
main()
