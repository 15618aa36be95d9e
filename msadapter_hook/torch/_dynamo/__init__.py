"""torch._dynamo: the compiler behind torch.compile in PyTorch. Here programs run as written; questions are answered, marks kept."""

from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, is_exporting, list_backends, reset
from . import config, eval_frame, exc, utils
from .eval_frame import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph", "eval_frame", "exc",
           "explain", "export", "forbid_in_graph", "graph_break", "is_compiling", "is_exporting", "list_backends", "mark_dynamic",
           "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize", "reset", "run", "utils"]


def disallow_in_graph(fn):
    return fn


forbid_in_graph = nonstrict_trace = substitute_in_graph = disallow_in_graph


def graph_break(msg=""):
    """Nothing to break: there is no graph of the source."""


def mark_dynamic(t, index, *, min=None, max=None):
    """Nothing to mark: compiled programs are kept per shape."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t, index=None):
    """Nothing to mark: compiled programs are kept per shape."""


def mark_static_address(t, guard=True):
    """Nothing to mark: addresses are not compiled in."""


def optimize(backend="inductor", *, nopython=False, guard_export_fn=None, guard_fail_fn=None, disable=False, dynamic=None):
    """The old form of torch.compile, as a decorator. Source: PyTorch, torch._dynamo.optimize."""
    from .._compile import compile

    return lambda fn: compile(fn, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable)


def run(fn=None):
    return (lambda f: f) if fn is None else fn


def explain(f, *extra_args, **extra_kwargs):
    from .._refusal import refused

    return refused("torch._dynamo.explain", "no source is compiled; `python -m msadapter_hook --report` tells what runs how")()


def export(f, *extra_args, **extra_kwargs):
    from .._refusal import refused

    return refused("torch._dynamo.export", "trace the module with torch.fx.symbolic_trace")()
