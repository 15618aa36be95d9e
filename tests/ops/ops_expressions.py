"""Expressions over a few fixed tensors, and how they are observed: the same code records goldens under real PyTorch and checks
them here. `cases/*.txt` hold one expression a line; `#` starts a heading."""

import itertools
import json
import math
import warnings
from pathlib import Path

HERE = Path(__file__).parent
GOLDENS = HERE.parent / "goldens" / "ops"


def tensors(torch):
    """The names that expressions use, made anew; the floating ones are leaves that require grad."""

    def leaf(data, dtype=torch.float32):
        return torch.tensor(data, dtype=dtype, requires_grad=True)

    return {
        "torch": torch,
        "F": torch.nn.functional,
        "nan": float("nan"),
        "inf": float("inf"),
        "x": leaf([-2.5, -1.0, -0.3, 0.0, 0.4, 1.0, 3.0]),
        "y": leaf([1.5, -1.0, 2.0, -0.5, 0.4, -2.0, 0.7]),
        "p": leaf([0.1, 0.5, 1.0, 1.7, 2.5, 4.0, 9.0]),
        "u": leaf([0.05, 0.2, 0.5, 0.7, 0.95]),
        "m": leaf([[3.0, -1.0, 2.0, 3.0], [0.5, 0.5, -4.0, 0.5], [1.0, 2.0, 3.0, -2.0]]),
        "q": leaf([[2.0, 0.0, -1.5], [0.5, 3.0, 0.0]]),
        "d": leaf([0.3, -1.2, 2.2], torch.float64),
        "h": torch.tensor([0.1, -1.7, 3.3, 100.0], dtype=torch.float16),
        "bf": torch.tensor([0.1, -1.7, 3.3, 100.0], dtype=torch.bfloat16),
        "n": torch.tensor([[1.0, nan_, 3.0], [nan_, nan_, 0.5], [2.0, -inf_, inf_]]),
        "i": torch.tensor([-7, -2, 0, 3, 8]),
        "j": torch.tensor([2, -3, 5, 4, -3]),
        "k": torch.tensor([3, 1, 2, 3, 3, 1, 2, 2]),
        "s": torch.tensor([5, 0, 250], dtype=torch.uint8),
        "b": torch.tensor([True, False, True, True, False]),
        "c": torch.tensor([True, True, False, False, False]),
        "z": leaf([1 + 2j, -0.5 + 0.3j, 2j, -1 - 1j], torch.complex64),
        "w": leaf([0.5 - 1j, 1 + 1j, -2 + 0j, 0.3j], torch.complex64),
        "img": leaf(_wave(1, 2, 5, 6)),
        "seq": leaf(_wave(2, 4, 7)),
        "vol": leaf(_wave(1, 2, 3, 4, 3)),
        "ker": leaf(_wave(4, 2, 3, 3)),
        "sq": leaf(_wave(3, 3), torch.float64),
        "tall": leaf(_wave(4, 3), torch.float64),
        "pile": leaf(_wave(2, 3, 3), torch.float64),
        "zz": leaf([[1 + 2j, -0.5j, 0.3], [0.7, 2 - 1j, 1j], [0.2, -1 + 1j, 3]], torch.complex128),
        "gradients": lambda y, *leaves: torch.autograd.grad(y.sin().sum(), leaves, create_graph=True),
    }


nan_, inf_ = float("nan"), float("inf")


def _wave(*shape):
    """Nested lists of this shape: numbers between -2 and 2 without a pattern, and without ties."""
    count = itertools.count(1)

    def fill(sizes):
        return [fill(sizes[1:]) for _ in range(sizes[0])] if sizes else round(2 * math.sin(2.3 * next(count) ** 1.1), 4)

    return fill(shape)


def _numbers(torch, t):
    t = t.detach().resolve_conj().resolve_neg()
    if t.dtype.is_complex:
        return [[v.real, v.imag] for v in t.reshape(-1).tolist()]
    if t.dtype.is_floating_point:
        t = t.to(torch.float64)
    return t.reshape(-1).tolist()


