"""map_location="meta": shapes, strides and offsets of what a file holds, without the data."""

import io

import pytest
import torch
import torch.nn as nn


def loaded(value, zipped=True, **options):
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    return torch.load(file, **options)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("location", ["meta", torch.device("meta"), {"cpu": "meta"}])
@pytest.mark.parametrize("weights_only", [True, False])
def test_state_dict_without_data(zipped, location, weights_only):
    state = loaded(nn.Linear(2, 3).state_dict(), zipped, map_location=location, weights_only=weights_only)
    assert {name: (t.device.type, tuple(t.shape), t.stride()) for name, t in state.items()} == {
        "weight": ("meta", (3, 2), (2, 1)), "bias": ("meta", (3,), (1,))}


def test_views_and_parameters_without_data():
    window = loaded({"w": torch.ones(3, 4)[1:, :2].t()}, map_location="meta")["w"]
    assert (window.stride(), window.storage_offset(), tuple(window.shape)) == ((1, 4), 4, (2, 2))
    parameter = loaded(nn.Parameter(torch.ones(2)), map_location="meta")
    assert isinstance(parameter, nn.Parameter) and parameter.is_meta and parameter.requires_grad
    assert loaded(torch.ones(2, dtype=torch.bfloat16), map_location="meta").dtype is torch.bfloat16
