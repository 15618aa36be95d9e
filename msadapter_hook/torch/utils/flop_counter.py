"""torch.utils.flop_counter: floating point operations of products and convolutions, forward and backward, by module."""

import math
import warnings
from collections import defaultdict

from .. import Tensor
from .._ops import ops
from ..overrides import TorchFunctionMode
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "conv_flop", "register_flop_formula"]


def _packet(name):
    return getattr(ops.aten, name)


def _numel(shape):
    return math.prod(shape)


def _matmul(a, b):
    """(operator, flops) of a product of two tensors of any rank; None for a product with a vector."""
    if len(b) < 2 or len(a) < 2:
        return None
    m, k, n = a[-2], a[-1], b[-1]
    if len(b) == 2:
        return "mm", 2 * _numel(a[:-1]) * k * n
    batch = max(_numel(a[:-2]), _numel(b[:-2]))
    return "bmm", 2 * batch * m * k * n


def conv_flop(x_shape, w_shape, bias, stride, padding, dilation, transposed, output_shape, *args, **kwargs):
    """Flops of a convolution, from its shapes. Source: PyTorch, torch.utils.flop_counter."""
    spatial = x_shape[2:] if transposed else output_shape[2:]
    return 2 * x_shape[0] * w_shape[0] * _numel(w_shape[1:]) * _numel(spatial)


def _einsum(equation, operands):
    """Flops of a contraction from left to right, as products of matrices in batches."""
    inputs, _, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) < 2 or "." in equation or len(terms) != len(operands):
        return None
    sizes = {label: size for term, x in zip(terms, operands) for label, size in zip(term, x.shape)}
    total, left = 0, set(terms[0])
    for i, term in enumerate(terms[1:], 1):
        later = set("".join(terms[i + 1:])) | set(output)
        both = left | set(term)
        if (left & set(term)) - later:  # something is summed: a product of matrices
            total += 2 * _numel([sizes[label] for label in both])
        left = both & later
    return ("bmm", total) if total else None


def _work(name, args, kwargs, result):
    """What a call computes: (operator, flops forward, the tensors that have a gradient, operator of the gradient)."""
    given = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
    found, tensors = None, []
    if name in ("mm", "matmul", "bmm", "__matmul__"):
        found, tensors = _matmul(given[0].shape, given[1].shape), given[:2]
    elif name in ("addmm", "baddbmm", "addbmm"):
        product = _matmul(given[1].shape, given[2].shape)
        found, tensors = (name if name != "addbmm" else "bmm", product[1]), given[1:3]
    elif name == "linear":
        x, weight = given[:2]
        flops = 2 * _numel(x.shape) * _numel(weight.shape[:-1])
        found, tensors = ("addmm" if len(given) > 2 else "mm", flops), given[:2]
    elif name in ("_einsum", "einsum"):
        operands = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else list(args[1:])
        found, tensors = _einsum(args[0], operands), [t for t in operands if isinstance(t, Tensor)]
    elif name.startswith("conv") and name.rstrip("d")[-1:] in "123" or name == "convolution":
        transposed = "transpose" in name
        x, weight = given[:2]
        shape = x.shape if len(x.shape) == len(weight.shape) else (1, *x.shape)
        out = result.shape if len(result.shape) == len(weight.shape) else (1, *result.shape)
        return "convolution", conv_flop(shape, weight.shape, None, None, None, None, transposed,
                                        out), given[:2], "convolution_backward"
    elif name == "scaled_dot_product_attention":
        q, k, v = given[:3]
        batch = _numel(q.shape[:-2])
        flops = 2 * batch * q.shape[-2] * k.shape[-2] * (q.shape[-1] + v.shape[-1])
        return "bmm", flops, [q, v], "bmm"
    if found is None:
        return None
    gradient = "bmm" if found[0] in ("bmm", "baddbmm") else "mm"
    return found[0], found[1], tensors, gradient


_formulas = {}  # names of operators -> f(*arguments, out_val=result) that gives their flops


