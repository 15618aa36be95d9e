# The generalized Pareto distribution.
import math

from .. import Size, full_like, inf, isclose, log, log1p, ones_like, rand, where, zeros_like
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Generalized Pareto with `loc`, `scale` and shape `concentration`
    (PyTorch, torch.distributions.GeneralizedPareto)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(GeneralizedPareto, batch_shape, _instance, ("loc", "scale", "concentration"))

    def _is_exponential(self):
        return isclose(self.concentration, zeros_like(self.concentration))

    def _safe_concentration(self):
        return where(self._is_exponential(), ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = self._z(value)
        safe = self._safe_concentration()
        general = 1 / safe + ones_like(safe)
        return -log(self.scale) - where(self._is_exponential(), y, general * log1p(safe * y))

    def _z(self, x):
        return (x - self.loc) / self.scale

    def log_survival_function(self, value):
        """log(1 - cdf)."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        safe = self._safe_concentration()
        return where(self._is_exponential(), -z, -log1p(safe * z) / safe)

    def log_cdf(self, value):
        """log of cdf."""
        return log1p(-self.log_survival_function(value).exp())

    def cdf(self, value):
        return self.log_cdf(value).exp()

    def icdf(self, value):
        safe = self._safe_concentration()
        logu = log1p(-value)
        general = (-safe * logu).expm1() / safe
        return self.loc + self.scale * where(self._is_exponential(), -logu, general)

    @property
    def mean(self):
        valid = self.concentration < 1
        safe = where(valid, self.concentration, zeros_like(self.concentration) + 0.5)
        return where(valid, self.loc + self.scale / (1 - safe), full_like(self.loc, inf))

    @property
    def variance(self):
        valid = self.concentration < 0.5
        safe = where(valid, self.concentration, zeros_like(self.concentration) + 0.25)
        value = self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe))
        return where(valid, value, full_like(self.loc, inf))

    def entropy(self):
        return log(self.scale) + self.concentration + 1

    @property
    def mode(self):
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        lower = self.loc
        upper = where(self.concentration < 0, lower - self.scale / self.concentration, full_like(lower, math.inf))
        return constraints.interval(lower, upper)
