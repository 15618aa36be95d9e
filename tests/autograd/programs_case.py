"""`case(name, function)` in a program of tests/autograd/programs: notes what the function gives, as text."""

import warnings

import torch

RESULTS = {}


def text(value):
    """Tensors as rounded numbers, shape and dtype; containers of them; anything else by its repr."""
    if isinstance(value, torch.Tensor):
        if value.is_complex():
            value = torch.view_as_real(value.resolve_conj())
        numbers = [round(v, 4) + 0.0 for v in value.detach().double().reshape(-1).tolist()]
        return f"{numbers}{list(value.shape)}{value.dtype}{' requires grad' if value.requires_grad else ''}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, float):
        return repr(round(value, 4))
    if isinstance(value, (int, str, bool, type(None), torch.Size, torch.dtype)):
        return repr(value)
    return f"<{'type' if isinstance(value, type) else type(value).__name__}>"


def case(name, function):
    """Note the result of `function()`, or its exception."""
    with warnings.catch_warnings():
        if warnings.filters[0][0] != "error":  # a program may want to see warnings as errors
            warnings.simplefilter("ignore")
        try:
            RESULTS[name] = text(function())
        except Exception as error:
            RESULTS[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:240]}"


def run(path):
    """The results of a program."""
    import torch

    RESULTS.clear()
    torch.manual_seed(0)  # whatever ran before
    with open(path) as f:
        source = f.read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, path, "exec"), {"__name__": "program"})
    return dict(RESULTS)