def _seen(torch, found):
    if isinstance(found, torch.Tensor):
        return {"dtype": str(found.dtype), "shape": list(found.shape), "values": _numbers(torch, found)}
    if isinstance(found, (tuple, list)):
        fields = list(getattr(found, "_fields", ())) or [f for f in _FIELDS if hasattr(found, f) and not isinstance(found, list)]
        return {"fields": sorted(fields), "items": [_seen(torch, one) for one in found]}
    return {"python": repr(found)}


_FIELDS = tuple(
    "values indices min max hist bin_edges mantissa exponent sign logabsdet inverse info P L U LU LD pivots Q R S V Vh eigenvalues "
    "eigenvectors solution residuals rank singular_values cloned_coefficient".split())


def _tensors_of(torch, found):
    if isinstance(found, torch.Tensor):
        return [found]
    return [t for one in found for t in _tensors_of(torch, one)] if isinstance(found, (tuple, list)) else []


def observe(torch, expression):
    """What the expression gives: values or the error; gradients of the leaves for fixed cotangents; classes of warnings."""
    names = tensors(torch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = eval(expression, names)
        except Exception as e:
            return {"error": type(e).__name__, "text": str(e).split("\n")[0]}
    seen = {"result": _seen(torch, found)}
    if caught:
        seen["warned"] = sorted({w.category.__name__ for w in caught})
    roots = [t for t in _tensors_of(torch, found) if t.requires_grad and not t.is_leaf]
    if roots:
        try:
            torch.autograd.backward(roots, [_cotangent(torch, t) for t in roots])
        except Exception as e:
            return seen | {"backward": type(e).__name__, "text": str(e).split("\n")[0]}
        seen["grads"] = {
            name: _seen(torch, t.grad) for name, t in sorted(names.items()) if isinstance(t, torch.Tensor) and t.grad is not None
        }
    return seen


def _cotangent(torch, t):
    numbers = [((3 * i) % 7 - 2) / 4 for i in range(t.numel())]
    made = torch.tensor(numbers, dtype=torch.float64).reshape(t.shape)
    return (made * (1 - 0.5j)).to(t.dtype) if t.dtype.is_complex else made.to(t.dtype)


def expressions(family):
    lines = (HERE / "cases" / f"{family}.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def families():
    return sorted(path.stem for path in (HERE / "cases").glob("*.txt"))


def goldens(family):
    return json.loads((GOLDENS / f"{family}.json").read_text())


# ------------------------------------------------------------------------------------------------ comparing
# relative and absolute, those of torch.testing.assert_close
_TOLERANCE = {
    "torch.float16": (1e-3, 1e-5),
    "torch.bfloat16": (1.6e-2, 1e-5),
    "torch.float32": (1.3e-6, 1e-5),
    "torch.complex64": (1.3e-6, 1e-5),
    "torch.float64": (1e-7, 1e-7),
    "torch.complex128": (1e-7, 1e-7),
}


def differences(got, want, place="result"):
    """Where an observation differs from a golden one; an empty list where it does not."""
    if isinstance(want, dict) and "values" in want and "dtype" in want:
        if got.get("dtype") != want["dtype"] or got.get("shape") != want["shape"]:
            return [f"{place}: {got.get('dtype')} {got.get('shape')}, not {want['dtype']} {want['shape']}"]
        tolerance = _TOLERANCE.get(want["dtype"], (0, 0))
        pairs = zip(_flat(got["values"]), _flat(want["values"]))
        return [f"{place}[{at}]: {g}, not {w}" for at, (g, w) in enumerate(pairs) if not _close(g, w, tolerance)]
    if isinstance(want, dict):
        if not isinstance(got, dict) or got.keys() != want.keys():
            return [f"{place}: {got}, not {want}"]
        return [line for key in want for line in differences(got[key], want[key], f"{place}.{key}")]
    if isinstance(want, list):
        if len(got) != len(want):
            return [f"{place}: {len(got)} results, not {len(want)}"]
        return [line for at, pair in enumerate(zip(got, want)) for line in differences(*pair, f"{place}[{at}]")]
    return [] if got == want else [f"{place}: {got}, not {want}"]


def _flat(values):
    return [n for v in values for n in (v if isinstance(v, list) else [v])]


def _close(got, want, tolerance):
    if isinstance(want, float) and isinstance(got, float):
        if got != got or want != want:
            return got != got and want != want
        return got == want or abs(got - want) <= tolerance[0] * abs(want) + tolerance[1]
    return got == want
