"""The functional route and native MindSpore in the same process: what crosses the border, and what each side makes of it.

crossing: tensors; parameters: parameters that both sides own; operations: MindSpore calls on our tape; gradients:
value_and_grad and its kin; cells: modules and Cells as each other; amp; compiled: graph mode; checkpoints: files and tensors.
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
