"""Opens the programs that examples/cpp/from_cpp wrote, and compares what they compute: check_from_cpp.py FOLDER"""

import pathlib
import sys

import numpy as np
import torch

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.pt2")):
    program = torch.export.load(path)
    arrays = np.load(path.with_suffix(".npz"))
    module = program.module()
    y = module(torch.from_numpy(arrays["x"]))
    torch.testing.assert_close(y.detach(), torch.from_numpy(arrays["y"]), rtol=1e-4, atol=1e-5)
    y.sum().backward()
    assert all(p.grad is not None for p in module.parameters()), path
    print(f"{path.name}: {len(list(module.parameters()))} parameters, the same numbers, gradients")
