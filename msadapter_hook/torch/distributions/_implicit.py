# The derivative of a Dirichlet draw with respect to its concentrations, by differentiating the marginals' beta cdf.
import numpy as np
from scipy import special

from .. import from_numpy


def _beta_cdf_slope(x, alpha, beta):
    """d/dalpha of the regularised incomplete beta function, by a five point rule in float64."""
    h = 1e-3 * np.minimum(alpha, 1.0)

    def cdf(shift):
        return special.betainc(alpha + shift * h, beta, x)

    return (cdf(-2) - 8 * cdf(-1) + 8 * cdf(1) - cdf(2)) / (12 * h)


def dirichlet_grad(x, concentration, total):
    """-(dF/dalpha) / (pdf (1 - x)) for each entry, where F is the cdf of Beta(alpha, total - alpha) at x.

    Same shape and dtype as `x`. Source: PyTorch, the backward of torch._sample_dirichlet."""
    tiny = np.finfo(np.float64).tiny
    point, alpha, sums = (t.detach().double().numpy() for t in (x, concentration, total))
    point = np.clip(point, tiny, 1 - 1e-16)
    beta = sums - alpha
    # left of the mode the lower tail is accurate, right of it the upper one
    right = point > 0.5
    lower = _beta_cdf_slope(np.where(right, 0.5, point), alpha, beta)
    upper = -_upper_slope(np.where(right, 1 - point, 0.5), alpha, beta)
    slope = np.where(right, upper, lower)
    log_pdf = special.xlogy(alpha - 1, point) + special.xlog1py(beta - 1, -point) - special.betaln(alpha, beta)
    grad = -slope / (np.exp(log_pdf) * (1 - point))
    return from_numpy(np.ascontiguousarray(grad)).to(x.dtype)


def _upper_slope(y, alpha, beta):
    """d/dalpha of the upper tail, which is the lower tail of Beta(beta, alpha) at y = 1 - x."""
    h = 1e-3 * np.minimum(alpha, 1.0)

    def tail(shift):
        return special.betainc(beta, alpha + shift * h, y)

    return (tail(-2) - 8 * tail(-1) + 8 * tail(1) - tail(2)) / (12 * h)
