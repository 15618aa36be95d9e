"""Products of matrices. NumPy's BLAS takes transposed and strided operands as they are, and uses all processors; oneDNN computes in
one thread, which on two processors is as fast, and does not wait for a second thread when the machine is busy."""

import math
import os
from functools import lru_cache, partial

import numpy as np

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import BIAS, SOURCE, TARGET, WEIGHTS, Description, Operation, Shared
from msadapter_hook.tape.kernel import Kernel

from .. import linear
from .layout import as_channels_last, as_channels_second, dense, spread_out
from .trust import Family

FLOATS = frozenset([np.dtype(np.float32), np.dtype(np.float64)])
_EACH = 1 << 18  # multiplications of one matrix of a stack from which on they are taken one by one
_HALVES = 1 << 23  # multiplications from which on the rows are halved between two processors
_HEAD_START = 1 << 19  # multiplications done until a helper begins
_LANES = 16
_FEW_ROWS = 128  # fewer are not halved where there are as many columns
_TWO_THREADS = 9216  # elements of a matrix from which on OpenBLAS takes a second thread, which may be long in coming
_SMALL, _LARGE = 1 << 16, 1 << 24 if (os.cpu_count() or 1) > 2 else 1 << 62  # multiplications between which oneDNN is asked


@lru_cache(maxsize=64)
def ones(n, dtype):
    """A vector of ones: a product with it sums few rows or columns faster than np.sum does."""
    made = np.ones(n, dtype)
    made.flags.writeable = False
    return made


def column_sums(a, out=None):
    """The sum of the rows of a matrix."""
    if a.size < _TWO_THREADS:
        return np.matmul(ones(a.shape[0], a.dtype), a, out=out)
    return np.add.reduce(a, 0, out=out) if a.shape[1] >= 64 else np.einsum("ij->j", a, out=out)


def row_sums(a):
    """The sum of each row of a matrix."""
    return a @ ones(a.shape[1], a.dtype) if a.size < _TWO_THREADS else np.einsum("ij->i", a)


class Product:
    """(n, k) times (k, m), and a bias of m numbers or none. `stored`: of both and the result, whether it lies by columns, and how far
    one column (or row) lies from the next."""

    def __init__(self, n, k, m, stored, bias):
        left, right, result = (onednn.layout(shape, (1, far) if columns else (far, 1)) for shape, (columns, far) in zip(
            ((n, k), (k, m), (n, m)), stored))
        added = onednn.layout((1, m)) if bias else None
        description = Description("matmul", left, right, added, result)
        roles = [(SOURCE, left), (WEIGHTS, right), (TARGET, result)]
        self._operation = Shared(partial(Operation, description, roles + ([(BIAS, added)] if bias else [])))

    def __call__(self, y, a, b, *bias):
        """Put the product into `y`."""
        self._operation(a, b, y, *bias)
        return y


def _stored(shape, strides):
    """Whether a matrix lies by columns, and how far from one to the next (or from row to row); None where its lines have gaps."""
    down, across = strides
    if across == 4 and down % 4 == 0 and down >= 4 * shape[1]:
        return False, down // 4
    if down == 4 and across % 4 == 0 and across >= 4 * shape[0]:
        return True, across // 4
    return None


def _check():
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape, np.float32) for shape in ((5, 7), (7, 6), 6))
    wide = np.empty((5, 9), np.float32)
    for left, right, y, bias in (a, b, wide[:, 2:8], (c,)), (a.T, a, np.empty((7, 7), np.float32), ()), (b[:5, :4].T, a, wide[:4, :7], ()):
        made = Product(*left.shape, right.shape[1], tuple(_stored(m.shape, m.strides) for m in (left, right, y)), bool(bias))
        yield made(y, left, right, *bias), left @ right + (bias[0] if bias else 0)


_operation = Family("matrix product", _check).operation(Product)


def _cut(length, each):
    """Where a product is cut in two along a side of `length` lines of `each` multiplications: the helper begins later."""
    first = length // 2 + _HEAD_START // each
    return min(first + -first % _LANES, length - 1)


@lru_cache(maxsize=512)
def _parts(left, right, bias, shared):
    """How a product of matrices, of which shapes and strides are given, is computed: (operation, rows, columns) of two parts, of
    the columns where they are many more than the rows, or of one. `shared`: the second is done by a helper. None: not by the library."""
    (n, k), m = left[0], right[0][1]
    if not _SMALL < n * k * m < _LARGE:
        return None
    stored = _stored(*left), _stored(*right), (False, m)
    if None in stored:
        return None
    rows, columns = [slice(0, n)], [slice(0, m)]
    if n * k * m >= _HALVES:
        if n < _FEW_ROWS <= m:
            at = _cut(m, n * k) if shared else m // 2
            columns = [slice(0, at), slice(at, m)]
        else:
            at = _cut(n, k * m) if shared else n // 2
            rows = [slice(0, at), slice(at, n)]
    parts = [(_operation(r.stop - r.start, k, c.stop - c.start, stored, bias), r, c) for r in rows for c in columns]
    return None if any(p[0] is None for p in parts) else parts


