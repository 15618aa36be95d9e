"""How tensors print: PyTorch's layout of numbers, brackets and suffixes, over NumPy arrays; and the print options.
Only the elements shown are looked at."""

import contextlib
import dataclasses
import math

import numpy as np

from msadapter_hook.tensor import dtype as dt


@dataclasses.dataclass
class _PrinterOptions:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


# The repr shows the class's name as PyTorch's does
_PrinterOptions.__name__ = _PrinterOptions.__qualname__ = "__PrinterOptions"

PRINT_OPTS = _PrinterOptions()
_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Set how tensors print: a profile ("default", "short", "full") first, then what is given.

    `sci_mode` None means that each tensor decides; every call resets it. Source: PyTorch, torch.set_printoptions."""
    chosen = dict(_PROFILES.get(profile, {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen.update((name, value) for name, value in given.items() if value is not None)
    for name, value in chosen.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions():
    """The options in force, as a dict. Source: PyTorch, torch._tensor_str."""
    return dataclasses.asdict(PRINT_OPTS)


@contextlib.contextmanager
def printoptions(**kwargs):
    """The options within a block. Source: PyTorch, torch._tensor_str.printoptions."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


class _Formatter:
    """One way of writing for all numbers of a tensor: as integers, with decimals, or with exponents, and how wide."""

    def __init__(self, values):
        self.floating = values.dtype.kind == "f"
        self.int_mode, self.sci_mode, self.width = True, False, 1
        if not self.floating:
            # the longest of the integers is an extreme one; truth values are looked at one by one
            ends = (values.min(), values.max()) if values.size and values.dtype.kind != "b" else values.flat
            self.width = max([1, *(len(str(v)) for v in ends)])
            return
        values = values.astype(np.float64, copy=False)
        values = values[np.isfinite(values) & (values != 0)]
        if not values.size:
            return  # zeros, infinities and NaN only: written as they come
        magnitudes = np.abs(values)
        largest, smallest = float(magnitudes.max()), float(magnitudes.min())
        self.int_mode = bool((values == np.ceil(values)).all())
        wanted = PRINT_OPTS.sci_mode
        if wanted is None:
            spread = largest / smallest > 1000.0 if smallest else True
            wanted = spread or largest > 1.0e8 or (not self.int_mode and smallest < 1.0e-4)
        self.sci_mode = bool(wanted)
        self.width = max(1, *(len(self._number(v)) for v in values.tolist()))

    def _number(self, value):
        if self.sci_mode:
            return f"{value:.{PRINT_OPTS.precision}e}"
        if self.int_mode:
            text = f"{value:.0f}"
            return text + "." if math.isfinite(value) else text
        return f"{value:.{PRINT_OPTS.precision}f}"

    def format(self, value):
        """`value`, filled up with blanks on the left."""
        return (self._number(value) if self.floating else str(value)).rjust(self.width)


class _ComplexFormatter:
    """Real and imaginary parts, each in its own way."""

    def __init__(self, values):
        self.real, self.imag = _Formatter(values.real), _Formatter(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def format(self, value):
        imag = (self.imag.format(value.imag) + "j").lstrip()
        return self.real.format(value.real) + (imag if imag[0] in "+-" else "+" + imag)


def _edges(array):
    """The part of `array` that a summary shows: both ends of every dimension."""
    edge = PRINT_OPTS.edgeitems
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            keep = np.r_[0:edge, size - edge : size].astype(np.intp)
            array = array.take(keep, axis)
    return array


def _vector(values, full, indent, summarize, formatter):
    """One row. `full` is the length of the whole dimension, of which `values` may hold the ends only."""
    edge = PRINT_OPTS.edgeitems
    cells = [formatter.format(v) for v in values.tolist()]
    if summarize and not edge:
        cells = ["..."]
    elif summarize and full > 2 * edge:
        cells = [*cells[:edge], " ...", *cells[-edge:]]
    per_line = max(1, math.floor((PRINT_OPTS.linewidth - indent) / (formatter.width + 2)))
    lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _body(values, shape, indent, summarize, formatter):
    """The nested brackets of `values`, whose whole has `shape`."""
    if not shape:
        return formatter.format(values.item())
    if len(shape) == 1:
        return _vector(values, shape[0], indent, summarize, formatter)
    edge = PRINT_OPTS.edgeitems
    parts = [_body(part, shape[1:], indent + 1, summarize, formatter) for part in values]
    if summarize and shape[0] > 2 * edge:
        parts = [*parts[:edge], "...", *parts[len(parts) - edge :]]
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"


def format_values(array, indent=0):
    """The numbers of `array` in brackets, as `repr` of a tensor shows them, continued lines indented by `indent`."""
    summarize = array.size > PRINT_OPTS.threshold
    shown = _edges(array) if summarize else array
    if shown.dtype.kind == "V" or shown.dtype == np.float16:  # bfloat16 and float8 are void to NumPy
        shown = shown.astype(np.float32)
    formatter = (_ComplexFormatter if shown.dtype.kind == "c" else _Formatter)(shown)
    return _body(shown, array.shape, indent, summarize, formatter)


def _with_suffixes(text, suffixes, indent, force_newline):
    """`text` and its suffixes, each on the line where it fits."""
    parts = [text]
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline and suffix is suffixes[0] or used + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            used = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            used += len(suffix) + 2
    parts.append(")")
    return "".join(parts)


def _partner(default):
    """The complex dtype that goes unnamed: only double has one of its own."""
    return dt.complex128 if default is dt.float64 else dt.complex64


def format_tensor(
    array,
    dtype,
    *,
    shape=None,
    requires_grad=False,
    grad_fn_name=None,
    device=None,
    is_parameter=False,
    class_name="tensor",
    contents=None,
    facts=(),
    layout=None,
):
    """The text of a tensor.

    `array`: its elements (None for a tensor without data, whose `shape` is then given); `dtype`: its torch dtype;
    `grad_fn_name`: the name of the function that made it, or None; `device`: shown unless None (what is not the
    default device); `contents`: the body of a subclass or of a sparse tensor, followed by `facts` (its size and number of elements) and,
    after the dtype, its `layout`; `is_parameter`: under "Parameter containing:"; `class_name`: "tensor", or the name of a subclass.
    Source: PyTorch, the repr of torch.Tensor."""
    prefix = class_name + "("
    indent = len(prefix)
    shape = tuple(array.shape) if shape is None else tuple(shape)
    suffixes = [f"device='{device}'"] if device is not None else []
    default = dt.get_default_dtype()
    if contents is not None:
        body = contents
        suffixes = [*facts, *suffixes]
        if dtype not in (default, dt.int64, dt.bool_, _partner(default)):
            suffixes.append(f"dtype={dtype!r}")
        if layout is not None:
            suffixes.append(f"layout={layout!r}")
    elif array is None:
        body = "..."
        suffixes.append(f"size={shape}")
        if dtype is not default:
            suffixes.append(f"dtype={dtype!r}")
    elif array.size == 0:
        body = "[]"
        if len(shape) != 1:
            suffixes.append(f"size={shape}")
        if dtype is not default:
            suffixes.append(f"dtype={dtype!r}")
    else:
        if not PRINT_OPTS.edgeitems:  # a summary without values has the size instead
            suffixes.append(f"size={shape}")
        if dtype not in (default, dt.int64, dt.bool_, _partner(default)):
            suffixes.append(f"dtype={dtype!r}")
        body = format_values(array, indent)
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    text = _with_suffixes(prefix + body, suffixes, indent, layout is dt.sparse_coo)
    return "Parameter containing:\n" + text if is_parameter else text
