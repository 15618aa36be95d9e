# Quasi-random numbers: Sobol' sequences. The direction numbers of S. Joe and F. Kuo come with SciPy.
from functools import lru_cache
from importlib import import_module

import numpy as np

torch = import_module("..", __name__)  # the root that this tree is served under

__all__ = ["SobolEngine"]

_MAXBIT, _MAXDIM = 30, 21201


@lru_cache(maxsize=8)
def _directions(dimension):
    """The direction numbers of all dimensions, (dimension, 30), int64."""
    from scipy.stats import qmc

    made = qmc.Sobol(dimension, scramble=False, bits=_MAXBIT)._sv.astype(np.int64)
    made.flags.writeable = False
    return made


def _random_bits(generator, *shape):
    return torch.randint(2, shape, device="cpu", generator=generator).numpy().astype(np.int64)


class SobolEngine:
    """A low-discrepancy sequence in the unit cube of `dimension` (1 to 21201) dimensions; with `scramble` under a random linear map
    and a random shift of the bits, drawn from `seed` or the global generator. ValueError for other dimensions. Source: PyTorch,
    torch.quasirandom.SobolEngine.
    """

    MAXBIT = _MAXBIT
    MAXDIM = _MAXDIM

    def __init__(self, dimension, scramble=False, seed=None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.sobolstate = torch.from_numpy(_directions(dimension).copy())
        self.shift = torch.zeros(dimension, dtype=torch.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self):
        """Put a random lower triangular matrix of bits with ones on the diagonal before the direction numbers of each dimension, and
        draw the shift."""
        generator = None
        if self.seed is not None:
            generator = torch.Generator()
            generator.manual_seed(self.seed)
        weights = 1 << np.arange(self.MAXBIT)
        self.shift = torch.from_numpy(_random_bits(generator, self.dimension, self.MAXBIT) @ weights)
        maps = np.tril(_random_bits(generator, self.dimension, self.MAXBIT, self.MAXBIT))
        at = np.arange(self.MAXBIT)
        maps[:, at, at] = 1
        old = (self.sobolstate.numpy()[:, None, :] >> at[::-1, None]) & 1  # (dimension, bit, number), the highest bit first
        new = (maps @ old) & 1
        self.sobolstate = torch.from_numpy((new << at[::-1, None]).sum(1))

    def draw(self, n=1, out=None, dtype=None):
        """The next `n` points, (n, dimension), of `dtype` (the default one); written to `out` where given. Source: PyTorch,
        SobolEngine.draw."""
        dtype = torch.get_default_dtype() if dtype is None else dtype
        after = n - 1 if self.num_generated == 0 else n
        points = (torch.from_numpy(self._advance(after, n - after)) / 2**self.MAXBIT).to(dtype)
        if self.num_generated == 0:
            points[:1] = self._first_point.to(dtype)
        self.num_generated += n
        if out is None:
            return points
        out.resize_(points.shape).copy_(points)
        return out

    def _advance(self, count, start):
        """`start` empty rows, then the next `count` states as integers; the last one becomes the state."""
        first = self.num_generated - (0 if start else 1)
        columns = [_lowest_zero(first + i) for i in range(count)]
        steps = self.sobolstate.numpy()[:, columns].T
        made = np.zeros((start + count, self.dimension), np.int64)
        made[start:] = np.bitwise_xor.accumulate(steps, axis=0) ^ self.quasi.numpy()
        if count:
            self.quasi = torch.from_numpy(made[-1].copy())
        return made

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points; ValueError where there would not be a power of two of them in all, without which they are not balanced.
        Source: PyTorch, SobolEngine.draw_base2."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. If you still "
                "want to do this, please use 'SobolEngine.draw()' instead.")
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Begin again. Source: PyTorch, SobolEngine.reset."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Pass over `n` points. Source: PyTorch, SobolEngine.fast_forward."""
        first = self.num_generated == 0
        count = n - 1 if first else n
        if count > 0:
            start = self.num_generated if first else self.num_generated - 1
            self.quasi = torch.from_numpy(self.quasi.numpy() ^ self._between(start, start + count))
        self.num_generated += n
        return self

    def _between(self, start, stop):
        """The XOR of the direction numbers of the steps start … stop - 1: each as often as its bit of the Gray code changes."""
        gray = (start ^ (start >> 1)) ^ (stop ^ (stop >> 1))
        used = [bit for bit in range(self.MAXBIT) if gray >> bit & 1]
        return np.bitwise_xor.reduce(self.sobolstate.numpy()[:, used], axis=1)

    def __repr__(self):
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _lowest_zero(n):
    """The place of the lowest bit of `n` that is zero."""
    return (~n & (n + 1)).bit_length() - 1