def _calls(y, a, b, bias=(), shared=True):
    """Calls that put a product, and a bias added to its rows, into y, which lies by rows: one or two."""
    parts = None
    if a.dtype == b.dtype == np.float32:
        parts = _parts((a.shape, a.strides), (b.shape, b.strides), bool(bias), shared)
    if parts is None:
        return [partial(_by_numpy, y, a, b, *bias)]
    return [partial(made, y[rows, columns], a[rows], b[:, columns], *[c[columns] for c in bias]) for made, rows, columns in parts]


def _by_numpy(y, a, b, *bias):
    np.matmul(a, b, out=y)
    if bias:
        y += bias[0]


def _result(a, b):
    return np.empty((a.shape[0], b.shape[1]), np.result_type(a, b))


def product(a, b, *bias):
    """The product of two matrices, and a bias added to its rows."""
    a, b = spread_out(a), spread_out(b)
    y = _result(a, b)
    threads.each(_calls(y, a, b, bias))
    return y


def _affine(keep, x, w, *bias):
    y = product(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), w.T, *[np.ascontiguousarray(b) for b in bias])
    return y.reshape(x.shape[:-1] + w.shape[:1]), ()


def _affine_back(kept, grads, needs, x, w, *bias):
    """The gradients of weights and bias are put off: what follows seldom needs them."""
    rows = math.prod(x.shape[:-1])
    g, flat = spread_out(grads[0].reshape(rows, w.shape[0])), spread_out(x.reshape(rows, w.shape[1]))
    found = [product(g, w).reshape(x.shape) if needs[0] else None] + [None] * (len(needs) - 1)
    much = g.size * w.shape[1]
    if needs[1]:
        made = _result(g.T, flat)
        found[1] = threads.put_off(_calls(made, g.T, flat, shared=False), made, much)
    if bias and needs[2]:
        made = np.empty(w.shape[0], g.dtype)
        found[2] = threads.put_off([partial(column_sums, g, made)], made, much)
    return found


def _matmul(keep, a, b, *, transpose_b=False):
    if a.ndim != b.ndim or a.shape[:-2] != b.shape[:-2]:
        return None  # gradients of batches that broadcast are summed
    return _times(a, b.swapaxes(-1, -2) if transpose_b else b), ()


def _times(a, b):
    if a.ndim == 2:
        return product(a, b)
    if a.dtype != np.float32 or a.shape[-2] * a.shape[-1] * b.shape[-1] < _EACH or 0 in a.shape:
        return np.matmul(a, b)
    rows, columns = a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])
    return np.stack([product(r, c) for r, c in zip(rows, columns)]).reshape(*a.shape[:-1], b.shape[-1])


def _matmul_back(kept, grads, needs, a, b, *, transpose_b=False):
    g, found = spread_out(grads[0]), [None, None]
    if needs[0]:
        found[0] = _times(g, b if transpose_b else b.swapaxes(-1, -2))
    if needs[1]:
        found[1] = _times(g.swapaxes(-1, -2), a) if transpose_b else _times(a.swapaxes(-1, -2), g)
    return found


def _bias_add(keep, a, b):
    if a.ndim < 3 or a.flags.c_contiguous or dense(a) is not a:
        return a + b.reshape((1, -1) + (1,) * (a.ndim - 2)), ()
    images = as_channels_last(a)  # rows of whole lines: NumPy's inner loop is as long as they are
    lines = images.reshape(-1, images.shape[-2] * images.shape[-1])
    return as_channels_second((lines + np.tile(b, images.shape[-2])).reshape(images.shape)), ()


def _bias_add_back(kept, grads, needs, a, b):
    found = [grads[0] if needs[0] else None, None]
    if needs[1]:
        g = grads[0] if grads[0].ndim == 2 else as_channels_last(grads[0])
        found[1] = column_sums(g.reshape(-1, g.shape[-1]))
    return found


KERNELS = {
    linear.bias_add: Kernel(_bias_add, _bias_add_back, dtypes=FLOATS),
    linear.affine_map: Kernel(_affine, _affine_back, dtypes=FLOATS),
    linear.matmul: Kernel(_matmul, _matmul_back, dtypes=FLOATS),
}
