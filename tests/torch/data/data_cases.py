# Orders and random streams of data loading that are compared with PyTorch's: the recorder and the tests run these.
import random

import numpy as np


def _dataset(torch, data, n=13):
    return data.TensorDataset(torch.arange(n))


def _epochs(loader, count=2):
    return [[batch[0].tolist() for batch in loader] for _ in range(count)]


def _generator(torch, data):
    g = torch.Generator()
    g.manual_seed(3)
    samplers = [
        data.RandomSampler(range(10), generator=g),
        data.RandomSampler(range(10), num_samples=25, generator=g),
        data.RandomSampler(range(10), True, 64, generator=g),
        data.SubsetRandomSampler([3, 1, 7, 9], generator=g),
        data.WeightedRandomSampler([0.1, 0.5, 0.3, 0.9], 6, generator=g),
        data.WeightedRandomSampler([0.1, 0.5, 0.3, 0.9], 3, False, generator=g),
    ]
    return [list(s) for s in samplers] + [torch.rand(2, generator=g).tolist()]


class Draws:
    """What a worker draws from torch, random and numpy for each item."""

    def __init__(self, torch, data):
        self.torch, self.data = torch, data

    def __len__(self):
        return 6

    def __getitem__(self, index):
        info = self.data.get_worker_info()
        return [
            info.id,
            info.num_workers,
            self.torch.randint(0, 1000, ()).item(),
            round(self.torch.randn(3)[1].item(), 5),
            random.randint(0, 1000),
            int(np.random.randint(1000)),
            round(random.random(), 6),
        ]


def _distributed(torch, data):
    return [
        list(data.DistributedSampler(range(11), 3, rank, seed=2, drop_last=drop, shuffle=shuffle))
        for rank in range(3)
        for drop in (False, True)
        for shuffle in (False, True)
    ]


def _split(torch, data):
    parts = data.random_split(range(11), [0.3, 0.3, 0.4]) + data.random_split(range(5), [2, 3])
    return [list(part.indices) for part in parts]


ORDERS = {
    "random_sampler": lambda torch, data: [
        list(data.RandomSampler(range(10))),
        list(data.RandomSampler(range(10), num_samples=25)),
        list(data.RandomSampler(range(10), True, 70)),
    ],
    "generators": _generator,
    "split": _split,
    "distributed": _distributed,
    "plain": lambda t, d: _epochs(d.DataLoader(_dataset(t, d), batch_size=4)),
    "shuffled": lambda t, d: _epochs(d.DataLoader(_dataset(t, d), batch_size=4, shuffle=True)),
    "workers": lambda t, d: _epochs(d.DataLoader(_dataset(t, d), batch_size=4, shuffle=True, num_workers=2)),
    "persistent": lambda t, d: _epochs(
        d.DataLoader(_dataset(t, d), batch_size=3, shuffle=True, num_workers=2, persistent_workers=True), 3
    ),
    "own_generator": lambda t, d: _epochs(
        d.DataLoader(_dataset(t, d), batch_size=4, shuffle=True, generator=t.Generator().manual_seed(5))
    ),
    "worker_streams": lambda t, d: list(
        d.DataLoader(Draws(t, d), batch_size=None, num_workers=2, collate_fn=lambda item: item)
    ),
}
