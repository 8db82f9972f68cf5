"""Losses and parameters after steps of tenon train, beside the same steps of PyTorch in float32 and in float64.

Each epoch is one batch of all samples, so that their order, which is Tenon's own, does not matter.
"""

import copy
import json
import sys

import numpy
import torch
from torch import nn

from command import DIGITS, CommandTest

sys.path.insert(0, str(DIGITS))
from export_digits import DigitsCnn  # noqa: E402

torch.set_num_threads(1)  # batches are small, and threads that wait for each other slow everything down
SAMPLES = 64
STEPS = (1, 10, 100)

OPTIMIZERS = {
    "sgd,lr=0.1": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd,lr=0.05,momentum=0.9": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "sgd,lr=0.05,momentum=0.9,dampening=0.3": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.3),
    "sgd,lr=0.05,momentum=0.9,nesterov=True,weight_decay=0.01":
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p),
    "adam,lr=0.002,betas=(0.8,0.95),eps=1e-6,weight_decay=0.02,amsgrad=True":
        lambda p: torch.optim.Adam(p, lr=0.002, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.02, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p),
    "adamw,lr=0.003,weight_decay=0.1": lambda p: torch.optim.AdamW(p, lr=0.003, weight_decay=0.1),
    "rmsprop,lr=0.001": lambda p: torch.optim.RMSprop(p, lr=0.001),
    "rmsprop,lr=0.001,momentum=0.5,centered=True,weight_decay=0.01":
        lambda p: torch.optim.RMSprop(p, lr=0.001, momentum=0.5, centered=True, weight_decay=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p),
    "adagrad,lr=0.02,lr_decay=0.01,initial_accumulator_value=0.1,weight_decay=0.01":
        lambda p: torch.optim.Adagrad(p, lr=0.02, lr_decay=0.01, initial_accumulator_value=0.1, weight_decay=0.01),
}
# The first steps of rmsprop and adagrad divide each gradient by its own size, so that the sign of what is nearly 0 decides: one unit in
# the last place of the images moves the losses of resnet18 by up to 3e-3 in PyTorch too. What is added to the size here keeps such
# signs from counting; the smaller networks are compared with the defaults.
RESNET = {
    "sgd,lr=0.01,momentum=0.9": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "adam": OPTIMIZERS["adam"],
    "adamw": OPTIMIZERS["adamw"],
    "rmsprop,lr=0.001,eps=0.01": lambda p: torch.optim.RMSprop(p, lr=0.001, eps=0.01),
    "adagrad,initial_accumulator_value=0.1": lambda p: torch.optim.Adagrad(p, initial_accumulator_value=0.1),
}
FIVE = ("sgd,lr=0.05,momentum=0.9", "adam", "adamw", "rmsprop,lr=0.001", "adagrad")


def mlp():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5))


def mlp_data():
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(SAMPLES, 20, generator=generator)
    return x, (x[:, :5] + 0.5 * torch.randn(SAMPLES, 5, generator=generator)).argmax(1)


def cnn():
    torch.manual_seed(4)  # with it no maximum of a pool is a tie to within rounding, which float32 may break either way
    return DigitsCnn(dropout=0.0)


