"""einsum, tensordot and chain_matmul: products over named or numbered axes."""

import math
import re
import warnings

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value
from msadapter_hook.tensor import Tensor

from . import overrides
from ._contract import contract, permuted, shaped
from .arguments import type_name
from .matmul import _check_product, _Shape
from .promotion import dtype_of
from .registry import operator, plain
from .tables import call

_ELLIPSIS = "..."


# ------------------------------------------------------------------------------------------------ einsum
def einsum(equation, *operands):
    """Sum of products over the axes that an equation names; also in the form operand, sublist, operand, sublist, …,
    output.

    Letters that repeat within one operand take its diagonal; `...` stands for axes that broadcast. RuntimeError where
    equation and operands do not fit. Source: PyTorch, torch.einsum.
    """
    if not operands:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one "
                         "operand and its "
                         "subscripts list")
    if isinstance(equation, Tensor):
        equation, operands = _from_sublists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        return einsum(equation, *operands[0])
    for i, t in enumerate(operands):
        if not isinstance(t, Tensor):
            raise TypeError(f"einsum(): argument 'operands' (position {i + 2}) must be Tensor, not {type_name(t)}")
    if len(operands) == 1 and not overrides.state.modes and not operands[0]._overrides:
        view = _moved(str(equation), operands[0])
        if view is not None:
            return view
    return call("_einsum", equation, list(operands))


