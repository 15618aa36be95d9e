"""The networks and data of the migrated loops, for any torch: PyTorch's own records the losses that the tests compare with."""


def lenet(torch):
    nn = torch.nn
    torch.manual_seed(11)
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )


def batches(torch, count=5):
    generator = torch.Generator().manual_seed(5)
    return [(torch.randn(8, 1, 28, 28, generator=generator), torch.randint(0, 10, (8,), generator=generator))
            for _ in range(count)]


def unmodified(torch, steps=5):
    """Losses of the loop as it is written for PyTorch, and the sum of the absolute parameters after it."""
    net = lenet(torch)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0005)
    criterion = torch.nn.CrossEntropyLoss()
    losses = []
    for data, label in batches(torch, steps):
        optimizer.zero_grad()
        loss = criterion(net(data), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, sum(p.detach().abs().sum().item() for p in net.parameters())


if __name__ == "__main__":
    import torch

    print(unmodified(torch))
