"""The functional route and native MindSpore in the same process: what crosses the border, and what each side makes of it.

patches: the entry points; presence, references: whether something of ours takes part in a call; modes: MindSpore's recording;
trees: structures; crossing, natives: tensors; parameters: those that both sides own; operations: MindSpore calls on our tape;
gradients: value_and_grad and its kin; cells, optimizers: modules and optimizers as Cells; precision, amp: mixed precision;
compiled: graph mode; checkpoints, export: files.
"""


def __getattr__(name):
    # late: a program that only wants checkpoints converted should not pay for the rest
    import importlib

    places = {"as_cell": "cells", "CellModule": "cells", "convert_tensor": "checkpoints", "convert_file": "checkpoints",
              "cast_to_adapter_tensor": "crossing", "cast_to_ms_tensor": "crossing"}
    if name not in places:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return getattr(importlib.import_module(f"{__name__}.{places[name]}"), name)


__all__ = ["CellModule", "as_cell", "cast_to_adapter_tensor", "cast_to_ms_tensor", "convert_file", "convert_tensor"]
