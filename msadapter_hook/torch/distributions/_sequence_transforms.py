# Transforms of parts along a dimension, and the probability integral transform.
# They are public as torch.distributions.transforms.CatTransform, StackTransform, CumulativeDistributionTransform.
from .. import cat as _cat
from .. import stack as _stack
from . import constraints
from .transforms import Transform
from .utils import _sum_rightmost


class CatTransform(Transform):
    """Transforms of stretches of given lengths along `dim`."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match tseq ({len(self.transforms)})")
        self.dim = dim

    @property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self):
        """Length along `dim`."""
        return sum(self.lengths)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, *values):
        for value in values:
            if not -value.dim() <= self.dim < value.dim():
                raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")
            if value.size(self.dim) != self.length:
                raise AssertionError(f"value size at dim {self.dim} must be {self.length}, got {value.size(self.dim)}")
        start = 0
        for trans, length in zip(self.transforms, self.lengths):
            yield (trans, *(value.narrow(self.dim, start, length) for value in values))
            start = start + length

    def _call(self, x):
        return _cat([trans(part) for trans, part in self._pieces(x)], dim=self.dim)

    def _inverse(self, y):
        return _cat([trans.inv(part) for trans, part in self._pieces(y)], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = []
        for trans, before, after in self._pieces(x, y):
            term = trans.log_abs_det_jacobian(before, after)
            if trans.event_dim < self.event_dim:
                term = _sum_rightmost(term, self.event_dim - trans.event_dim)
            terms.append(term)
        dim = self.dim
        if dim >= 0:
            dim = dim - x.dim()
        dim = dim + self.event_dim
        return _cat(terms, dim=dim) if dim < 0 else sum(terms)

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Transforms of single indices along `dim`."""

    def __init__(self, tseq, dim=0, cache_size=0):
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, *values):
        for value in values:
            if not -value.dim() <= self.dim < value.dim():
                raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")
            if value.size(self.dim) != len(self.transforms):
                raise AssertionError(
                    f"value size at dim {self.dim} must be {len(self.transforms)}, got {value.size(self.dim)}"
                )
        for i, trans in enumerate(self.transforms):
            yield (trans, *(value.select(self.dim, i) for value in values))

    def _call(self, x):
        return _stack([trans(part) for trans, part in self._slices(x)], dim=self.dim)

    def _inverse(self, y):
        return _stack([trans.inv(part) for trans, part in self._slices(y)], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = [trans.log_abs_det_jacobian(before, after) for trans, before, after in self._slices(x, y)]
        return _stack(terms, dim=self.dim)

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)


for _class in (CatTransform, StackTransform, CumulativeDistributionTransform):
    _class.__module__ = Transform.__module__
