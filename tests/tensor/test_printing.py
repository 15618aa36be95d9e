"""How tensors print, against texts recorded from PyTorch (tests/record/printing.py)."""

import json
import math
import pathlib

import numpy as np
import pytest

from msadapter_hook.tensor import dtype as dt
from msadapter_hook.tensor import printing

GOLDENS = json.loads((pathlib.Path(__file__).parents[1] / "goldens" / "printing.json").read_text())


@pytest.fixture(autouse=True)
def restored():
    yield
    printing.set_printoptions(profile="default")
    dt.set_default_dtype(dt.float32)


def make(values, t, shape):
    if values and values[0] == "ramp":
        _, start, step, divisor = values
        values = (np.arange(math.prod(shape)) * step + start) / divisor
        if t.category == dt.INTEGRAL:  # narrow types wrap round
            values = values.astype(np.int64)
        return values.astype(t.numpy).reshape(shape)
    if t.is_complex:
        values = [complex(*v) for v in values]
    wide = np.array(values, None if t.is_complex or values == [] else np.float64 if t.is_floating_point else np.int64)
    return wide.astype(t.numpy).reshape(shape)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("number", range(len(GOLDENS)))
def test_text_is_pytorchs(number):
    options, default, name, shape, values, how, text = GOLDENS[number]
    printing.set_printoptions(**options)
    dt.set_default_dtype(dt.DTYPES[default])
    t = dt.DTYPES[name]
    presented = {
        "plain": {}, "frozen": {"is_parameter": True}, "meta": {"device": "meta", "shape": shape},
        "requires_grad": {"requires_grad": True}, "parameter": {"requires_grad": True, "is_parameter": True},
        "grad_fn": {"requires_grad": True, "grad_fn_name": "CloneBackward0"}, "subclass": {"class_name": "Wavelength"},
    }[how]
    array = None if how == "meta" else make(values, t, shape)
    assert printing.format_tensor(array, t, **presented) == text


def test_profiles_and_single_options():
    printing.set_printoptions(precision=2)
    assert repr(printing.PRINT_OPTS) == (
        "__PrinterOptions(precision=2, threshold=1000, edgeitems=3, linewidth=80, sci_mode=None)"
    )
    printing.set_printoptions(profile="full", linewidth=100, sci_mode=True)
    assert printing.get_printoptions() == {
        "precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 100, "sci_mode": True,
    }
    printing.set_printoptions(edgeitems=2)
    assert printing.get_printoptions()["sci_mode"] is None


def test_options_of_a_block_end_with_it():
    with printing.printoptions(precision=1, sci_mode=True):
        assert printing.format_tensor(np.array([1.23], np.float32), dt.float32) == "tensor([1.2e+00])"
    assert printing.format_tensor(np.array([1.23], np.float32), dt.float32) == "tensor([1.2300])"


def test_only_the_ends_are_looked_at():
    class Counting(np.ndarray):
        def tolist(self):
            assert self.size <= 6
            return super().tolist()

    big = np.zeros((10**7,), np.float32).view(Counting)
    assert printing.format_tensor(big, dt.float32) == "tensor([0., 0., 0.,  ..., 0., 0., 0.])"
