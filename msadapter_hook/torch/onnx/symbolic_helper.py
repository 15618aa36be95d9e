"""torch.onnx.symbolic_helper: what decorates symbolic functions, which an export would call."""

import functools


def parse_args(*descriptors):
    """The function itself: it is never called, as exports are refused. Source: PyTorch, torch.onnx.symbolic_helper.parse_args."""

    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs)

        return wrapper

    return decorate


def quantized_args(*descriptors, **options):
    return parse_args()