def register_flop_formula(targets, get_raw=False):
    """Decorator: `f(*shapes, out_shape=…)`, or with `get_raw` `f(*args, out_val=…)`, gives the flops of the operators in
    `targets`. Source: PyTorch, torch.utils.flop_counter.register_flop_formula."""

    def register(formula):
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            _formulas[_target_name(target)] = formula if get_raw else _by_shape(formula)
        return formula

    return register


def _target_name(target):
    return getattr(target, "_opname", None) or getattr(target, "_qualified_op_name", "").rpartition("::")[2] or target.__name__


def _by_shape(formula):
    def shape(x):
        if isinstance(x, Tensor):
            return x.shape
        return [shape(i) for i in x] if isinstance(x, (list, tuple)) else x

    def raw(*args, out_val=None, **kwargs):
        return formula(*[shape(a) for a in args], out_shape=shape(out_val), **{k: shape(v) for k, v in kwargs.items()})

    return raw


class FlopCounterMode(TorchFunctionMode):
    """Context that counts the floating point operations of products and convolutions. Those of gradients are counted when the
    gradients come to be. Source: PyTorch, torch.utils.flop_counter.FlopCounterMode.

    `depth`: how deep modules are shown; `display`: print the table at the end; `custom_mapping`: {operator: formula}.
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        super().__init__()
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self.mod_tracker = ModuleTracker()
        self._custom = {}
        for target, formula in (custom_mapping or {}).items():
            raw = formula if getattr(formula, "_get_raw", False) else _by_shape(formula)
            self._custom[_target_name(target)] = raw

    def __enter__(self):
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        return super().__enter__()

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.mod_tracker.__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.__name__
        formula = self._custom.get(name) or _formulas.get(name)
        if formula is not None:
            self._count(self.mod_tracker.parents, name, formula(*args, out_val=result, **kwargs))
            return result
        work = _work(name, args, kwargs, result) if isinstance(result, Tensor) else None
        if work is not None:
            operator, flops, tensors, gradient = work
            parents = set(self.mod_tracker.parents)
            self._count(parents, operator, flops)
            needed = sum([t.requires_grad for t in tensors])
            if name == "scaled_dot_product_attention":
                needed = 2 if any(a.requires_grad for a in args[:3] if isinstance(a, Tensor)) else 0
            if needed and result.requires_grad:
                # once for each call of backward that passes here
                result.register_hook(lambda grad: self._count(parents, gradient, needed * flops))
        return result

    def _count(self, parents, operator, flops):
        for name in sorted(parents, key=lambda name: (name != "Global", name)):
            self.flop_counts[name][_packet(operator)] += flops

    def get_total_flops(self):
        """The sum. Source: PyTorch, FlopCounterMode.get_total_flops."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """{module: {operator: flops}}. Source: PyTorch, FlopCounterMode.get_flop_counts."""
        return {name: dict(counts) for name, counts in self.flop_counts.items() if counts or name != "Global"}

    def get_table(self, depth=None):
        """The counts as a table. Source: PyTorch, FlopCounterMode.get_table."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        scale = max(0, min(4, (len(str(total)) - 2) // 3))

        def shown(name, counts, indent):
            flops = sum(counts.values())
            rows = [(" " * indent + name, flops)] + [(" " * indent + f" - {op}"[1:], n) for op, n in counts.items()]
            return [(label, f"{n / 1000 ** scale:.3f}{['', 'K', 'M', 'B', 'T'][scale]}" if total else "0",
                     f"{n / total * 100:.2f}%" if total else "0%") for label, n in rows]

        rows, covered = [], False
        for name in sorted(self.flop_counts):
            if name == "Global" or name.count(".") + 1 > depth:
                continue
            counts = self.flop_counts[name]
            covered = covered or sum(counts.values()) >= total
            rows += shown(name, counts, 0)
        if "Global" in self.flop_counts and not covered:
            rows = shown("Global", self.flop_counts["Global"], 0) + [(" " + label, *rest) for label, *rest in rows]
        rows = rows or [("Global", "0", "0%")]
        titles = ("Module", "FLOP", "% Total")
        widths = [max(len(title) + 2, *[len(row[i]) for row in rows]) for i, title in enumerate(titles)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in (
            titles, tuple("-" * width for width in widths), *rows)]
        return "\n".join([line.rstrip() for line in lines])
