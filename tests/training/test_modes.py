"""tenon convert --mode against what PyTorch exports after model.eval() and model.train()."""

import torch
from torch import nn

from command import CommandTest


class Normalized(nn.Module):
    """Every kind of layer whose export depends on the mode."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.own = nn.BatchNorm2d(4, track_running_stats=False)
        self.instance = nn.InstanceNorm2d(4, track_running_stats=True)
        self.plain_instance = nn.InstanceNorm2d(4)
        self.drop = nn.Dropout(0.3)
        self.channels = nn.Dropout2d(0.2)
        self.alpha = nn.AlphaDropout(0.1)
        self.leak = nn.RReLU()

    def forward(self, x):
        x = self.leak(self.norm(self.conv(x)))
        x = self.plain_instance(self.instance(self.own(x)))
        return self.alpha(self.channels(self.drop(x)))


class Counting(nn.Module):
    """A counter of the user's own, beside a layer that counts too."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return self.norm(x) + self.calls


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, num_layers=2, dropout=0.5, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)

    def forward(self, x):
        return self.layer(x)


MODELS = {
    "normalized": (Normalized, lambda: torch.randn(2, 3, 8, 8)),
    "counting": (Counting, lambda: torch.randn(6, 5)),
    "whole_module": (lambda: nn.BatchNorm1d(5), lambda: torch.randn(6, 5)),
    "recurrent": (Recurrent, lambda: torch.randn(2, 3, 4)),
    "attending": (Attending, lambda: torch.randn(2, 3, 8)),
}


def calls_of(program):
    """The operators and their constants, defaults filled in, without names."""
    def plain(arg):
        return "_" if isinstance(arg, torch.fx.Node) else repr(arg)

    def arguments(node):
        schema = node.target._schema.arguments
        given = {slot.name: slot.default_value for slot in schema}
        given |= {slot.name: arg for slot, arg in zip(schema, node.args)} | node.kwargs
        return {name: plain(arg) for name, arg in given.items()}

    return [(str(node.target), arguments(node) if hasattr(node.target, "_schema") else {})
            for node in program.graph.nodes if node.op == "call_function"]


class Modes(CommandTest):
    def export(self, model, mode, x):
        model.train(mode == "train")
        return torch.export.export(model, (x,))

    def converted(self, program, mode):
        given, made = self.scratch / "given.pt2", self.scratch / "made.pt2"
        torch.export.save(program, given)
        self.good("convert", given, made, "--mode", mode)
        return torch.export.load(made)

    def check(self, name, source, mode, same_calls=True):
        torch.manual_seed(3)
        make, sample = MODELS[name]
        model, x = make(), sample()
        wanted = self.export(model, mode, x)
        made = self.converted(self.export(model, source, x), mode)
        if same_calls:
            self.assertEqual(calls_of(made), calls_of(wanted))
        torch.manual_seed(7)
        expected = wanted.module()(x)
        torch.manual_seed(7)
        torch.testing.assert_close(made.module()(x), expected, rtol=0, atol=0)
        run_wanted, run_made = wanted.module(), made.module()
        for run in (run_wanted, run_made):
            torch.manual_seed(9)
            run(x)
            run(x)
        self.assertEqual(list(run_made.state_dict()), list(run_wanted.state_dict()))
        for key, value in run_wanted.state_dict().items():
            torch.testing.assert_close(run_made.state_dict()[key], value, rtol=0, atol=0)

    def test_a_training_export_becomes_what_eval_exports(self):
        for name in MODELS:
            with self.subTest(name):
                self.check(name, "train", "eval")

    def test_an_evaluation_export_becomes_what_train_exports(self):
        for name in MODELS:
            if name != "attending":  # evaluation exports attention with dropout_p=0, and what it was is gone
                with self.subTest(name):
                    self.check(name, "eval", "train")

    def test_the_mode_it_has_changes_nothing(self):
        for name in MODELS:
            for mode in ("train", "eval"):
                with self.subTest(name, mode=mode):
                    self.check(name, mode, mode)

    def test_a_program_decomposed_for_evaluation_is_refused_by_name(self):
        model = nn.BatchNorm1d(5).eval()
        program = torch.export.export(model, (torch.randn(6, 5),)).run_decompositions()
        given = self.scratch / "given.pt2"
        torch.export.save(program, given)
        message = self.refused("convert", given, self.scratch / "made.pt2", "--mode", "train")
        self.assertIn("_native_batch_norm_legit_no_training works in evaluation mode only", message)

    def test_a_functional_training_program_loses_its_updates(self):
        x = torch.randn(6, 5)
        program = torch.export.export(Counting().train(), (x,)).run_decompositions()
        made = self.converted(program, "eval")
        targets = [spec.target for spec in made.graph_signature.output_specs if "MUTATION" in spec.kind.name]
        self.assertEqual(targets, ["calls"])
        run = made.module()
        before = {k: v.clone() for k, v in run.state_dict().items()}
        run(x)
        for key in ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"):
            torch.testing.assert_close(run.state_dict()[key], before[key], rtol=0, atol=0)
