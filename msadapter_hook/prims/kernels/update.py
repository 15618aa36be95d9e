"""Updates of optimizers over flat float32 memory by oneDNN: each formula in one sweep.

In PyTorch's order of operations. Each function gives False, and does nothing, where the library cannot be used; the new arrays may
be the old ones.
"""

from functools import partial

import numpy as np

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import ADD, DIVIDE, MULTIPLY, SCALAR, SQUARE_ROOT, SUBTRACT, TARGET_TIMES, VECTOR

from .trust import Family

__all__ = ["adam", "momentum"]

_LARGEST, _SMALLEST = 1 << 18, 1 << 10  # numbers of an operation; its size is a multiple of the smallest, so that few are made
_HALVES = 1 << 18  # numbers from which on a second processor pays, where there is more to do than to read and write


class _Adam:
    """One block of `count` numbers."""

    def __init__(self, count, beta2):
        self._mean = onednn.chain(count, (SUBTRACT, VECTOR, VECTOR), (MULTIPLY, SCALAR), (ADD, VECTOR))
        self._square = onednn.chain(count, (MULTIPLY, VECTOR, VECTOR), (MULTIPLY, SCALAR), (TARGET_TIMES, beta2))
        self._size = onednn.chain(count, (MULTIPLY, VECTOR, SCALAR), (SQUARE_ROOT,), (DIVIDE, SCALAR), (ADD, SCALAR))
        self._step = onednn.chain(count, (DIVIDE, VECTOR, VECTOR), (MULTIPLY, SCALAR), (ADD, VECTOR))
        self._room = np.empty(count, np.float32)

    def __call__(self, p, g, m, v, new_p, new_m, new_v, w1, w2, root, eps, rate, kept):
        if kept != 1:
            p = np.multiply(p, kept, out=new_p)
        self._mean(g, m, w1, m, new_m)
        if new_v is not v:
            new_v[...] = v
        self._square(g, g, w2, new_v)
        self._size(new_v, _ONE, root, eps, self._room)
        self._step(new_m, self._room, rate, p, new_p)


class _Momentum:
    def __init__(self, count):
        self._product = onednn.chain(count, (MULTIPLY, VECTOR, SCALAR), (ADD, VECTOR))

    def __call__(self, p, g, m, new_p, new_m, mu, rate):
        self._product(m, mu, g, new_m)
        self._product(new_m, rate, p, new_p)


_ONE = np.ones(1, np.float32)


def _over(make, reads, writes, numbers, halved=False):
    """The blocks of a formula over flat arrays; large ones side by side if it is to be `halved`. What is too little for a block is
    computed in a larger one, so that a number does not depend on where it stands."""
    arrays = (*reads, *writes)
    if arrays[0].dtype != np.float32 or not _family.trusted:
        return False
    size, numbers = arrays[0].size, [np.array([x], np.float32) for x in numbers]
    whole = size - size % _SMALLEST
    middle = whole // 2 // _SMALLEST * _SMALLEST if halved and size >= _HALVES else 0
    halves = [_blocks(make, *ends) for ends in ([(0, middle), (middle, whole)] if middle else [(0, whole)])]
    padded = make(_SMALLEST) if whole < size else True
    if padded is None or any(block is None for blocks in halves for _, block in blocks):
        return False

    def sweep(blocks):
        for at, block in blocks:
            part = {id(a): a[at] for a in arrays}  # one array for what is read and written
            block(*[part[id(a)] for a in arrays], *numbers)

    threads.each([partial(sweep, blocks) for blocks in halves])
    if whole < size:
        room = np.zeros((len(arrays), _SMALLEST), np.float32)
        for a, to in zip(reads, room):
            to[:size - whole] = a[whole:]
        padded(*room, *numbers)
        for a, made in zip(writes, room[len(reads):]):
            a[whole:] = made[:size - whole]
    return True


def _blocks(make, start, end):
    """Slices and their operations: of the largest size, and of what remains."""
    cuts = [slice(at, min(at + _LARGEST, end)) for at in range(start, end, _LARGEST)]
    return [(cut, make(cut.stop - cut.start)) for cut in cuts]


def adam(p, g, m, v, new_p, new_m, new_v, *, beta1, beta2, root, eps, size, kept=1):
    """One step of Adam over flat arrays: `new_m` = m + (1 - beta1) (g - m), `new_v` = beta2 v + (1 - beta2) g², and `new_p` =
    kept p - size new_m / (sqrt(new_v) / root + eps). Source: PyTorch, torch.optim.Adam, torch.optim.AdamW."""
    return _over(lambda count: _adam_block(count, float(beta2)), (p, g, m, v), (new_p, new_m, new_v),
                 (1 - beta1, 1 - beta2, root, eps, -size, kept), halved=True)


def momentum(p, g, m, new_p, new_m, *, mu, lr):
    """One step of SGD over flat arrays: `new_m` = mu m + g, and `new_p` = p - lr new_m. Source: PyTorch, torch.optim.SGD."""
    return _over(_momentum_block, (p, g, m), (new_p, new_m), (mu, -lr))


def _check():
    p, g, m, v = np.random.RandomState(0).rand(4, _SMALLEST + 1).astype(np.float32)
    q, n = p.copy(), m.copy()
    wide = [a.astype(np.float64) for a in (p, g, m, v)]
    adam(p, g, m, v, p, m, v, beta1=0.9, beta2=0.99, root=0.5, eps=0.1, size=0.3)
    mean, square = wide[2] + (wide[1] - wide[2]) * 0.1, wide[3] * 0.99 + wide[1] ** 2 * 0.01
    yield from [(m, mean), (v, square), (p, wide[0] - 0.3 * mean / (np.sqrt(square) / 0.5 + 0.1))]
    momentum(q, g, n, q, n, mu=0.9, lr=0.3)
    yield from [(n, 0.9 * wide[2] + wide[1]), (q, wide[0] - 0.3 * (0.9 * wide[2] + wide[1]))]


_family = Family("updates", _check)
_adam_block, _momentum_block = (_family.operation(lambda *given, kind=kind: onednn.Shared(partial(kind, *given)))
                                for kind in (_Adam, _Momentum))
