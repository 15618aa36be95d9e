# Data loading: order and random streams as PyTorch's, collating, workers, errors.
import gc
import json
import pathlib
import random
import sys
import threading
import time
from collections import namedtuple

import numpy as np
import pytest
import torch
from torch.utils import data

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import data_cases as cases

GOLDENS = json.loads((pathlib.Path(__file__).parents[2] / "goldens" / "data.json").read_text())


@pytest.mark.parametrize("name", cases.ORDERS)
def test_order_and_streams_equal_pytorchs(name):
    torch.manual_seed(1)
    random.seed(0)
    np.random.seed(0)
    assert cases.ORDERS[name](torch, data) == GOLDENS[name]["order"]
    assert torch.rand(2).tolist() == pytest.approx(GOLDENS[name]["after"])


def test_workers_leave_the_main_streams_and_modules_alone():
    functions = (random.random, np.random.rand)
    random.seed(5)
    want = [random.random() for _ in range(3)]
    random.seed(5)
    got = []
    loader = data.DataLoader(cases.Draws(torch, data), batch_size=None, num_workers=2, collate_fn=lambda item: item)
    for _ in zip(loader, range(3)):
        got.append(random.random())
    assert got == want
    gc.collect()
    deadline = time.monotonic() + 60
    while any(t.name.startswith("DataLoader worker") for t in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (random.random, np.random.rand) == functions


Point = namedtuple("Point", "x y")


def test_collate_keeps_structure():
    batch = data.default_collate(
        [{"a": (1, 2.0), "b": np.ones(2, np.float32), "c": "s", "d": np.int16(i), "p": Point(i, True)} for i in (3, 4)]
    )
    assert batch["a"][0].tolist() == [1, 1] and batch["a"][0].dtype == torch.int64
    assert batch["a"][1].dtype == torch.float64
    assert batch["b"].shape == (2, 2) and batch["b"].dtype == torch.float32
    assert batch["c"] == ["s", "s"]
    assert batch["d"].tolist() == [3, 4] and batch["d"].dtype == torch.int16
    assert isinstance(batch["p"], Point) and batch["p"].y.dtype == torch.bool
    assert data.default_convert({"a": np.ones(2), "b": "s"})["a"].dtype == torch.float64


@pytest.mark.parametrize(
    "batch, error, message",
    [
        ([object()], TypeError, "batch must contain tensors, numpy arrays, numbers, dicts or lists"),
        ([[1, 2], [3]], RuntimeError, "each element in list of batch should be of equal size"),
        ([np.array(["a"])], TypeError, "found <U1"),
        ([torch.ones(2), torch.ones(3)], RuntimeError, "stack expects each tensor to be equal size"),
    ],
)
def test_collate_errors(batch, error, message):
    with pytest.raises(error, match=message):
        data.default_collate(batch)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 3}, "prefetch_factor option could only be specified"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"sampler": [1], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 3}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"batch_size": 0}, "batch_size should be a positive integer value"),
    ],
)
def test_loader_options_that_exclude_each_other(options, message):
    with pytest.raises(ValueError, match=message):
        data.DataLoader(list(range(4)), **options)


def test_fixed_attributes_cannot_be_set():
    loader = data.DataLoader([1, 2])
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 3


class Range(data.IterableDataset):
    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        return iter(range(self.start, self.end))


def test_init_function_configures_each_workers_own_dataset():
    def shares(worker_id):
        info = data.get_worker_info()
        mine = info.dataset
        width = -(-(mine.end - mine.start) // info.num_workers)
        mine.start, mine.end = worker_id * width, min((worker_id + 1) * width, mine.end)

    dataset = Range(0, 7)
    loader = data.DataLoader(dataset, num_workers=2, worker_init_fn=shares)
    assert sorted(x.item() for x in loader) == list(range(7))
    assert (dataset.start, dataset.end) == (0, 7)


def test_iterable_batches_by_worker():
    loader = data.DataLoader(Range(0, 5), batch_size=2, num_workers=2)
    assert [x.tolist() for x in loader] == [[0, 1], [0, 1], [2, 3], [2, 3], [4], [4]]
    with pytest.raises(TypeError, match="has no len"):
        len(loader)


class Fails(data.Dataset):
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 2:
            raise self.error
        return index


def test_an_exception_comes_back_with_the_workers_traceback():
    loader = data.DataLoader(Fails(KeyError("boo")), num_workers=2)
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker process 0") as caught:
        list(loader)
    assert "Original Traceback" in str(caught.value) and "raise self.error" in str(caught.value)


def test_iteration_goes_on_after_an_exception():
    it = iter(data.DataLoader(Fails(ValueError("bad")), num_workers=2))
    got = []
    for _ in range(4):
        try:
            got.append(next(it).item())
        except ValueError:
            got.append("error")
    assert got == [0, 1, "error", 3]
    with pytest.raises(StopIteration):
        next(it)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_worker_is_reported():
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(data.DataLoader(Fails(SystemExit()), num_workers=1))


def test_timeout_is_reported():
    class Slow(data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            time.sleep(1.0)
            return index

    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.2 seconds"):
        list(data.DataLoader(Slow(), num_workers=1, timeout=0.2))


def test_persistent_workers_after_an_unfinished_epoch():
    loader = data.DataLoader(list(range(10)), num_workers=2, persistent_workers=True)
    it = iter(loader)
    next(it)
    assert [x.item() for x in loader] == list(range(10))


def test_an_abandoned_iterator_ends_its_workers():
    it = iter(data.DataLoader(list(range(100)), num_workers=2))
    next(it)
    del it
    gc.collect()
    deadline = time.monotonic() + 60
    while any(t.name.startswith("DataLoader worker") for t in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(t.name.startswith("DataLoader worker") for t in threading.enumerate())


def test_datasets():
    a = data.TensorDataset(torch.arange(3), torch.arange(3) * 10)
    joined = a + data.TensorDataset(torch.arange(2), torch.arange(2))
    assert len(joined) == 5 and [int(v) for v in joined[-1]] == [1, 1]
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        joined[-6]
    stacked = data.StackDataset(x=a, y=[5, 6, 7])
    assert stacked[1]["y"] == 6
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(torch.ones(2), torch.ones(3))
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        data.random_split([1, 2, 3], [1, 1])
    with pytest.raises(NotImplementedError):
        data.Dataset()[0]
    assert list(Range(0, 2) + Range(5, 6)) == [0, 1, 5]


def test_batches_of_a_subset_equal_single_rows():
    dataset = data.Subset(data.TensorDataset(torch.arange(20.0).reshape(10, 2)), [7, 1, 3])
    (batch,) = next(iter(data.DataLoader(dataset, batch_size=3)))
    assert torch.equal(batch, torch.stack([dataset[i][0] for i in range(3)]))
