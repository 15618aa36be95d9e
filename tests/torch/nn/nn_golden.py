# What is remembered of a case: print, state dictionary, initial values, outputs and gradients, as plain JSON.
import importlib
import warnings

from nn_cases import CASES


def _tensors(value, torch):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _tensors(v, torch)]
    return []


def _numbers(t):
    """Shape, a few values and two sums, so that a golden is small and a permutation is still seen."""
    flat = t.detach().double().reshape(-1).tolist()
    weighted = sum(v * ((i % 7) + 1) for i, v in enumerate(flat))
    # Sums of terms that cancel are as exact as their terms, not as themselves.
    scale = sum(abs(v) for v in flat if abs(v) < float("inf"))
    return {"shape": list(t.shape), "head": flat[:4], "scale": scale, "sum": sum(flat), "weighted": weighted}


def record(name, module_text, args_text, torch, nn):
    """The golden of one case under the given `torch` and `nn`; CASES are evaluated with them."""
    scope = {"torch": torch, "nn": nn}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(11)
        if "prune" in module_text:
            importlib.import_module(nn.__name__ + ".utils.prune")
        module = eval(module_text, scope)
        result = {"repr": repr(module)}
        lazy = any(type(p).__name__.startswith("Uninit") for p in module.state_dict().values())
        if not lazy:
            state = module.state_dict()
            result["state"] = {k: _numbers(v) for k, v in state.items() if isinstance(v, torch.Tensor)}
        if not args_text:
            return result
        torch.manual_seed(12)
        args = eval(f"({args_text},)", scope)
        leaves = [a for a in _tensors(args, torch) if a.is_floating_point() and a.is_leaf]
        if name.startswith("loss"):
            # Not every loss can be differentiated by its target.
            leaves = leaves[:1]
        if not any(isinstance(a, nn.utils.rnn.PackedSequence) for a in args) and "inplace=True" not in module_text:
            for leaf in leaves:
                leaf.requires_grad_()
        outputs = [o for o in _tensors(module(*args), torch) if isinstance(o, torch.Tensor)]
        result["outputs"] = [_numbers(o) for o in outputs]
        differentiable = [o for o in outputs if o.requires_grad]
        if differentiable:
            sum((o * o).sum() for o in differentiable).backward()
            grads = {n: p.grad for n, p in module.named_parameters()}
            result["grads"] = {n: None if g is None else _numbers(g) for n, g in grads.items()}
            seen, inputs = set(), []
            for leaf in leaves:
                if id(leaf) not in seen:
                    seen.add(id(leaf))
                    inputs.append(None if leaf.grad is None else _numbers(leaf.grad))
            result["input_grads"] = inputs
        if lazy:
            result["state"] = {k: _numbers(v) for k, v in module.state_dict().items()}
        result["repr_after"] = repr(module)
    return result


def different(a, b, path="", tolerance=1e-5):
    """First difference of two goldens as a text, or None; numbers may differ by rounding."""
    if isinstance(a, float) or isinstance(b, float):
        if a is None or b is None:
            return f"{path}: {a} != {b}"
        if a != a and b != b or abs(a - b) <= tolerance * (1 + abs(a)):
            return None
        return f"{path}: {a} != {b}"
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            return f"{path}: keys {list(a)} != {list(b)}"
        if "scale" in a:
            for key, size in (("sum", 1 + a["scale"]), ("weighted", 1 + 7 * a["scale"])):
                if (d := different(a[key], b[key], f"{path}.{key}", tolerance * size)) is not None:
                    return d
        pairs = [(f"{path}.{k}", a[k], b[k]) for k in a if "scale" not in a or k in ("shape", "head", "scale")]
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return f"{path}: {len(a)} != {len(b)} items"
        pairs = [(f"{path}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b))]
    else:
        return None if a == b else f"{path}: {a!r} != {b!r}"
    return next((d for p, x, y in pairs if (d := different(x, y, p, tolerance))), None)


def record_all(torch, nn):
    """Goldens of all cases by name; names that occur twice get a number."""
    goldens = {}
    for index, (name, module_text, args_text) in enumerate(CASES):
        goldens[f"{index:03d} {name}"] = record(name, module_text, args_text, torch, nn)
    return goldens
