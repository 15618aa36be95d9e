"""LeNet and the digits that scikit-learn brings, as 28×28 images: what the migrated loops share."""

import mindtorch.torch as torch
import mindtorch.torch.nn as nn
import numpy as np
from mindtorch.torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits


def lenet():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )


def digits():
    data = load_digits()
    images = np.kron(data.images / 16, np.ones((3, 3)))
    images = np.pad(images, ((0, 0), (2, 2), (2, 2))).astype(np.float32)[:, None]
    return images, data.target.astype(np.int64)


def loader():
    images, labels = digits()
    torch.manual_seed(1)
    return DataLoader(TensorDataset(torch.from_numpy(images), torch.from_numpy(labels)), batch_size=64, shuffle=True)


def accuracy(net):
    images, labels = digits()
    net.eval()
    with torch.no_grad():
        found = net(torch.from_numpy(images)).argmax(1)
    return (found == torch.from_numpy(labels)).float().mean().item()
