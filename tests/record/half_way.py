"""A plain PyTorch program that trains half-way, saves everything, and goes on from a file: under PyTorch or under the hook.

    half_way.py --save FILE --losses JSON            the first half; the file is the checkpoint
    half_way.py --load FILE --losses JSON            the second half, from a checkpoint
    half_way.py … --optimizer Adam --steps 30

Model, optimizer, schedule and the state of the random numbers are in the file, so that dropout goes on as if nothing had happened.
"""

import argparse
import json

import torch
from sklearn.datasets import load_digits
from torch import nn

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=2e-3),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=2e-3, amsgrad=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.drop = nn.Dropout(0.25)
        self.head = nn.Linear(8 * 16, 10)

    def forward(self, x):
        return self.head(self.drop(self.features(x).flatten(1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save")
    parser.add_argument("--load")
    parser.add_argument("--losses", required=True)
    parser.add_argument("--optimizer", default="Adam", choices=OPTIMIZERS)
    parser.add_argument("--steps", type=int, default=30)
    args = parser.parse_args()

    digits = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)

    torch.manual_seed(0)
    model = Net()
    optimizer = OPTIMIZERS[args.optimizer](model.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2 * args.steps)
    first = 0
    if args.load:
        checkpoint = torch.load(args.load)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        torch.set_rng_state(checkpoint["rng"])
        first = checkpoint["step"]

    losses = []
    for _ in range(first, first + args.steps):
        chosen = torch.randint(len(images), (64,))
        loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())

    model.eval()
    with torch.no_grad():
        accuracy = (model(images[:500]).argmax(1) == labels[:500]).float().mean().item()
    if args.save:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
                    "rng": torch.get_rng_state(), "step": first + args.steps}, args.save)
    with open(args.losses, "w") as file:
        json.dump({"losses": losses, "accuracy": accuracy}, file)


if __name__ == "__main__":
    main()
