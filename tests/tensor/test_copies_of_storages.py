"""Copies of storages: with the tensors over them they stay one memory."""

import copy
import pickle

import pytest
import torch


def test_deepcopy_of_tensor_and_storage_share_memory():
    t = torch.arange(4.0)
    for order in (("s", "t", "v"), ("v", "t", "s")):
        parts = {"t": t, "s": t.untyped_storage(), "v": t[1:3]}
        made = copy.deepcopy({name: parts[name] for name in order})
        made["t"][1] = 9
        assert made["t"].data_ptr() == made["s"].data_ptr() == made["v"].data_ptr() - 4
        assert made["v"].tolist() == [9, 2] and made["s"].nbytes() == 16
        assert t.tolist() == [0, 1, 2, 3]


def test_deepcopy_of_a_typed_storage_goes_with_its_tensor():
    t = torch.arange(4.0)
    first, tensor, second = copy.deepcopy([t.storage(), t, t.storage()])
    first[1] = 7.0
    assert tensor.tolist() == second.tolist() == [0, 7, 2, 3] and t.tolist() == [0, 1, 2, 3]


def test_copy_of_a_storage_has_memory_of_its_own():
    t = torch.arange(4.0)
    storage = t.untyped_storage()
    for made in (copy.copy(storage), copy.deepcopy(storage), storage.clone()):
        made[0] = 1
        assert made != storage and made.data_ptr() != storage.data_ptr() and t[0] == 0


def test_bytes_without_a_type_are_not_pickled():
    t = torch.arange(4.0)
    with pytest.raises(AttributeError, match="type object 'torch.storage.UntypedStorage' has no attribute 'dtype'"):
        pickle.dumps(t.untyped_storage())
    assert pickle.loads(pickle.dumps(t.storage())).tolist() == [0, 1, 2, 3]
