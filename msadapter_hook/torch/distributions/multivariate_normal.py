# The multivariate normal distribution.
import math

from .. import Size, broadcast_shapes, eye, flip, linalg, matmul, transpose
from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat, bvec):
    """Matrix times vector with broadcasting batch dimensions."""
    return matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL, bx):
    """|L^-1 x|^2 for lower triangular L, with broadcasting batch dimensions."""
    n = bx.size(-1)
    batch = broadcast_shapes(bL.shape[:-2], bx.shape[:-1])
    extra = len(batch) - (bL.dim() - 2)
    if extra > 0 and all(s == 1 or s == t for s, t in zip(bL.shape[:-2], batch[extra:])):
        # leading dimensions of x become right hand sides of one triangular solve
        x = bx.expand(batch + (n,)).reshape((-1,) + tuple(batch[extra:]) + (n,))
        order = list(range(1, x.dim())) + [0]
        L = bL.expand(tuple(batch[extra:]) + (n, n))
        solved = linalg.solve_triangular(L, x.permute(*order), upper=False)
        norms = solved.pow(2).sum(-2)
        return norms.permute(norms.dim() - 1, *range(norms.dim() - 1)).reshape(batch)
    L = bL.expand(tuple(batch) + (n, n))
    return linalg.solve_triangular(L, bx.expand(batch + (n,)).unsqueeze(-1), upper=False).pow(2).sum((-2, -1))


def _precision_to_scale_tril(P):
    """The Cholesky factor of the inverse of P, without inverting P."""
    Lf = linalg.cholesky(flip(P, (-2, -1)))
    L_inv = transpose(flip(Lf, (-2, -1)), -2, -1)
    identity = eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return linalg.solve_triangular(L_inv, identity, upper=False)


def _inverse_from_tril(L):
    """The inverse of L L^T."""
    identity = eye(L.shape[-1], dtype=L.dtype, device=L.device).expand(L.shape)
    half = linalg.solve_triangular(L, identity, upper=False)
    return matmul(half.mT, half)


class MultivariateNormal(Distribution):
    """Normal vectors, by covariance, precision or Cholesky factor
    (PyTorch, torch.distributions.MultivariateNormal)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            "covariance_matrix": covariance_matrix,
            "scale_tril": scale_tril,
            "precision_matrix": precision_matrix,
        }
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} {'matrix ' if name == 'scale_tril' else ''}must be at least two-dimensional, "
                f"with optional leading batch dimensions"
            )
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(tuple(batch_shape) + (-1, -1)))
        self.loc = loc.expand(tuple(batch_shape) + (-1,))
        super().__init__(Size(batch_shape), self.loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = Size(batch_shape)
        loc_shape = batch_shape + self.event_shape
        matrix_shape = loc_shape + self.event_shape
        new.loc = self.loc.expand(loc_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(matrix_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_matrix(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        return self._expand_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        return self._expand_matrix(matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))

    @lazy_property
    def precision_matrix(self):
        return self._expand_matrix(_inverse_from_tril(self._unbroadcasted_scale_tril))

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        diff = value - self.loc
        M = _batch_mahalanobis(self._unbroadcasted_scale_tril, diff)
        half_log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + M) - half_log_det

    def entropy(self):
        half_log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        H = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + half_log_det
        return H if len(self._batch_shape) == 0 else H.expand(self._batch_shape)
