"""Record PyTorch's tables of dtypes and devices: `python tests/record/dtypes.py` with an interpreter that has torch."""

import json
import pathlib
import pickle
import warnings

import numpy as np
import torch

warnings.simplefilter("ignore")
OUT = pathlib.Path(__file__).parents[1] / "goldens" / "dtypes.json"
NAMES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool bfloat16 float8_e5m2 "
    "float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu uint16 uint32 uint64"
).split()
OTHER_NAMES = "short int long half float double chalf cfloat cdouble".split()
DEVICES = [
    ["cpu"], ["cuda"], ["cuda:0"], ["cuda:7"], ["cuda", 1], ["cpu", 0], ["cpu:3"], ["meta"], ["meta:2"], ["mps"],
    ["xpu:1"], ["privateuseone:1"], ["hpu"], ["xla:3"], ["mtia"], ["cuda", None], ["foo"], ["CPU"], [""],
    ["cuda:"], ["cuda:x"], ["cuda:-1"], ["cuda:01"], ["cuda:1:2"], [":1"], ["cuda "], ["cuda:+1"], ["cuda:99999999999"],
    ["cuda:0", 1],
    ["cuda", -1], ["cuda", "1"], [1.5], [True], [None], [], ["cpu", 1, 2], [-1], [0], [["cpu"]], [["cpu", 1]],
    ["cuda", 1.5], ["cuda", True],
]


def outcome(call, *args):
    """["ok", text] or [error type, message]."""
    try:
        return ["ok", str(call(*args))]
    except Exception as e:
        return [type(e).__name__, str(e)]


def dtype_of(array):
    return torch.from_numpy(array).dtype


def device_repr(*args):
    return repr(torch.device(*args))


def operand(d, kind):
    return torch.ones(2, dtype=d) if kind == 0 else torch.ones((), dtype=d)


def main():
    types = [getattr(torch, n) for n in NAMES]
    facts = {
        n: [t.itemsize, t.is_floating_point, t.is_complex, t.is_signed, t.abbr, outcome(t.to_real),
            outcome(t.to_complex), outcome(torch.finfo, t), outcome(torch.iinfo, t)]
        for n, t in zip(NAMES, types, strict=True)
    }
    same = {n: str(getattr(torch, n)) for n in OTHER_NAMES}
    promote = [[outcome(torch.promote_types, a, b) for b in types] for a in types]
    cast = ["".join(str(int(torch.can_cast(a, b))) for b in types) for a in types]
    results = []
    for default in ("float32", "float64", "float16", "bfloat16"):
        torch.set_default_dtype(getattr(torch, default))
        for a, x in zip(NAMES, types, strict=True):
            for b, y in zip(NAMES, types, strict=True):
                if default != "float32" and (x.itemsize > 4 or y.itemsize > 4):
                    continue
                found = outcome(torch.result_type, operand(x, 0), operand(y, 1))
                results.append([default, [a, 0], [b, 1], found])
            for number in (True, 3, 2.5, 1j):
                for kind in (0, 1):
                    text = [type(number).__name__, 2]
                    results.append([default, [a, kind], text, outcome(torch.result_type, operand(x, kind), number)])
        for p, q in ((1, 2), (True, 2), (1, 2.5), (2.5, 1j), (True, False)):
            names = [type(p).__name__, 2], [type(q).__name__, 2]
            results.append([default, *names, outcome(torch.result_type, p, q)])
    torch.set_default_dtype(torch.float32)
    arrays = [
        [n, outcome(dtype_of, np.zeros(2, n))]
        for n in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                  "uint64", "bool", "complex64", "complex128", "longlong", "longdouble", "U3", "S3", "O",
                  "datetime64[s]", ">f4", ">i2", "V4")
    ]
    devices = [[a, outcome(device_repr, *a), outcome(torch.device, *a)] for a in DEVICES]
    pickles = {
        repr(x): pickle.dumps(x, 2).decode("latin1")
        for x in (torch.float32, torch.long, torch.bfloat16, torch.bool, torch.device("cpu"), torch.device("cuda:1"))
    }
    fields = [("names", NAMES), ("facts", facts), ("same", same), ("promote", promote), ("cast", cast),
              ("results", results), ("arrays", arrays), ("devices", devices), ("pickles", pickles)]
    parts = []
    for name, value in fields:
        rows = isinstance(value, list) and name != "names"
        body = "[\n" + ",\n".join(json.dumps(v) for v in value) + "]" if rows else json.dumps(value)
        parts.append(f'"{name}": {body}')
    OUT.write_text("{" + ",\n".join(parts) + "}\n")
    print(len(results), "result types,", len(devices), "devices")


main()
