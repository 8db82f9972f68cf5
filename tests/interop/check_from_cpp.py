"""Opens the programs that examples/cpp/from_cpp wrote, and compares what they compute: check_from_cpp.py FOLDER"""

import pathlib
import sys

import numpy as np
import torch


def calls(path):
    """The arguments and results of each size that was written."""
    arrays = {name: torch.from_numpy(array) for name, array in np.load(path).items()}
    for number in range(len([name for name in arrays if name.startswith("result.")])):
        yield [arrays[f"{name}.{number}"] for name in ("x", "y") if f"{name}.{number}" in arrays], arrays[f"result.{number}"]


for path in sorted(pathlib.Path(sys.argv[1]).glob("*.pt2")):
    program = torch.export.load(path)
    module = program.module()
    examples = program.example_inputs[0]
    sizes = []
    for arguments, expected in calls(path.with_suffix(".npz")):
        if not sizes:
            assert [t.shape for t in arguments] == [t.shape for t in examples], path
        y = module(*arguments)
        torch.testing.assert_close(y.detach(), expected, rtol=1e-4, atol=1e-5)
        sizes.append(len(arguments[0]))
    y.sum().backward()
    assert all(p.grad is not None for p in module.parameters()), path

    # The module stacks make modules again, under the names they had.
    unflat = torch.export.unflatten(torch.export.load(path))
    names = {name for name, _ in unflat.named_modules()}
    listed = {entry.fqn for entry in program.module_call_graph}
    used = {fqn for node in program.graph.nodes for fqn, _ in (node.meta.get("nn_module_stack") or {}).values()}
    assert used <= listed and used <= names, (path, used, listed, names)
    assert len(used) > 1, path
    arguments, expected = next(iter(calls(path.with_suffix(".npz"))))
    torch.testing.assert_close(unflat(*arguments).detach(), expected, rtol=1e-4, atol=1e-5)
    print(f"{path.name}: batches {sizes}, {len(list(module.parameters()))} parameters, modules {sorted(used)[1:]}: the same numbers, gradients")

sizes = torch.export.load(pathlib.Path(sys.argv[1]) / "sizes.pt2")
assert str(sizes.range_constraints) == "{s77: VR[2, 100], 2*s77: VR[4, 200]}", sizes.range_constraints
specs = {spec.target: (spec.kind.name, spec.arg.name) for spec in sizes.graph_signature.input_specs if spec.target}
assert specs["block.scale"] == ("CONSTANT_TENSOR", "c_block_scale"), specs
assert specs["lifted_tensor_0"] == ("CONSTANT_TENSOR", "c_lifted_tensor_0"), specs
assert specs["block.inner.weight"] == ("PARAMETER", "p_block_inner_weight"), specs
assert any("wrap_with_set_grad_enabled" in str(node.target) for node in sizes.graph.nodes), sizes.graph
signatures = {entry.fqn: entry.signature for entry in sizes.module_call_graph if entry.signature}
assert list(signatures) == ["", "block", "out", "block@1"], list(signatures)
assert [a.name for a in signatures["block"].inputs] == ["y"], signatures["block"]
assert signatures["block"].outputs == signatures["block@1"].inputs, signatures
preserved = torch.export.unflatten(sizes)
with torch.no_grad():  # called as forward was, alone
    pairs, out = torch.randn(5, 12), sizes.state_dict["out.weight"]
    torch.testing.assert_close(preserved.out(pairs), pairs @ out.T + sizes.state_dict["out.bias"])
module = sizes.module()
module(torch.zeros(4, 6), torch.zeros(8, 6))
assert module.block.seen.item() == 16, module.block.seen
for wrong in ((torch.zeros(4, 6), torch.zeros(7, 6)), (torch.zeros(101, 6), torch.zeros(202, 6))):
    try:
        module(*wrong)
        raise SystemExit(f"sizes {[t.shape for t in wrong]} were taken")
    except (AssertionError, RuntimeError, ValueError) as error:
        print("refused:", str(error).splitlines()[0][:120])
