"""Makes the files of this folder with PyTorch 2.15: run it as  .venv/bin/python examples/digits/export_digits.py

digits.npz           the 8x8 handwritten digits (made only where scikit-learn is installed; see DATA_LICENSE)
train.npz, test.npz  the same as `tenon train` takes them; every fifth digit is held out
test.bin             the held-out digits for read_digits.c: 64 greys and the digit, a byte each
digits_cnn.pt2       the network in training mode, untrained: dropout on, running statistics updated
digits_cnn_eval.pt2  the same network in evaluation mode, after a short training
"""

import pathlib
import sys

import numpy
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "interop"))
from strip import check_no_paths, strip_program  # noqa: E402


class DigitsCnn(nn.Module):
    """Images f32[batch, 1, 8, 8] with values from 0 to 1, to one score for each digit."""

    def __init__(self, dropout=0.25):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(32 * 2 * 2, 10)

    def forward(self, images):
        x = self.features(images)
        return self.classifier(self.dropout(torch.flatten(x, 1)))


def write_data(path):
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        print(f"scikit-learn is not installed: {path.name} stays as it is")
        return
    digits = load_digits()
    numpy.savez_compressed(path, images=digits.images.astype(numpy.uint8), labels=digits.target.astype(numpy.int64))


def write_samples(images, labels):
    held_out = numpy.arange(len(labels)) % 5 == 4
    for name, chosen in (("train.npz", ~held_out), ("test.npz", held_out)):
        numpy.savez_compressed(HERE / name, images=images[chosen].numpy(), target=labels[chosen].numpy())
    greys = (images[held_out].reshape(-1, 64) * 16).to(torch.uint8)
    (HERE / "test.bin").write_bytes(torch.cat([greys, labels[held_out, None].to(torch.uint8)], 1).numpy().tobytes())


def train(model, images, labels, epochs=20):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for batch in order.split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()


def export(model, sample, path):
    batch = torch.export.Dim("batch")
    program = torch.export.export(model, (sample,), dynamic_shapes={"images": {0: batch}})
    torch.export.save(strip_program(program), path)
    check_no_paths(path)
    print(f"{path.name}: {path.stat().st_size} bytes")


def main():
    write_data(HERE / "digits.npz")
    data = numpy.load(HERE / "digits.npz")
    images = torch.from_numpy(data["images"]).to(torch.float32).div(16).unsqueeze(1)
    labels = torch.from_numpy(data["labels"])
    write_samples(images, labels)

    torch.manual_seed(0)
    model = DigitsCnn()
    sample = images[:32].clone()
    export(model.train(), sample, HERE / "digits_cnn.pt2")

    train(model, images[:1437], labels[:1437])
    model.eval()
    with torch.no_grad():
        right = (model(images[1437:]).argmax(1) == labels[1437:]).float().mean()
    print(f"right answers on the last 360 digits: {100 * right:.1f} %")
    export(model, sample, HERE / "digits_cnn_eval.pt2")


if __name__ == "__main__":
    main()