def _moved(equation, operand):
    """The operand as a view of itself, where the equation does no more than move axes or take diagonals; None elsewhere."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    left, right = left.replace(_ELLIPSIS, "."), right.replace(_ELLIPSIS, ".")
    if not re.fullmatch(r"[a-zA-Z]*\.?[a-zA-Z]*", left) or not re.fullmatch(r"[a-zA-Z]*\.?[a-zA-Z]*", right):
        return None
    letters = len(left) - left.count(".")
    dots = operand.dim() - letters
    if not arrow:
        right = ("." if "." in left else "") + "".join(sorted(left.replace(".", "")))
    if dots < 0 or (dots and "." not in left) or set(left) != set(right) or len(set(right)) != len(right):
        return None
    names = [(n, k) for n in left for k in range(dots if n == "." else 1)]
    for name in [n for n in dict.fromkeys(names) if names.count(n) > 1]:
        while names.count(name) > 1:
            i = names.index(name)
            j = names.index(name, i + 1)
            if operand.size(i) != operand.size(j):
                return None
            operand = operand.diagonal(0, i, j)
            names = [n for k, n in enumerate(names) if k not in (i, j)] + [name]
    return operand.permute([names.index((n, k)) for n in right for k in range(dots if n == "." else 1)])


def _from_sublists(parts):
    def letters(sublist):
        out = ""
        for s in sublist:
            if s is Ellipsis:
                out += _ELLIPSIS
            elif 0 <= s < 26:
                out += chr(ord("A") + s)
            elif 26 <= s < 52:
                out += chr(ord("a") + s - 26)
            else:
                raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        return out

    equation = ",".join(letters(s) for s in parts[1::2][: len(parts) // 2])
    if len(parts) % 2 == 1:
        equation += "->" + letters(parts[-1])
        return equation, parts[:-1:2]
    return equation, parts[::2]


def _names(text, where, offset):
    """The names of one term, which starts at `offset` of the equation: letters, and `...` as one name."""
    names, i = [], 0
    while i < len(text):
        c = text[i]
        if c == " ":
            i += 1
            continue
        if c == ".":
            output = where == "for output"
            if _ELLIPSIS in names:
                raise RuntimeError(f"einsum(): found '.' {where} " + (
                    "but an ellipsis (...) was already found" if output else "for which an ellipsis was already found"))
            if text[i:i + 3] != _ELLIPSIS:
                raise RuntimeError(f"einsum(): found '.' {where} that is not part of any ellipsis" + (" (...)" if output else ""))
            names.append(_ELLIPSIS)
            i += 3
            continue
        if not (c.isascii() and c.isalpha()):
            raise RuntimeError(f"einsum(): invalid subscript given at index {offset + i} in the equation string, subscripts "
                               "must be in "
                               "[a-zA-Z]")
        names.append(c)
        i += 1
    return names


@operator("_einsum(str equation, Tensor[] operands) -> Tensor", forms="function")
def _einsum(equation, operands):
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(terms) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    starts = [sum(len(t) + 1 for t in terms[:i]) for i in range(len(terms))]
    labels = [_names(t, f"for operand {i}", starts[i]) for i, t in enumerate(terms)]
    rank = 0
    for i, (names, v) in enumerate(zip(labels, operands)):
        plain_names = [n for n in names if n != _ELLIPSIS]
        if _ELLIPSIS in names:
            if len(plain_names) > v.ndim:
                raise RuntimeError(f"einsum(): the number of subscripts in the equation ({len(plain_names)}) is more "
                                   "than the number "
                                   f"of dimensions ({v.ndim}) for operand {i}")
            rank = max(rank, v.ndim - len(plain_names))
        elif len(plain_names) != v.ndim:
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({len(plain_names)}) does not "
                               "match the number "
                               f"of dimensions ({v.ndim}) for operand {i} and no ellipsis was given")

    def spelled(names, ndim):
        out = []
        for n in names:
            if n == _ELLIPSIS:
                count = ndim - len(names) + 1
                out += [("...", rank - count + k) for k in range(count)]
            else:
                out.append(n)
        return out

    full = [spelled(names, v.ndim) for names, v in zip(labels, operands)]
    dots = [("...", k) for k in range(rank)]
    if arrow:
        out = []
        for n in _names(right, "for output", len(left) + 2):
            if n == _ELLIPSIS:
                out += dots
            elif n in out:
                raise RuntimeError(f"einsum(): output subscript {n} appears more than once in the output")
            elif not any(n in names for names in full):
                raise RuntimeError(f"einsum(): output subscript {n} does not appear in the equation for any input "
                                   "operand")
            else:
                out.append(n)
    else:
        counts = {}
        for names in full:
            for n in names:
                if isinstance(n, str):
                    counts[n] = counts.get(n, 0) + 1
        out = dots + sorted(n for n, c in counts.items() if c == 1)
    seen = {}
    for i, (names, v) in enumerate(zip(full, operands)):
        for n, s in zip(names, v.shape):
            if seen.get(n, 1) != 1 and s not in (1, seen[n]):
                raise RuntimeError(f"einsum(): subscript {n if isinstance(n, str) else '...'} has size {s} for "
                                   f"operand {i} which "
                                   f"does not broadcast with previously seen size {seen[n]}")
            seen[n] = s if seen.get(n, 1) == 1 else seen[n]
    pairs = [_diagonals(v, names, i) for i, (v, names) in enumerate(zip(operands, full))]
    acc, names = pairs[0]
    for k in range(1, len(pairs)):
        other, other_names = pairs[k]
        later = set(out).union(*[set(n) for _, n in pairs[k + 1:]])
        keep = [n for n in dict.fromkeys(names + other_names) if n in later]
        if k == len(pairs) - 1:
            keep = [n for n in out if n in keep]
        if acc.dtype != other.dtype and _summed(acc, names, other, other_names, keep):
            raise RuntimeError(f"expected scalar type {dtype_of(acc).scalar_name} but found {dtype_of(other).scalar_name}")
        acc, names = contract(acc, names, other, other_names, keep), keep
    gone = tuple([i for i, n in enumerate(names) if n not in out])
    if gone:
        acc = prims.sum(acc, axes=gone, keepdims=False)
        names = [n for n in names if n in out]
    missing = [n for n in out if n not in names]
    if missing:
        acc = shaped(acc, (1,) * len(missing) + acc.shape)
        names = missing + names
    return permuted(acc, [names.index(n) for n in out])


def _summed(a, a_names, b, b_names, keep):
    """Whether the product of two operands is one of matrices: an axis longer than 1 is summed that both have."""
    return any(n not in keep and n in b_names and a.shape[i] != 1 and b.shape[b_names.index(n)] != 1 for i, n in enumerate(a_names))


def _diagonals(v, names, operand):
    """The operand with each repeated name reduced to the diagonal of its axes."""
    names = list(names)
    for n in list(dict.fromkeys(names)):
        while names.count(n) > 1:
            i = names.index(n)
            j = names.index(n, i + 1)
            if v.shape[i] != v.shape[j]:
                raise RuntimeError(f"einsum(): subscript {n} is repeated for operand {operand} but the sizes don't "
                                   "match, "
                                   f"{v.shape[j]} != {v.shape[i]}")
            v = diagonal_values(v, i, j)
            names = [n] + [m for k, m in enumerate(names) if k not in (i, j)]
    return v, names


def diagonal_values(v, i, j):
    """The diagonal over axes i and j, as the first axis of the result."""
    at = Value((v.shape[i],), np.dtype(np.int64), np.arange(v.shape[i]))
    rest = [k for k in range(v.ndim) if k not in (i, j)]
    return prims.index_get(permuted(v, [i, j] + rest), at, at, axes=(0, 1))


# ------------------------------------------------------------------------------------------------ tensordot, chain_matmul
@operator("_tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", forms="function out")
def _tensordot(self, other, dims_self, dims_other):
    da = [d % self.ndim if -self.ndim <= d < self.ndim else d for d in dims_self]
    db = [d % other.ndim if -other.ndim <= d < other.ndim else d for d in dims_other]
    for d, v in [(d, self) for d in da] + [(d, other) for d in db]:
        if not 0 <= d < v.ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-v.ndim}, {v.ndim - 1}], but got "
                             f"{d})")
    free_a = [i for i in range(self.ndim) if i not in da]
    free_b = [i for i in range(other.ndim) if i not in db]
    for i, j, ia, jb in zip(da, db, dims_self, dims_other):
        if self.shape[i] != other.shape[j] and 1 not in (self.shape[i], other.shape[j]):
            raise RuntimeError(f"contracted dimensions need to match, but first has size {self.shape[i]} in dim {ia} "
                               "and second "
                               f"has size {other.shape[j]} in dim {jb}")
    for i, j in zip(da, db):  # a contracted size of 1 broadcasts: the other one is summed first
        if self.shape[i] == 1 and other.shape[j] != 1:
            other = prims.sum(other, axes=(j,), keepdims=True)
        elif other.shape[j] == 1 and self.shape[i] != 1:
            self = prims.sum(self, axes=(i,), keepdims=True)
    rows = math.prod(self.shape[i] for i in free_a)
    inner = math.prod(self.shape[i] for i in da)
    columns = math.prod(other.shape[i] for i in free_b)
    if self.dtype != other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    _check_product(_Shape((rows, inner), self.dtype), _Shape((inner, columns), other.dtype))
    left = shaped(permuted(self, free_a + da), (rows, inner))
    right = shaped(permuted(other, db + free_b), (inner, columns))
    return shaped(prims.matmul(left, right), [self.shape[i] for i in free_a] + [other.shape[i] for i in free_b])


def tensordot(a, b, dims=2, out=None):
    """Contraction of two tensors over `dims` axes: a number (the last of `a`, the first of `b`) or two lists.

    RuntimeError where the sizes do not fit. Source: PyTorch, torch.tensordot.
    """
    if isinstance(dims, Tensor):
        if dims.dim() == 2 and dims.size(0) == 2:
            dims_a, dims_b = dims[0].tolist(), dims[1].tolist()
            return call("_tensordot", a, b, dims_a, dims_b, out=out)
        dims = int(dims.item())
    if isinstance(dims, (tuple, list)):
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    if len(dims_a) != len(dims_b):
        raise RuntimeError("both dimension lists should have same length")
    return call("_tensordot", a, b, dims_a, dims_b, out=out)


def chain_matmul(*matrices, out=None):
    """Product of matrices in the cheapest order. Source: PyTorch, torch.chain_matmul."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for t in matrices:
        if t.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {t.dim()}, expected 2 instead")
    warnings.warn("torch.chain_matmul is deprecated; torch.linalg.multi_dot does the same for a list of matrices.", stacklevel=2)
    if len(matrices) == 1:
        return matrices[0]
    return call("linalg.multi_dot", list(matrices), out=out)


for _function in (einsum, tensordot, chain_matmul):
    plain(_function)
