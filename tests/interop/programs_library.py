"""d: torchvision resnet18, and the operators of its detectors. e, f, g: transformers BertModel, GPT2LMHeadModel, LlamaForCausalLM, two layers each.

All with random weights. The libraries are imported only when such a program is asked for.
"""

import copy as copies

import torch
from torch import nn
from torch.export import Dim

from programs import Function, Program, jitter, program


def steady(model, *sizes):
    """An image that leaves no activation near zero, as far as images can be found: its sign, and with it the gradients, would depend on rounding."""
    nearest = []
    copy = copies.deepcopy(model)
    for part in copy.modules():
        if isinstance(part, torch.nn.ReLU):
            part.inplace = False
            part.register_forward_hook(lambda _, inputs, __: nearest.append(inputs[0].abs().min().item()))

    def margin(image):
        nearest.clear()
        with torch.no_grad():
            copy(image)
        return min(nearest)
    return max((torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)) for seed in range(24)), key=margin)


@program("d", needs="torchvision")
def resnet18_eval():
    from torchvision.models import resnet18
    model = jitter_statistics(resnet18()).eval()
    return Program(model, (steady(model, 1, 3, 96, 96),))


@program("d", needs="torchvision")
def resnet18_train():
    from torchvision.models import resnet18
    model = jitter_statistics(resnet18(num_classes=10)).train()
    return Program(model, (steady(model, 3, 3, 65, 70),), dynamic_shapes=({0: Dim("batch")},), more=[((steady(model, 2, 3, 65, 70),), {})])


@program("d", needs="torchvision")
def boxes_of_a_detector():
    from torchvision import ops

    def forward(boxes, scores, classes):
        kept = ops.nms(boxes, scores, 0.3)
        return boxes[kept].sum(0), ops.batched_nms(boxes, scores, classes, 0.5), ops.box_iou(boxes, boxes)

    def sample(n):
        corners = torch.rand(n, 2)
        return torch.cat([corners, corners + 0.3 + torch.rand(n, 2)], 1), torch.rand(n), torch.randint(0, 3, (n,))
    return Program(Function(forward), sample(9), dynamic_shapes=({0: Dim.AUTO},) * 3, more=[(sample(6), {})])


class Regions(nn.Module):
    """Two levels of features, of which each box takes the one that fits its size."""

    def __init__(self):
        super().__init__()
        from torchvision import ops
        self.fine, self.coarse = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, stride=2, padding=1)
        self.pool = ops.MultiScaleRoIAlign(["fine", "coarse"], 3, 2)

    def forward(self, image, boxes):
        from torchvision import ops
        fine = self.fine(image)
        coarse = self.coarse(fine)
        pooled = self.pool({"fine": fine, "coarse": coarse}, [boxes.detach()], [(32, 32)])
        return pooled.mean((2, 3)), ops.roi_align(fine, [boxes.detach()], 2, aligned=True)


@program("d", needs="torchvision")
def regions_of_a_detector():
    boxes = torch.tensor([[1.0, 1, 20, 20], [2, 3, 9, 30], [0, 0, 4, 4]])
    return Program(Regions(), (torch.randn(1, 3, 16, 16), boxes))


class Deformed(nn.Module):
    def __init__(self):
        super().__init__()
        from torchvision import ops
        self.offset, self.mask = nn.Conv2d(3, 18, 3, padding=1), nn.Conv2d(3, 9, 3, padding=1)
        self.deformed = ops.DeformConv2d(3, 4, 3, padding=1)

    def forward(self, x):
        return self.deformed(x, self.offset(x), self.mask(x).sigmoid()).tanh()


@program("d", needs="torchvision")
def windows_that_move():
    return Program(Deformed(), (torch.randn(2, 3, 5, 6),))


def jitter_statistics(module):
    with torch.no_grad():
        for name, value in module.named_buffers():
            if name.endswith("running_var"):
                value.uniform_(0.5, 2.0)
            elif name.endswith("running_mean"):
                value.normal_(0, 0.1)
    return module


def mask(*lengths):
    columns = torch.arange(max(lengths))
    return torch.stack([(columns < n).to(torch.int64) for n in lengths])


class Outputs(nn.Module):
    """Calls a transformers model and returns plain tensors."""

    def __init__(self, model, *names):
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, input_ids, attention_mask=None, labels=None):
        given = {"attention_mask": attention_mask, "labels": labels}
        result = self.model(input_ids, **{name: v for name, v in given.items() if v is not None}, use_cache=False)
        return tuple(result[name] for name in self.names)


def bert(train):
    from transformers import BertConfig, BertModel
    config = BertConfig(vocab_size=61, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                        max_position_embeddings=40, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return jitter(Outputs(BertModel(config), "last_hidden_state", "pooler_output")).train(train)


@program("e", needs="transformers")
def bert_eval():
    return Program(bert(False), (torch.randint(0, 61, (2, 9)), mask(9, 6)))


@program("e", needs="transformers")
def bert_train():
    batch, length = Dim("batch"), Dim("length", max=40)
    return Program(bert(True), (torch.randint(0, 61, (3, 7)), mask(4, 7, 5)),
                   dynamic_shapes=({0: batch, 1: length}, {0: batch, 1: length}),
                   more=[((torch.randint(0, 61, (2, 5)), mask(5, 3)), {})])


def gpt2(train):
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(vocab_size=53, n_positions=32, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
                        attn_pdrop=0.0)
    return jitter(GPT2LMHeadModel(config)).train(train)


@program("f", needs="transformers")
def gpt2_eval():
    return Program(Outputs(gpt2(False), "logits"), (torch.randint(0, 53, (2, 8)),))


@program("f", needs="transformers")
def gpt2_train():
    tokens = torch.randint(0, 53, (2, 6))
    return Program(Outputs(gpt2(True), "loss", "logits"), (tokens,), {"attention_mask": mask(6, 4), "labels": tokens.clone()})


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=47, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=48)
    return jitter(LlamaForCausalLM(config))


@program("g", needs="transformers")
def llama_eval():
    return Program(Outputs(llama().eval(), "logits"), (torch.randint(0, 47, (2, 7)),))


@program("g", needs="transformers")
def llama_train():
    tokens = torch.randint(0, 47, (2, 9))
    return Program(Outputs(llama().train(), "loss", "logits"), (tokens,),
                   {"attention_mask": mask(9, 5), "labels": tokens.clone()})
