"""torch.compiler: questions and marks of torch.compile."""

__all__ = ["allow_in_graph", "assume_constant_result", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling",
           "is_exporting", "list_backends", "reset", "set_stance"]


def is_compiling():
    """False: programs run as they are written, and are compiled from what was recorded. Source: PyTorch,
    torch.compiler.is_compiling."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn=None, recursive=True, *, reason=None):
    """The function itself: nothing of it is compiled from its source. Source: PyTorch, torch.compiler.disable."""
    return (lambda f: f) if fn is None else fn


def allow_in_graph(fn):
    return fn


def assume_constant_result(fn):
    return fn


def reset():
    """Nothing to forget: programs are kept by structure."""


def cudagraph_mark_step_begin():
    """There are no CUDA graphs."""


def list_backends(exclude_tags=("debug", "experimental")):
    return []


class set_stance:
    """Kept for programs that set it; there is one way of running. Source: PyTorch, torch.compiler.set_stance."""

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        self.stance = stance

    def __call__(self, fn):
        return fn

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return False
