"""Tensors and checkpoint files from one library's form into the other's: convert_tensor, and the command `convert`.

Names follow the layers of both libraries. A state dictionary does not say which layer a name belongs to, so it is told from
what lies beside it; whatever cannot be told keeps its name and is in the report.
"""

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path

import mindspore
import numpy as np

from msadapter_hook import backend
from msadapter_hook.ops.creation import from_numpy
from msadapter_hook.tensor import Tensor

from . import crossing

#: the layer that a group of names belongs to -> PyTorch's name of each part, MindSpore's name
NAMES = {
    "batch norm": (("weight", "gamma"), ("bias", "beta"), ("running_mean", "moving_mean"), ("running_var", "moving_variance")),
    "norm": (("weight", "gamma"), ("bias", "beta")),
    "embedding": (("weight", "embedding_table"),),
}
#: MindSpore writes complex numbers into a .ckpt but cannot read them: they are stored as pairs of real numbers, so marked
COMPLEX = "@complex"
#: keys under which training scripts keep the model's state
NESTED = ("state_dict", "model_state_dict", "model", "net", "module")


# ------------------------------------------------------------------------------------------------ tensors
def convert_tensor(tensor, to="torch"):
    """A tensor of any of the three kinds (ours, MindSpore's, NumPy's; also another torch's) as the kind asked for.

    to: "torch", "ms" or "numpy". Memory is shared where both sides can; history is not carried over.
    ValueError for another kind, TypeError for what is no tensor.
    """
    if to not in ("torch", "ms", "numpy"):
        raise ValueError(f"convert_tensor: to={to!r}; expected 'torch', 'ms' or 'numpy'")
    if isinstance(tensor, Tensor):
        if to == "torch":
            return tensor
        if to == "ms":
            return crossing.unwrap(tensor)
        return tensor.detach().value.numpy if tensor.dtype.numpy.kind == "V" else tensor.detach().numpy()
    if isinstance(tensor, mindspore.Tensor):
        if to == "ms":
            return tensor
        return crossing.made(tensor) if to == "torch" else backend.as_numpy(tensor)
    array = _array_of(tensor)
    return {"torch": _ours, "ms": backend.from_numpy, "numpy": lambda a: a}[to](array)


def _ours(array):
    return from_numpy(array) if array.dtype.kind != "V" else crossing.made(backend.from_numpy(array))


def _array_of(tensor):
    """The NumPy array under a tensor of another library."""
    if isinstance(tensor, (np.ndarray, np.generic)):
        return np.asarray(tensor)
    if hasattr(tensor, "detach"):  # another torch: a tensor with history refuses the protocols
        tensor = tensor.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":
            import ml_dtypes

            return tensor.view(sys.modules[type(tensor).__module__].int16).numpy().view(ml_dtypes.bfloat16)
    if hasattr(tensor, "__array__"):
        return np.asarray(tensor)
    if hasattr(tensor, "__dlpack__"):
        return np.from_dlpack(tensor)
    raise TypeError(f"convert_tensor: {type(tensor).__name__} is no tensor")


# ------------------------------------------------------------------------------------------------ names
@dataclass
class Report:
    """What a conversion did: renamed names, names kept because nothing told their layer, and what was left out, with reasons."""

    renamed: dict = field(default_factory=dict)
    kept: list = field(default_factory=list)
    unsure: dict = field(default_factory=dict)
    left_out: dict = field(default_factory=dict)

    def __str__(self):
        lines = [f"{len(self.renamed)} renamed, {len(self.kept)} kept, {len(self.left_out)} left out"]
        lines += [f"  renamed   {a} -> {b}" for a, b in self.renamed.items()]
        lines += [f"  unsure    {name}: {why}" for name, why in self.unsure.items()]
        lines += [f"  left out  {name}: {why}" for name, why in self.left_out.items()]
        return "\n".join(lines)


def _groups(shapes):
    groups = {}
    for name in shapes:
        prefix, _, last = name.rpartition(".")
        groups.setdefault(prefix, set()).add(last)
    return groups


def _layer(prefix, parts, shapes, embeddings, column):
    """Which row of NAMES a group of names belongs to, or None; `column`: 0 for PyTorch's names, 1 for MindSpore's."""
    batch = NAMES["batch norm"]
    if parts & {batch[2][column], batch[3][column]}:
        return "batch norm"
    if column == 1:
        return "norm" if "gamma" in parts else "embedding" if "embedding_table" in parts else None
    if prefix in embeddings:
        return "embedding"
    weight = shapes.get(f"{prefix}.weight" if prefix else "weight")
    return "norm" if weight is not None and len(weight) == 1 else None


