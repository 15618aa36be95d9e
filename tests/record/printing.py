"""Record how real PyTorch prints: `python tests/record/printing.py` with an interpreter that has torch.
A case: options, default dtype, dtype, shape, values (a list, or "ramp", start, step, divisor), presentation, text."""

import json
import math
import pathlib
import random
import warnings

import torch

warnings.simplefilter("ignore")
OUT = pathlib.Path(__file__).parents[1] / "goldens" / "printing.json"
FLOATS = ["float32", "float32", "float64", "float16", "bfloat16"]
INTS = ["int64", "int64", "int32", "int16", "int8", "uint8", "uint16", "bool"]
COMPLEX = ["complex64", "complex128"]
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-40, 1e30, 3.0, -1.5, 999.5, 0.5, 99999999.0, 100000001.0,
           1e-4, 0.9999e-4]
OPTIONS = [{}, {}, {}, {}, {"precision": 2}, {"precision": 0}, {"precision": 7}, {"sci_mode": True},
           {"sci_mode": False}, {"linewidth": 40}, {"linewidth": 120}, {"threshold": 5},
           {"threshold": 5, "edgeitems": 1}, {"threshold": 2, "edgeitems": 2}, {"threshold": 3, "edgeitems": 0},
           {"profile": "short"}, {"profile": "full"}]


def number(r, dtype):
    if dtype == "bool":
        return r.random() < 0.5
    if dtype.startswith(("int", "uint")):
        info = torch.iinfo(getattr(torch, dtype))
        top = min(info.max, 10 ** r.choice([1, 2, 4, 9, 18]))
        return r.randint(max(info.min, -top), top)
    if dtype.startswith("complex"):
        return [number(r, "float32"), number(r, "float32")]
    return 0.0  # filled by floats()


def floats(r, n):
    style = r.randrange(9)
    scale = 10.0 ** r.randint(-6, 9)
    pick = {
        0: lambda: r.gauss(0, 1), 1: lambda: r.gauss(0, 1) * scale, 2: lambda: float(r.randint(-9, 99)),
        3: lambda: float(r.randint(0, 10**6)), 4: lambda: r.choice(SPECIAL), 5: lambda: r.uniform(0, 1),
        6: lambda: r.choice([r.gauss(0, 1), math.nan, math.inf]), 7: lambda: round(r.gauss(0, 100), 1),
        8: lambda: 10.0 ** r.uniform(-8, 8),
    }[style]
    return [pick() for _ in range(n)]


def make(values, dtype, shape):
    t = getattr(torch, dtype)
    if values and values[0] == "ramp":
        _, start, step, divisor = values
        n = math.prod(shape)
        return ((torch.arange(n) * step + start).double() / divisor).to(t).reshape(shape)
    if dtype.startswith("complex"):
        values = [complex(*v) for v in values]
    return torch.tensor(values, dtype=t).reshape(shape)


def show(x, how):
    if how == "requires_grad":
        x = x.requires_grad_()
    elif how == "grad_fn":
        x = x.requires_grad_().clone()
    elif how == "parameter":
        x = torch.nn.Parameter(x)
    elif how == "frozen":
        x = torch.nn.Parameter(x, requires_grad=False)
    elif how == "meta":
        x = x.to("meta")
    elif how == "subclass":
        x = x.as_subclass(type("Wavelength", (torch.Tensor,), {}))
    return repr(x)


def main():
    r = random.Random(20)
    rows = []
    for _ in range(520):
        options = r.choice(OPTIONS)
        default = r.choice(["float32"] * 8 + ["float64", "float16"])
        dtype = r.choice(r.choice([FLOATS, FLOATS, FLOATS, INTS, COMPLEX]))
        dims = r.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 4])
        shape = [r.choice([1, 2, 3, 4, 7, 12] if dims < 3 else [1, 2, 3, 4]) for _ in range(dims)]
        if r.random() < 0.06 and dims:
            shape[r.randrange(dims)] = 0
        n = math.prod(shape)
        if r.random() < 0.12:
            shape = r.choice([[1001], [30, 40], [11, 10, 11], [1000], [2, 3000], [7, 7, 7, 7], [1001, 1], [1, 1, 1200]])
            values = ["ramp", r.randint(-50, 50), r.choice([1, 7, 1000]), r.choice([1, 3, 1000])]
        elif dtype in FLOATS:
            values = floats(r, n)
        elif dtype in COMPLEX:
            values = list(zip(floats(r, n), floats(r, n), strict=True))
        else:
            values = [number(r, dtype) for _ in range(n)]
        hows = ["plain"] * 6 + ["meta", "subclass", "frozen"]
        if dtype in FLOATS + COMPLEX:
            hows += ["requires_grad", "grad_fn", "parameter"]
        how = r.choice(hows)
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        torch.set_default_dtype(getattr(torch, default))
        rows.append([options, default, dtype, shape, values, how, show(make(values, dtype, shape), how)])
    torch.set_default_dtype(torch.float32)
    OUT.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    print(len(rows), "tensors")


main()
