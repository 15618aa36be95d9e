"""Records tests/goldens/checkpoints: small files written by real PyTorch, and what they hold.

Run with an interpreter that has real PyTorch: python tests/record/checkpoints.py"""

import collections
import json
import pathlib

import torch

FOLDER = pathlib.Path(__file__).parent.parent / "goldens" / "checkpoints"
FOLDER.mkdir(exist_ok=True)

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
          "complex128", "uint16", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn"]  # fmt: skip


def contents():
    base = torch.arange(12.0).reshape(3, 4)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    yield "dtypes", {name: torch.tensor([0, 1, 2, 3]).to(getattr(torch, name)) for name in DTYPES}
    yield "views", {"base": base, "row": base[1], "t": base.t(), "step": base[:, ::2], "empty": torch.empty(0, 2)}
    yield "training", {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "name": "net"}
    yield "parameter", [torch.nn.Parameter(base[0]), torch.ones(2, requires_grad=True), torch.tensor(5)]
    yield (
        "plain",
        {
            "t": (1, 2.5, "a", None, True, b"bytes", 1 << 70, 3j),
            "c": collections.Counter("aab"),
            "o": collections.OrderedDict([("x", 1)]),
            "s": {1, 2},
            "size": torch.Size([2, 3]),
            "dtype": torch.bfloat16,
            "device": torch.device("cpu"),
            "b": bytearray(b"xyz"),
        },
    )


torch.manual_seed(0)
summary = {}
for name, value in contents():
    torch.save(value, FOLDER / f"{name}.pt")
    torch.save(value, FOLDER / f"{name}_legacy.pt", _use_new_zipfile_serialization=False)
    if name == "training":
        summary[name] = {key: tensor.tolist() for key, tensor in value["model"].items()}
(FOLDER / "summary.json").write_text(json.dumps(summary) + "\n")