def map_names(shapes, to, embeddings=(), report=None):
    """PyTorch's names of parameters as MindSpore's (`to="mindspore"`), or back (`to="torch"`): a dict name -> name.

    shapes: name -> shape. embeddings: prefixes of Embedding layers, whose `weight` looks like a Linear's without bias.
    """
    report = Report() if report is None else report
    column = 0 if to == "mindspore" else 1
    mapped, groups = {}, _groups(shapes)
    for name, shape in shapes.items():
        prefix, _, last = name.rpartition(".")
        layer = _layer(prefix, groups[prefix], shapes, embeddings, column)
        renaming = {row[column]: row[1 - column] for row in NAMES.get(layer, ())}
        new = renaming.get(last, last)
        full = f"{prefix}.{new}" if prefix else new
        mapped[name] = full
        if full != name:
            report.renamed[name] = full
        else:
            report.kept.append(name)
        if column == 0 and layer is None and last == "weight" and len(shape) == 2 and "bias" not in groups[prefix]:
            report.unsure[name] = f"a Linear without bias, or an Embedding (then --embedding {prefix or '.'})"
        if column == 0 and last == "weight" and layer == "norm" and "bias" not in groups[prefix]:
            report.unsure[name] = "one dimension and no bias: taken for a normalization"
    return mapped


# ------------------------------------------------------------------------------------------------ files
def _is_tensor(x):
    return isinstance(x, Tensor)


def _state_of(loaded, key, report):
    """The state dictionary in a loaded checkpoint."""
    if key is not None:
        for part in key.split("."):
            loaded = loaded[part]
    elif isinstance(loaded, dict) and not any(map(_is_tensor, loaded.values())):
        inner = [k for k in NESTED if isinstance(loaded.get(k), dict)]
        if len(inner) == 1:
            for other in loaded:
                if other != inner[0]:
                    report.left_out[str(other)] = f"beside {inner[0]!r}; name it with --key to convert it"
            loaded = loaded[inner[0]]
    if hasattr(loaded, "state_dict"):
        loaded = loaded.state_dict()
    if not isinstance(loaded, dict):
        raise ValueError(f"no state dictionary in the file: it holds a {type(loaded).__name__}")
    state = {}
    for name, value in loaded.items():
        if _is_tensor(value):
            state[name] = value
        else:
            report.left_out[str(name)] = f"no tensor ({type(value).__name__})"
    return state


def _read(name, array):
    """(name, array) of one parameter of a .ckpt; pairs of real numbers are complex again."""
    if not name.endswith(COMPLEX):
        return name, array
    kind = np.complex64 if array.dtype == np.float32 else np.complex128
    return name[:-len(COMPLEX)], np.ascontiguousarray(array).view(kind).reshape(array.shape[:-1])


def convert_file(source, target, names="auto", key=None, embeddings=(), torch=None):
    """Convert a checkpoint, by the ending of its name: `.ckpt` is MindSpore's, everything else PyTorch's. Gives the Report.

    names: "auto" maps names to the other library's layers, "keep" leaves them (for served modules in MindSpore's files).
    key: where the state dictionary lies in a PyTorch file with more in it. torch: the served module; default `import torch`.
    """
    import importlib

    torch = torch or importlib.import_module("torch")
    report = Report()
    to_native = str(target).endswith(".ckpt")
    if to_native == str(source).endswith(".ckpt"):
        raise ValueError(f"{source} -> {target}: one of the two must be a .ckpt, the other a PyTorch file")
    if to_native:
        state = _state_of(torch.load(source, map_location="cpu"), key, report)
        arrays = {name: t.detach().value.numpy for name, t in state.items()}
    else:
        arrays = dict([_read(name, backend.as_numpy(p)) for name, p in mindspore.load_checkpoint(str(source)).items()])
    shapes = {name: a.shape for name, a in arrays.items()}
    if names == "keep":
        mapped = {name: name for name in arrays}
        report.kept += list(arrays)
    else:
        mapped = map_names(shapes, "mindspore" if to_native else "torch", embeddings, report)
    if to_native:
        rows = []
        for name, array in arrays.items():
            array, target_name = np.array(array, order="C", copy=True), mapped[name]
            if array.dtype.kind == "c":
                array, target_name = array.reshape(*array.shape, 1).view(array.real.dtype), target_name + COMPLEX
                report.unsure[name] = "complex, stored as pairs of real numbers: only this command reads it back"
            try:
                rows.append({"name": target_name, "data": backend.from_numpy(array)})
            except (TypeError, RuntimeError) as error:
                report.left_out[name] = f"MindSpore has no {array.dtype}: {error}"
        mindspore.save_checkpoint(rows, str(target))
    else:
        torch.save({mapped[name]: _ours(np.array(a, order="C", copy=True)) for name, a in arrays.items()}, target)
    return report


def main(arguments=None):
    """`python -m msadapter_hook convert in.pth out.ckpt` and back; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m msadapter_hook convert",
                                     description="Convert a checkpoint between PyTorch (.pth, .pt, …) and MindSpore (.ckpt).")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--names", choices=("auto", "keep"), default="auto",
                        help="auto: names of the other library's layers (default); keep: as they are, for served modules")
    parser.add_argument("--key", help="where the state dictionary lies in the PyTorch file, as `model.state_dict`")
    parser.add_argument("--embedding", action="append", default=[], metavar="PREFIX",
                        help="PREFIX is an Embedding (its weight is MindSpore's embedding_table); may be repeated")
    chosen = parser.parse_args(arguments)
    if not Path(chosen.source).exists():
        print(f"convert: no such file: {chosen.source}", file=sys.stderr)
        return 2
    try:
        report = convert_file(chosen.source, chosen.target, chosen.names, chosen.key, chosen.embedding)
    except ValueError as error:
        print(f"convert: {error}", file=sys.stderr)
        return 1
    print(report)
    return 0
