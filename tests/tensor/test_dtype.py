"""Data types against PyTorch's tables (tests/record/dtypes.py): facts, promotion, casting, limits, NumPy, pickles."""

import copy
import json
import pathlib
import pickle
import sys
import types

import ml_dtypes
import numpy as np
import pytest

from msadapter_hook.tensor import dtype as dt

GOLDENS = json.loads((pathlib.Path(__file__).parents[1] / "goldens" / "dtypes.json").read_text())
NAMES = GOLDENS["names"]
TYPES = [dt.DTYPES[n] for n in NAMES]


@pytest.fixture(autouse=True)
def float32_by_default():
    yield
    dt.set_default_dtype(dt.float32)


@pytest.fixture
def served(monkeypatch):
    """A `torch` that has our constants, for pickling by reference."""
    root = types.ModuleType("torch")
    for name, value in {**dt.DTYPES, **dt.LAYOUTS, **dt.MEMORY_FORMATS}.items():
        setattr(root, name, value)
    monkeypatch.setitem(sys.modules, "torch", root)
    return root


def outcome(call):
    try:
        return ["ok", str(call())]
    except Exception as e:
        return [type(e).__name__, str(e)]


class Operand:
    def __init__(self, name, kind):
        self.dtype, self.kind = dt.DTYPES[name], kind

    def dim(self):
        return 1 - self.kind


def operand(name, kind):
    return {"bool": True, "int": 3, "float": 2.5, "complex": 1j}[name] if kind == 2 else Operand(name, kind)


@pytest.mark.parametrize("name", NAMES)
def test_facts_of_a_type(name):
    t = dt.DTYPES[name]
    size, floating, is_complex, signed, abbr, real, complexed, finfo, iinfo = GOLDENS["facts"][name]
    assert (t.itemsize, t.is_signed, t.abbr) == (size, signed, abbr)
    assert (t.is_floating_point, t.is_complex) == (floating, is_complex)
    assert [outcome(t.to_real), outcome(t.to_complex)] == [real, complexed]
    assert outcome(lambda: dt.finfo(t)) == finfo
    assert outcome(lambda: dt.iinfo(t)) == iinfo
    assert repr(t) == str(t) == "torch." + name


def test_two_names_for_one_type():
    assert {n: str(dt.DTYPES[n]) for n in GOLDENS["same"]} == GOLDENS["same"]


def test_promotion_table():
    for a, row in zip(TYPES, GOLDENS["promote"], strict=True):
        for b, want in zip(TYPES, row, strict=True):
            assert outcome(lambda: dt.promote_types(a, b)) == want  # noqa: B023


def test_promotion_is_of_dtypes_only():
    with pytest.raises(TypeError, match=r"argument 'type2' \(position 2\) must be torch.dtype, not int"):
        dt.promote_types(dt.int8, 2)


def test_cast_table():
    assert ["".join(str(int(dt.can_cast(a, b))) for b in TYPES) for a in TYPES] == GOLDENS["cast"]


@pytest.mark.parametrize("default", ["float32", "float64", "float16", "bfloat16"])
def test_result_types(default):
    dt.set_default_dtype(dt.DTYPES[default])
    cases = [c for c in GOLDENS["results"] if c[0] == default]
    assert len(cases) > 50
    for _, a, b, want in cases:
        for pair in ((a, b), (b, a)):
            got = outcome(lambda: dt.result_type([operand(*p) for p in pair]))  # noqa: B023
            if want[0] != "ok":  # the message names the operands in their order
                assert got[0] == want[0] and (pair != (a, b) or got == want)
            else:
                assert got == want, (a, b)


def test_result_type_follows_the_default_dtype_set_later():
    before = dt.result_type([Operand("int64", 0), 2.5])
    dt.set_default_dtype(dt.float64)
    assert (before, dt.result_type([Operand("int64", 0), 2.5])) == (dt.float32, dt.float64)


@pytest.mark.parametrize(
    ("number", "want"),
    [(np.float64(3), dt.float32), (np.int64(3), dt.int8), (np.bool_(1), dt.int8), (np.complex128(1), dt.complex64),
     (np.float16(1), dt.float32), (ml_dtypes.bfloat16(1), dt.float32)],
)
def test_numpy_scalars_count_by_kind(number, want):
    assert dt.result_type([Operand("int8", 0), number]) is want


