"""A small residual network with batch normalization on coloured, shifted digits."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset, random_split


class ColourDigits(Dataset):
    """Digits of 16x16 pixels in a random colour, at a random place of an image of 3x18x18."""

    def __init__(self):
        digits = load_digits()
        self.images = torch.tensor(np.kron(digits.images, np.ones((2, 2))) / 16.0, dtype=torch.float32)
        self.targets = torch.tensor(digits.target)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        colour = torch.rand(3, 1, 1) * 0.7 + 0.3
        top, left = torch.randint(0, 3, (2,)).tolist()
        canvas = torch.randn(3, 18, 18) * 0.1
        canvas[:, top:top + 16, left:left + 16] += colour * self.images[i]
        return canvas, self.targets[i]


def conv3x3(in_planes, out_planes, stride=1):
    return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.act = nn.SiLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.act(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.act(out)


class ResNet(nn.Module):
    def __init__(self, layers=(1, 1, 1), width=8, num_classes=10):
        super().__init__()
        self.inplanes = width
        self.conv1 = conv3x3(3, width)
        self.bn1 = nn.BatchNorm2d(width)
        self.act = nn.SiLU(inplace=True)
        self.layer1 = self._make_layer(width, layers[0])
        self.layer2 = self._make_layer(width * 2, layers[1], stride=2)
        self.layer3 = self._make_layer(width * 4, layers[2], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width * 4, num_classes)

        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.inplanes != planes:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(planes),
            )
        layers = [BasicBlock(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes
        for _ in range(1, blocks):
            layers.append(BasicBlock(planes, planes))
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.act(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0).item() / target.size(0) for k in topk]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150, help="training steps")
    parser.add_argument("--schedule", type=int, default=150, help="steps of the learning rate schedule")
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--wd", type=float, default=1e-4)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_set, val_set = random_split(ColourDigits(), [1600, 197])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True, num_workers=0)
    val_loader = DataLoader(val_set, batch_size=64)

    model = ResNet().to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum,
                                weight_decay=args.wd, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=args.schedule, pct_start=0.3)

    step, start = 0, time.time()
    while step < args.steps:
        model.train()
        for images, target in train_loader:
            images = images.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            output = model(images)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step + 1 < args.schedule:
                scheduler.step()
            acc1, acc3 = accuracy(output, target, topk=(1, 3))
            print(f"step {step} loss {loss.item():.7f} acc@1 {acc1:.3f} acc@3 {acc3:.3f}")
            step += 1
            if step >= args.steps:
                break
    print(f"{step} steps in {time.time() - start:.1f} s")

    model.eval()
    hits, losses = 0, []
    with torch.inference_mode():
        for images, target in val_loader:
            logits = model(images.to(device))
            losses.append(F.cross_entropy(logits, target.to(device)).item())
            hits += (logits.softmax(1).argmax(1) == target.to(device)).sum().item()
    print(f"validation loss {np.mean(losses):.4f}, accuracy {hits / len(val_set):.4f}")


if __name__ == "__main__":
    main()
