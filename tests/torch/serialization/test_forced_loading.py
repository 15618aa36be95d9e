"""The variables that choose how torch.load reads where the call does not say."""

import pickle

import pytest
import torch


class Plain:
    pass


@pytest.fixture
def file(tmp_path):
    torch.save({"x": torch.ones(2), "object": Plain()}, tmp_path / "f.pt")
    return tmp_path / "f.pt"


def test_whole_pickles_load_where_the_variable_says_so(file, monkeypatch):
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert isinstance(torch.load(file)["object"], Plain)
    with pytest.raises(pickle.UnpicklingError):  # what the call says wins
        torch.load(file, weights_only=True)


def test_only_weights_where_the_variable_says_so(file, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "yes")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file, weights_only=False)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        torch.load(file)