def test_result_type_refuses_what_is_no_number():
    with pytest.raises(TypeError, match="NoneType"):
        dt.result_type([Operand("int8", 0), None])


@pytest.mark.parametrize(("name", "want"), GOLDENS["arrays"], ids=lambda v: v if isinstance(v, str) else "")
def test_dtype_of_numpy_arrays(name, want):
    assert outcome(lambda: dt.from_numpy_dtype(np.zeros(2, name).dtype)) == want


@pytest.mark.parametrize("t", [t for t in TYPES if t is not dt.complex32], ids=str)
def test_numpy_and_back(t):
    assert dt.from_numpy_dtype(t.numpy) is t
    assert dt.from_numpy_dtype(np.zeros(1, t.numpy).dtype) is t


def test_python_types_as_dtypes():
    assert [dt.from_python_type(t) for t in (bool, int, float, complex, str)] == [
        dt.bool_, dt.int64, dt.float64, dt.complex128, None,
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(dt.int32, "only floating-point types are supported"), (dt.complex64, "only floating-point types"),
     (3, "invalid dtype object"), ("float32", "invalid dtype object"),
     (dt.float8_e5m2, "couldn't find storage object Float8_e5m2Storage")],
)
def test_default_dtype_is_a_plain_float(value, text):
    with pytest.raises(TypeError, match=text):
        dt.set_default_dtype(value)
    assert dt.get_default_dtype() is dt.float32


def test_limits_are_compared_unhashable_and_fixed():
    assert dt.finfo() == dt.finfo(dt.float32) != dt.finfo(dt.float64)
    assert dt.finfo(type=dt.float16).max == 65504 and dt.iinfo(type=dt.uint64).max == 2**64 - 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(dt.iinfo(dt.int8))
    with pytest.raises(AttributeError, match="attribute 'eps' of 'torch.finfo' objects is not writable"):
        dt.finfo().eps = 1
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "type"'):
        dt.iinfo()
    with pytest.raises(TypeError, match=r"finfo\(\): argument 'type' \(position 1\) must be torch.dtype, not int"):
        dt.finfo(3)


def test_limits_agree_with_the_stored_types():
    for t in dt.ALL:
        if t.category == dt.INTEGRAL:
            assert (dt.iinfo(t).min, dt.iinfo(t).max) == (np.iinfo(t.numpy).min, np.iinfo(t.numpy).max)
        elif t.category == dt.FLOATING:
            info = ml_dtypes.finfo(t.numpy)
            assert (dt.finfo(t).max, dt.finfo(t).tiny) == (float(info.max), float(info.smallest_normal))


def test_constants_are_closed_and_fixed():
    for cls in (dt.dtype, dt.layout, dt.memory_format):
        with pytest.raises(TypeError, match=f"cannot create 'torch.{cls.__name__}' instances"):
            cls()
        with pytest.raises(TypeError, match="is not an acceptable base type"):
            type("Mine", (cls,), {})
        assert cls.__module__ == "torch"
    with pytest.raises(AttributeError, match="attribute 'itemsize' of 'torch.dtype' objects is not writable"):
        dt.float32.itemsize = 8
    with pytest.raises(AttributeError, match="'torch.dtype' object has no attribute 'x'"):
        dt.float32.x = 1


def test_constants_are_pickled_and_copied_by_name(served):
    for x in (*dt.ALL, *dt.LAYOUTS.values(), *dt.MEMORY_FORMATS.values()):
        assert copy.copy(x) is copy.deepcopy(x) is pickle.loads(pickle.dumps(x)) is x
    for name, text in GOLDENS["pickles"].items():
        if name.startswith("torch."):
            x = dt.DTYPES[name[6:]]
            assert pickle.dumps(x, 2) == text.encode("latin1")
            assert pickle.loads(text.encode("latin1")) is x


def test_layouts_and_formats_print_as_pytorchs():
    assert [repr(x) for x in (dt.strided, dt.sparse_coo, dt.channels_last_3d, dt.preserve_format)] == [
        "torch.strided", "torch.sparse_coo", "torch.channels_last_3d", "torch.preserve_format",
    ]
