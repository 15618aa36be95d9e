"""Products of matrices. NumPy's BLAS takes transposed and strided operands as they are, and uses all processors; oneDNN computes in
one thread, which on two processors is as fast, and does not wait for a second thread when the machine is busy."""

import math
import os
from functools import lru_cache
from threading import Lock

import numpy as np

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import BIAS, SOURCE, TARGET, WEIGHTS, Description, Operation
from msadapter_hook.tape.kernel import Kernel

from .. import linear
from .layout import as_channels_last, as_channels_second, dense, spread_out
from .trust import Family

FLOATS = frozenset([np.dtype(np.float32), np.dtype(np.float64)])
_EACH = 1 << 18  # multiplications of one matrix of a stack from which on they are taken one by one
_HALVES = 1 << 23  # multiplications from which on the rows are halved between two processors
_TWO_THREADS = 9216  # elements of a matrix from which on OpenBLAS takes a second thread, which may be long in coming
_SMALL, _LARGE = 1 << 16, 1 << 24 if (os.cpu_count() or 1) > 2 else 1 << 62  # multiplications between which oneDNN is asked


@lru_cache(maxsize=64)
def ones(n, dtype):
    """A vector of ones: a product with it sums few rows or columns faster than np.sum does."""
    made = np.ones(n, dtype)
    made.flags.writeable = False
    return made


def column_sums(a):
    """The sum of the rows of a matrix."""
    if a.size < _TWO_THREADS:
        return ones(a.shape[0], a.dtype) @ a
    return np.add.reduce(a, 0) if a.shape[1] >= 64 else np.einsum("ij->j", a)


def row_sums(a):
    """The sum of each row of a matrix."""
    return a @ ones(a.shape[1], a.dtype) if a.size < _TWO_THREADS else np.einsum("ij->i", a)


class Product:
    """(n, k) times (k, m), each stored by rows or (`transposed`) by columns, and a bias of m numbers or none. `half` tells two that
    run side by side apart."""

    def __init__(self, n, k, m, transposed, bias, half=0):
        left = onednn.layout((n, k), (1, n) if transposed[0] else (k, 1))
        right = onednn.layout((k, m), (1, k) if transposed[1] else (m, 1))
        result, added = onednn.layout((n, m)), onednn.layout((1, m)) if bias else None
        description = Description("matmul", left, right, added, result)
        roles = [(SOURCE, left), (WEIGHTS, right), (TARGET, result)]
        self._operation = Operation(description, roles + ([(BIAS, added)] if bias else []))
        self._lock = Lock()

    def __call__(self, y, a, b, *bias):
        """Put the product into `y`."""
        with self._lock:
            self._operation(a, b, y, *bias)
        return y


def _check():
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape, np.float32) for shape in ((5, 7), (7, 6), 6))
    yield Product(5, 7, 6, (False, False), True)(np.empty((5, 6), np.float32), a, b, c), a @ b + c
    yield Product(7, 5, 7, (True, True), False)(np.empty((7, 7), np.float32), a, a), a.T @ a.reshape(7, 5).T


_operation = Family("matrix product", _check).operation(Product)


def _stored(a):
    """Whether a matrix is stored by columns; None where it is neither so nor by rows."""
    return False if a.flags.c_contiguous else True if a.flags.f_contiguous else None


def product(a, b, *bias, alone=True):
    """The product of two matrices, and a bias added to its rows. `alone`: no other runs beside it."""
    (n, k), m, a, b = a.shape, b.shape[1], spread_out(a), spread_out(b)
    if _SMALL < n * k * m < _LARGE and a.dtype == b.dtype == np.float32:
        transposed = _stored(a), _stored(b)
        if alone and n * k * m >= _HALVES and transposed[0] is False and transposed[1] is not None:
            parts = [slice(0, n // 2), slice(n // 2, n)]
        else:
            parts = [slice(0, n)]
        made = [_operation(p.stop - p.start, k, m, transposed, bool(bias), i) if None not in transposed else None
                for i, p in enumerate(parts)]
        if None not in made:
            y = np.empty((n, m), np.float32)
            if len(parts) == 1:
                return made[0](y, a, b, *bias)
            threads.side_by_side(*[lambda f=f, p=p: f(y[p], a[p], b, *bias) for f, p in zip(made, parts)])
            return y
    y = a @ b
    if bias:
        y += bias[0]
    return y


def _affine(keep, x, w, *bias):
    y = product(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), w.T, *[np.ascontiguousarray(b) for b in bias])
    return y.reshape(x.shape[:-1] + w.shape[:1]), ()


def _affine_back(kept, grads, needs, x, w, *bias):
    rows = math.prod(x.shape[:-1])
    g, flat = grads[0].reshape(rows, w.shape[0]), x.reshape(rows, w.shape[1])
    found = [None] * len(needs)

    def input_gradient():
        found[0] = product(g, w, alone=not needs[1]).reshape(x.shape)

    def weight_gradient():
        found[1] = product(g.T, flat, alone=not needs[0])

    if needs[0] and needs[1]:
        threads.side_by_side(input_gradient, weight_gradient, g.size * w.shape[1])
    elif needs[0]:
        input_gradient()
    elif needs[1]:
        weight_gradient()
    if bias and needs[2]:
        found[2] = column_sums(g)
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
