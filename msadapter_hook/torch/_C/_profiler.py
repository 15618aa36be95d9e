# torch._C._profiler: the stack of a Python program, as the profiler and logging tensors ask for it.
import traceback as _traceback


def gather_traceback(python=True, script=True, cpp=False):
    """The stack where this is called; only Python's frames are there to gather. Source: PyTorch, torch._C._profiler."""
    return _traceback.extract_stack()[:-1] if python else []


def symbolize_tracebacks(tracebacks):
    """The frames of each traceback, innermost first, as dictionaries of name, filename and line."""
    return [[{"name": f.name, "filename": f.filename, "line": f.lineno} for f in reversed(stack)] for stack in tracebacks]
