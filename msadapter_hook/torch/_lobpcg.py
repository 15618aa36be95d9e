# torch.lobpcg: a few eigenpairs of a symmetric matrix, here from the whole decomposition.
from importlib import import_module

torch = import_module("..", __name__)  # the root that this tree is served under

_METHODS = (None, "basic", "ortho")


def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
           ortho_iparams=None, ortho_fparams=None, ortho_bparams=None):
    """(k largest or smallest eigenvalues, eigenvectors (…, m, k)) of a symmetric A (…, m, m), dense or sparse, or of the pencil
    (A, B) with a positive definite B.

    Exact up to rounding, from torch.linalg.eigh: what steers PyTorch's iteration (X, iK, niter, tol, the ortho parameters) has nothing
    to steer, but for the number of columns of X. ValueError where 3 times the number of pairs exceeds m. NotImplementedError with a
    tracker, which would see iterations. Source: PyTorch, torch.lobpcg.
    """
    if tracker is not None:
        raise NotImplementedError("torch.lobpcg: a tracker sees the iterations, but the pairs come from torch.linalg.eigh; leave it out")
    if method not in _METHODS:
        raise ValueError(f"unknown method: {method}")
    m = A.shape[-1]
    count = (1 if X is None else X.shape[-1]) if k is None else k
    width = count if n is None else n
    if m < 3 * width:
        raise ValueError(f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
                         f"eigenpairs (={width})")
    A, B = (t.to_dense() if t is not None and t.layout is not torch.strided else t for t in (A, B))
    A = (A + A.mH) / 2  # the gradient is that of a symmetric matrix
    if B is None:
        values, vectors = torch.linalg.eigh(A)
    else:
        lower = torch.linalg.cholesky(B)
        inner = torch.linalg.solve_triangular(lower, A, upper=False)
        inner = torch.linalg.solve_triangular(lower, inner.mH, upper=False)
        values, vectors = torch.linalg.eigh(inner)
        vectors = torch.linalg.solve_triangular(lower.mH, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :count], vectors[..., :count]