def cnn_data():
    with numpy.load(DIGITS / "train.npz") as data:
        return torch.from_numpy(data["images"][:SAMPLES]), torch.from_numpy(data["target"][:SAMPLES])


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 12, num_layers=2, batch_first=True)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Gpt2(nn.Module):
    """Two layers of GPT-2; scores of the next token, [n, tokens, positions]."""

    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel
        self.inner = GPT2LMHeadModel(GPT2Config(vocab_size=19, n_positions=12, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.0,
                                                embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager", use_cache=False))

    def forward(self, tokens):
        return self.inner(tokens).logits.transpose(1, 2)


def text_data():
    """Every token follows from the one before, with a few mistakes."""
    generator = torch.Generator().manual_seed(7)
    tokens = [torch.randint(0, 19, (16,), generator=generator)]
    for _ in range(8):
        slip = torch.randint(0, 19, (16,), generator=generator) * (torch.rand(16, generator=generator) < 0.1)
        tokens.append((3 * tokens[-1] + 2 + slip) % 19)
    text = torch.stack(tokens, 1)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def resnet18():
    from torchvision.models import resnet18
    torch.manual_seed(9)
    return resnet18(num_classes=10)


def image_data():
    generator = torch.Generator().manual_seed(10)
    return torch.randn(4, 3, 64, 64, generator=generator), torch.arange(4)


def sequence_data():
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(SAMPLES, 7, 4, generator=generator)
    return x, (x.sum(1)[:, :1] * torch.arange(1, 6) + torch.randn(SAMPLES, 5, generator=generator)).argmax(1)


def double(t):
    return t.double() if t.is_floating_point() else t


class Compared(CommandTest):
    any_batch = True  # whether programs are exported for any number of samples

    def export(self, model, x):
        path = self.scratch / "model.pt2"
        shapes = ({0: torch.export.Dim("n")},) if self.any_batch else None
        torch.export.save(torch.export.export(model.train(), (x,), dynamic_shapes=shapes), path)
        return path

    def trained(self, model, x, target, *options, steps):
        """The loss of each epoch, and the program that was written."""
        file = self.export(copy.deepcopy(model), x)
        (name,) = torch.export.load(file).graph_signature.user_inputs
        data = self.save("data.npz", **{name: x.numpy()} | ({} if target is None else {"target": target.numpy()}))
        out = self.scratch / "trained.pt2"
        lines = self.good("train", file, "--data", data, "--epochs", steps, "--json", "-o", out, *options).splitlines()
        return [json.loads(line)["loss"] for line in lines], torch.export.load(out)

    def reference(self, model, x, target, loss, make, steps, schedule=None, clip=None):
        model = copy.deepcopy(model).train()
        optimizer = make(model) if make.__code__.co_varnames[0] == "model" else make(model.parameters())
        scheduler = schedule(optimizer) if schedule else None
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            value = loss(model(x), target)
            losses.append(value.item())
            value.backward()
            if clip:
                clip(model.parameters())
            optimizer.step()
            if scheduler:
                scheduler.step()
        return losses, model

    def in_float32(self, model, x, *how, convolutions):
        """The same in PyTorch's float32. Where convolutions add up in orders of their own, by each of PyTorch's kernels (as it is,
        channels last, without oneDNN), and with inputs that are one unit in the last place apart."""
        yield self.reference(model, x, *how)
        if convolutions:
            last = {"memory_format": torch.channels_last}
            yield self.reference(copy.deepcopy(model).to(**last), x.to(**last), *how)
            with torch.backends.mkldnn.flags(enabled=False):
                yield self.reference(model, x, *how)
            units = torch.randint(-1, 2, x.shape, generator=torch.Generator().manual_seed(0))
            yield self.reference(model, x * (1 + units * torch.finfo(x.dtype).eps), *how)

    def check_parameters(self, program, singles, exact):
        """No further from float64 than float32 has a right to be."""
        for name, wanted in exact.state_dict().items():
            got = program.state_dict[name]
            if not got.is_floating_point():
                torch.testing.assert_close(got, wanted)
                continue
            own = max((single.state_dict()[name].double() - wanted).abs().max().item() for single in singles)
            error = (got.double() - wanted).abs().max().item()
            self.assertLessEqual(error, 5 * own + 2e-5, name)

    def compare(self, model, data, optimizer, make, steps=101, loss=nn.functional.cross_entropy, options=(), schedule=None,
                clip=None, falls=True, convolutions=False):
        x, target = data
        singles, models32 = zip(*self.in_float32(model, x, target, loss, make, steps, schedule, clip, convolutions=convolutions))
        exact, model64 = self.reference(copy.deepcopy(model).double(), double(x), None if target is None else double(target), loss,
                                        make, steps, schedule, clip)
        for way in ((), ("--interpret",)):
            losses, program = self.trained(model, x, target, "--optimizer", optimizer, "--batch", len(x), *options, *way, steps=steps)
            for step in sorted({s for s in (0,) + STEPS if s < steps} | {steps - 1}):
                own = max(abs(single[step] - exact[step]) for single in singles)
                error = abs(losses[step] - exact[step])
                self.assertLessEqual(error, 4 * own + 5e-6 * max(1, abs(exact[step])),
                                     f"after {step} steps {way}: {losses[step]}, {exact[step]} in float64")
            if falls:
                self.assertLess(losses[-1], losses[0])
            self.check_parameters(program, models32, model64)


class Optimizers(Compared):
    def test_a_perceptron_learns_as_in_pytorch(self):
        for name, make in OPTIMIZERS.items():
            with self.subTest(name):
                self.compare(mlp(), mlp_data(), name, make)

    def test_the_digits_network_learns_as_in_pytorch(self):
        for name in FIVE:
            with self.subTest(name):
                self.compare(cnn(), cnn_data(), name, OPTIMIZERS[name])


    def test_a_recurrent_network_learns_as_in_pytorch(self):
        for name in FIVE:
            with self.subTest(name):
                torch.manual_seed(5)
                self.compare(Lstm(), sequence_data(), name, OPTIMIZERS[name])

    def test_gpt2_learns_as_in_pytorch(self):
        self.any_batch = False
        for name in FIVE:
            with self.subTest(name):
                torch.manual_seed(5)
                self.compare(Gpt2(), text_data(), name, OPTIMIZERS[name])

    def test_resnet18_learns_as_in_pytorch(self):
        self.any_batch = False
        for name, make in RESNET.items():
            with self.subTest(name):
                self.compare(resnet18(), image_data(), name, make, steps=4, falls=False, convolutions=True)


class Losses(Compared):

    def losses(self, options, loss, target):
        self.compare(mlp(), (mlp_data()[0], target), "sgd,lr=0.05,momentum=0.9", OPTIMIZERS["sgd,lr=0.05,momentum=0.9"], steps=11,
                     loss=loss, options=options)

    def test_mse(self):
        self.losses(("--loss", "mse"), nn.functional.mse_loss, mlp_data()[0][:, :5].contiguous())

    def test_bce_with_logits(self):
        self.losses(("--loss", "bce_with_logits"), nn.functional.binary_cross_entropy_with_logits,
                    (mlp_data()[0][:, :5] > 0).float())

    def test_cross_entropy_with_label_smoothing_and_ignored_classes(self):
        target = mlp_data()[1].clone()
        target[::7] = 3
        self.losses(("--loss", "cross_entropy,label_smoothing=0.1,ignore_index=3"),
                    lambda y, t: nn.functional.cross_entropy(y, t, label_smoothing=0.1, ignore_index=3), target)

    def test_cross_entropy_of_probabilities(self):
        self.losses((), nn.functional.cross_entropy, torch.softmax(2 * mlp_data()[0][:, :5], 1))

    def test_a_program_that_returns_its_loss(self):
        class WithLoss(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = mlp()

            def forward(self, x):
                return (self.inner(x)[:, 0] - x[:, 0]).square().mean()

        self.compare(WithLoss(), (mlp_data()[0], None), "adam", OPTIMIZERS["adam"], steps=11, loss=lambda y, t: y,
                     options=("--loss", "none"))


class Ways(Compared):
    """Clipping, schedules, accumulation, frozen parameters and groups."""

    def test_clipping_by_norm(self):
        self.compare(mlp(), mlp_data(), "sgd,lr=0.5", lambda p: torch.optim.SGD(p, lr=0.5), steps=11,
                     clip=lambda p: torch.nn.utils.clip_grad_norm_(p, 0.2), options=("--clip-norm", "0.2"))

    def test_clipping_by_value(self):
        self.compare(mlp(), mlp_data(), "sgd,lr=0.5", lambda p: torch.optim.SGD(p, lr=0.5), steps=11,
                     clip=lambda p: torch.nn.utils.clip_grad_value_(p, 0.01), options=("--clip-value", "0.01"))

    def test_products_in_bf16_are_as_exact_as_under_autocast(self):
        def rounded(y, target):
            return nn.functional.cross_entropy(y.float(), target)

        x, target = mlp_data()
        make = OPTIMIZERS["adam"]
        exact, _ = self.reference(mlp().double(), double(x), target, nn.functional.cross_entropy, make, 31)
        with torch.autocast("cpu", torch.bfloat16):
            own, _ = self.reference(mlp(), x, target, rounded, make, 31)
        for way in ((), ("--interpret",)):
            losses, program = self.trained(mlp(), x, target, "--optimizer", "adam", "--batch", SAMPLES, "--precision", "bf16", *way,
                                           steps=31)
            worst, most = (max(abs(a - b) for a, b in zip(values, exact)) for values in (losses, own))
            self.assertGreater(worst, 1e-6)  # it does round
            self.assertLessEqual(worst, 2 * most)
            self.assertTrue(all(p.dtype == torch.float32 for p in program.parameters()))

    def test_schedules(self):
        lr = torch.optim.lr_scheduler
        for text, make in {
            "cosine,T_max=30": lambda o: lr.CosineAnnealingLR(o, 30),
            "cosine,eta_min=0.01": lambda o: lr.CosineAnnealingLR(o, 31, eta_min=0.01),
            "linear,start_factor=0.25,end_factor=1,total_iters=9": lambda o: lr.LinearLR(o, 0.25, 1.0, 9),
            "step,step_size=7,gamma=0.5": lambda o: lr.StepLR(o, 7, 0.5),
            "multistep,milestones=(5,12,20),gamma=0.3": lambda o: lr.MultiStepLR(o, [5, 12, 20], 0.3),
            "exponential,gamma=0.9": lambda o: lr.ExponentialLR(o, 0.9),
            "onecycle,total_steps=40": lambda o: lr.OneCycleLR(o, 0.1, 40, cycle_momentum=False),
        }.items():
            with self.subTest(text):
                self.compare(mlp(), mlp_data(), "sgd,lr=0.1", OPTIMIZERS["sgd,lr=0.1"], steps=31, schedule=make,
                             options=("--schedule", text))

    def test_accumulating_batches_is_one_large_batch(self):
        x, target = mlp_data()
        _, program = self.trained(mlp(), x, target, "--optimizer", "adam", "--batch", "16", "--accumulate", "4", steps=10)
        _, single = self.reference(mlp(), x, target, nn.functional.cross_entropy, OPTIMIZERS["adam"], 10)
        _, exact = self.reference(mlp().double(), double(x), target, nn.functional.cross_entropy, OPTIMIZERS["adam"], 10)
        self.check_parameters(program, [single], exact)

    def test_frozen_parameters_and_groups(self):
        def make(model):
            for p in model[0].parameters():
                p.requires_grad_(False)
            biases = [model[2].bias, model[4].bias]
            return torch.optim.AdamW([{"params": biases, "weight_decay": 0.0},
                                      {"params": [model[4].weight], "lr": 0.01},
                                      {"params": [model[2].weight]}], lr=0.001, weight_decay=0.1)

        self.compare(mlp(), mlp_data(), "adamw,lr=0.001,weight_decay=0.1", make, steps=21,
                     options=("--freeze", "0.*", "--no-decay", "*.bias", "--group", "4.weight,lr=0.01"))


class Written(Compared):
    def test_the_trained_program_keeps_mode_signature_and_names(self):
        x, target = cnn_data()
        for mode in (True, False):
            model = cnn().train(mode)
            given, data, out = self.scratch / "given.pt2", self.save("data.npz", images=x.numpy(), target=target.numpy()), self.scratch / "out.pt2"
            program = torch.export.export(model, (x,), dynamic_shapes={"images": {0: torch.export.Dim("n")}})
            torch.export.save(program, given)
            self.good("train", given, "--data", data, "--epochs", "2", "--batch", "16", "-o", out)
            trained = torch.export.load(out)
            self.assertEqual(trained.graph_module.code, torch.export.load(given).graph_module.code)
            self.assertEqual(str(trained.graph_signature), str(torch.export.load(given).graph_signature))
            self.assertEqual(list(trained.state_dict), list(program.state_dict))
            self.assertEqual(trained.state_dict["features.1.num_batches_tracked"].item(), 8)
            changed = [k for k in trained.state_dict if not torch.equal(trained.state_dict[k], program.state_dict[k])]
            self.assertEqual(changed, list(program.state_dict))

    def test_what_tenon_says_of_held_out_digits_pytorch_finds_too(self):
        out = self.scratch / "out.pt2"
        last = json.loads(self.good("train", DIGITS / "digits_cnn_eval.pt2", "--data", DIGITS / "train.npz", "--eval", DIGITS / "test.npz",
                                    "--optimizer", "sgd,lr=0.05,momentum=0.9", "--epochs", "2", "--json", "-o", out).splitlines()[-1])
        with numpy.load(DIGITS / "test.npz") as data:
            images, labels = torch.from_numpy(data["images"]), torch.from_numpy(data["target"])
        scores = torch.export.load(out).module()(images)
        self.assertAlmostEqual(last["eval_accuracy"], (scores.argmax(1) == labels).double().mean().item())
        self.assertAlmostEqual(last["eval_loss"], nn.functional.cross_entropy(scores, labels).item(), places=5)


