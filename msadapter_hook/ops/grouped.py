"""Products of matrices whose rows or columns fall into groups, each with a matrix of its own (mixtures of experts)."""

from msadapter_hook.tensor import dtypes

from .registry import composite
from .tables import call

_TYPES = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


@composite("grouped_mm(Tensor mat_a, Tensor mat_b, *, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor",
           namespace="nn.functional", forms="function", aliases=("_grouped_mm",))
def grouped_mm(mat_a, mat_b, offs=None, bias=None, out_dtype=None):
    """One product a group; `offs` (groups,) int32 tells where each group ends.

    (M, K) @ (G, K, N) → (M, N): rows by groups. (G, M, K) @ (K, N) → (M, N): columns by groups. (M, K) @ (K, N) → (G, M, N): the
    summed dimension by groups. (G, M, K) @ (G, K, N) → (G, M, N) without `offs`. What lies beyond the last group is zero (PyTorch
    leaves it open). RuntimeError where shapes, dtypes or offsets do not fit. Source: PyTorch, torch.nn.functional.grouped_mm.
    """
    for name, m in (("mat_a", mat_a), ("mat_b", mat_b)):
        if m._dtype not in _TYPES:
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {m._dtype.scalar_name}")
        if m.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if mat_a._dtype is not mat_b._dtype:
        raise RuntimeError(f"Expected mat_a and mat_b to be of one dtype, got {mat_a._dtype.scalar_name} and {mat_b._dtype.scalar_name}")
    if mat_a._size[-1] != mat_b._size[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype not in (None, mat_a._dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is None:
        if mat_a._size[0] != mat_b._size[0]:
            raise RuntimeError("batched dimension has to match")
        return call("bmm", mat_a, mat_b)
    if offs._dtype is not dtypes.int32:
        raise RuntimeError("Offsets have to be int32")
    batch = {m._size[0] for m in (mat_a, mat_b) if m.ndim == 3}
    if batch not in (set(), {offs.numel()}):
        raise RuntimeError("matrix batch sizes have to match")
    ends = offs.tolist()
    parts = list(enumerate(zip([0, *ends[:-1]], ends)))
    length = mat_a._size[-1] if mat_a.ndim == mat_b.ndim else mat_a._size[0] if mat_a.ndim == 2 else mat_b._size[1]
    if any(not 0 <= start <= end <= length for _, (start, end) in parts):
        raise RuntimeError(f"Offsets have to rise and to end within {length}, got {ends}")
    if mat_a.ndim == 2 and mat_b.ndim == 2:
        return call("stack", [mat_a[:, start:end] @ mat_b[start:end] for _, (start, end) in parts])
    if mat_a.ndim == 2:
        return _filled([mat_a[start:end] @ mat_b[g] for g, (start, end) in parts], 0, length)
    return _filled([mat_a[g] @ mat_b[:, start:end] for g, (start, end) in parts], 1, length)


def _filled(parts, dim, length):
    """The parts one after the other along `dim`, zeros up to `length`."""
    made = call("cat", parts, dim)
    left = length - made._size[dim]
    if left <= 0:
        return made
    size = [left if d == dim else n for d, n in enumerate(made._size)]
    return call("cat", [made, made.new_zeros(size)], dim)
