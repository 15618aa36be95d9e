"""Records PyTorch's public names: python tests/record/names.py PYTHON_WITH_TORCH"""

import json
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "goldens" / "names.json"
NAMESPACES = ("torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.linalg", "torch.fft",
              "torch.special", "torch.signal.windows", "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data",
              "torch.distributions", "torch.autograd", "torch.autograd.functional", "torch.func", "torch.random", "torch.testing",
              "torch.sparse", "torch.masked", "torch.amp", "torch.jit", "torch.utils.checkpoint", "torch.multiprocessing")


def public(name):
    """The public names of a namespace: `__all__` where there is one, else what is not private and no module."""
    import importlib
    import types

    if name == "torch.Tensor":
        import torch

        return sorted(n for n in dir(torch.Tensor) if not n.startswith("_") or n.startswith("__") and n.endswith("__"))
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None)
    if name == "torch":  # beside what it lists, the operators
        listed = [*listed, *[n for n in dir(module._C._VariableFunctions) if not n.startswith("_") and hasattr(module, n)]]
    elif listed is None or name == "torch.nn.functional":
        listed = [n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))
                  and getattr(getattr(module, n), "__module__", None) not in ("typing", "builtins", "torch._C")]
        listed += [n for n in dir(module) if type(getattr(module, n)).__name__ == "builtin_function_or_method"]
    internal = {n for n in listed if getattr(getattr(module, n, None), "__module__", None) == "torch._C"}  # of its compiled part
    return sorted(n for n in set(listed) - internal
                  if not isinstance(getattr(module, n, None), types.ModuleType) and not n.startswith("_add_docstr"))


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        print(json.dumps({name: public(name) for name in NAMESPACES}, indent=0))
    else:
        made = subprocess.run([sys.argv[1], __file__, "--inside"], check=True, capture_output=True, text=True).stdout
        GOLDEN.write_text(made)
