"""LeNet on 28x28 images that are stored in MNIST's IDX format.

The image files are made once, from scikit-learn's bundled digits, in a folder of the system's temporary directory
(or the one given with --data); a folder with the four original MNIST files works as well.
"""
import argparse
import gzip
import os
import struct
import tempfile

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}
IDX_UBYTE = 8


def write_idx(path, array):
    """The header is two zero bytes, the type, the number of dimensions and each size as a big-endian integer."""
    with gzip.open(path + ".part", "wb") as f:
        f.write(struct.pack(">HBB", 0, IDX_UBYTE, array.ndim))
        f.write(struct.pack(f">{array.ndim}I", *array.shape))
        f.write(array.astype(np.uint8).tobytes())
    os.replace(path + ".part", path)


def read_idx(path):
    with gzip.open(path, "rb") as f:
        zero, kind, ndim = struct.unpack(">HBB", f.read(4))
        if zero != 0 or kind != IDX_UBYTE:
            raise ValueError(f"{path} is not an IDX file of unsigned bytes")
        shape = struct.unpack(f">{ndim}I", f.read(4 * ndim))
        return np.frombuffer(f.read(), dtype=np.uint8).reshape(shape)


def make_files(folder):
    from sklearn.datasets import load_digits

    os.makedirs(folder, exist_ok=True)
    digits, labels = load_digits(return_X_y=True)
    # 8x8 with 17 grey levels -> 24x24 with 256, and MNIST's dark border around it
    images = np.kron(digits.reshape(-1, 8, 8), np.ones((3, 3)))
    images = np.pad(np.round(images * (255 / 16)), ((0, 0), (2, 2), (2, 2)))
    for split, part in (("train", slice(0, 1500)), ("test", slice(1500, None))):
        write_idx(os.path.join(folder, FILES[split][0]), images[part])
        write_idx(os.path.join(folder, FILES[split][1]), labels[part])


class IdxImages(Dataset):
    def __init__(self, folder, split):
        images, labels = (os.path.join(folder, name) for name in FILES[split])
        if not (os.path.exists(images) and os.path.exists(labels)):
            make_files(folder)
        self.images = torch.from_numpy(read_idx(images).copy())
        self.labels = torch.from_numpy(read_idx(labels).copy()).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].unsqueeze(0).float().div(255)
        return image.sub_(0.1307).div_(0.3081), self.labels[index]


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, kernel_size=5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2, stride=2),
            nn.Conv2d(6, 16, kernel_size=5),
            nn.ReLU(),
            nn.MaxPool2d(2, stride=2),
        )
        self.classifier = nn.Sequential(
            nn.Linear(16 * 5 * 5, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Dropout(p=0.2),
            nn.Linear(84, 10),
        )

    def forward(self, x):
        x = self.features(x)
        x = x.view(x.size(0), -1)
        return self.classifier(x)


@torch.no_grad()
def evaluate(net, loader, device):
    net.eval()
    correct = total = 0
    for inputs, labels in loader:
        outputs = net(inputs.to(device))
        _, predicted = torch.max(outputs.data, 1)
        total += labels.size(0)
        correct += (predicted == labels.to(device)).sum().item()
    return correct / total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="training steps")
    parser.add_argument("--data", default=os.path.join(tempfile.gettempdir(), "digits-idx"))
    opt = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

    trainset = IdxImages(opt.data, "train")
    testset = IdxImages(opt.data, "test")
    trainloader = DataLoader(trainset, batch_size=64, shuffle=True, drop_last=True)
    testloader = DataLoader(testset, batch_size=100, shuffle=False)

    net = LeNet().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)

    step = 0
    while step < opt.steps:
        net.train()
        running_loss = 0.0
        for inputs, labels in trainloader:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            outputs = net(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()

            running_loss += loss.item()
            print(f"step {step} loss {loss.item():.7f}")
            step += 1
            if step == opt.steps:
                break
    print(f"test accuracy: {evaluate(net, testloader, device):.4f}")
