"""torch.testing.assert_close: whether values agree within the tolerances of their dtypes."""

import collections.abc
import numbers

import numpy as np

from .. import (
    Tensor,
    as_tensor,
    bfloat16,
    complex32,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    promote_types,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
)

__all__ = ["assert_allclose", "assert_close"]

_TOLERANCES = {float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5), float64: (1e-7, 1e-7),
               complex32: (1e-3, 1e-5), complex64: (1.3e-6, 1e-5), complex128: (1e-7, 1e-7)}


_SPARSE = (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)


def _tolerances(a, b, rtol, atol):
    if (rtol is None) != (atol is None):
        raise ValueError(f"rtol and atol must both be specified or both be unspecified, but got no {'rtol' if rtol is None else 'atol'}")
    if rtol is not None:
        return rtol, atol
    pairs = [_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (a, b)]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True,
                 check_dtype=True, check_layout=True, check_stride=False, msg=None):
    """AssertionError unless `actual` and `expected` (tensors, numbers, or nested containers of them) agree. Source: PyTorch,
    torch.testing.assert_close."""
    try:
        _compare(actual, expected, (), rtol, atol, equal_nan, check_dtype, check_stride, check_device, check_layout)
    except AssertionError as error:
        text = str(error)
        raise AssertionError(msg(text) if callable(msg) else msg if msg is not None else text) from None


def _where(path):
    return "".join(f"[{p!r}]" for p in path)


def _compare(actual, expected, path, *options):
    if isinstance(actual, collections.abc.Mapping) and isinstance(expected, collections.abc.Mapping):
        if actual.keys() != expected.keys():
            raise AssertionError(f"The keys of the mappings do not match:\nMissing keys in the actual mapping: "
                                 f"{sorted(expected.keys() - actual.keys(), key=repr)}\nAdditional keys in the actual mapping: "
                                 f"{sorted(actual.keys() - expected.keys(), key=repr)}")
        for key in actual:
            _compare(actual[key], expected[key], (*path, key), *options)
        return
    if all(isinstance(x, collections.abc.Sequence) and not isinstance(x, str) for x in (actual, expected)):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for i, (a, e) in enumerate(zip(actual, expected)):
            _compare(a, e, (*path, i), *options)
        return
    if actual is None or expected is None:
        if actual is not expected:
            raise AssertionError(f"None mismatch: {actual} is not {expected}")
        return
    _leaf(actual, expected, path, *options)


def _sparse_parts(t):
    """(what a part is called, the part) of a sparse tensor; its values last."""
    if t.layout is sparse_coo:
        return [("indices", t._indices()), ("values", t._values())]
    names = ("crow_indices", "col_indices") if t.layout in (sparse_csr, sparse_bsr) else ("ccol_indices", "row_indices")
    return [*((name, getattr(t, name)()) for name in names), ("values", t.detach().values())]


def _sparse(a, e, where, rtol, atol, equal_nan):
    """Two sparse tensors of one layout, dtype and size: part by part, after sorting where one is coalesced and one is not."""
    kind = "sparse " + str(a.layout).rpartition("_")[2].upper()
    if a.layout is sparse_coo:
        if a.sparse_dim() != e.sparse_dim():
            raise AssertionError(f"The number of sparse dimensions in {kind} tensors does not match: {a.sparse_dim()} != "
                                 f"{e.sparse_dim()}{where}")
        if a.is_coalesced() != e.is_coalesced():
            a, e = a.coalesce(), e.coalesce()
    if a._nnz() != e._nnz():
        raise AssertionError(f"The number of specified values in {kind} tensors does not match: {a._nnz()} != {e._nnz()}{where}")
    for (name, one), (_, other) in zip(_sparse_parts(a), _sparse_parts(e)):
        exact = name != "values"
        try:
            _leaf(one, other, (), 0 if exact else rtol, 0 if exact else atol, equal_nan, not exact, False, False, True)
        except AssertionError as error:
            text = str(error)
            label = "S" + kind[1:] + " " + name
            text = text.replace("Tensor-likes", label, 1) if "Tensor-likes" in text else f"{label}: {text}"
            raise AssertionError(text + where) from None


def _leaf(actual, expected, path, rtol, atol, equal_nan, check_dtype, check_stride, check_device, check_layout):
    scalars = all(isinstance(x, numbers.Number) and not isinstance(x, np.ndarray) for x in (actual, expected))
    try:
        a, e = (x if isinstance(x, Tensor) else as_tensor(x) for x in (actual, expected))
    except Exception:
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.") from None
    where = f"\n\nThe failure occurred for item {_where(path)}" if path else ""
    if a.shape != e.shape:
        raise AssertionError(f"The values for attribute 'shape' do not match: {a.shape} != {e.shape}.{where}")
    if check_device and a.device != e.device:
        raise AssertionError(f"The values for attribute 'device' do not match: {a.device} != {e.device}.{where}")
    if check_dtype and a.dtype != e.dtype and not scalars:
        raise AssertionError(f"The values for attribute 'dtype' do not match: {a.dtype} != {e.dtype}.{where}")
    if a.layout is not e.layout:
        if check_layout:
            raise AssertionError(f"The values for attribute 'layout' do not match: {a.layout} != {e.layout}.{where}")
        a, e = (t.to_dense() if t._compound else t for t in (a, e))
    if a.layout in _SPARSE:
        if a.dtype != e.dtype:
            both = promote_types(a.dtype, e.dtype)
            a, e = a.to(both), e.to(both)
        _sparse(a, e, where, rtol, atol, equal_nan)
        return
    if check_stride and a.stride() != e.stride():
        raise AssertionError(f"The values for attribute 'stride()' do not match: {a.stride()} != {e.stride()}.{where}")
    rtol, atol = _tolerances(a, e, rtol, atol)
    x, y = _wide(a), _wide(e)
    with np.errstate(all="ignore"):
        error = np.abs(x - y)
        close = (x == y) | (error <= atol + rtol * np.abs(y)) & np.isfinite(y)
        if equal_nan:
            close |= np.isnan(x) & np.isnan(y)
    if close.all():
        return
    kind = "Scalars" if scalars or a.dim() == 0 else "Tensor-likes"
    equal = "equal" if rtol == atol == 0 else "close"
    allowed = "" if equal == "equal" else " (up to {} allowed)"
    if a.dim() == 0:
        relative = error.item() / abs(y.item()) if y.item() != 0 else float("inf")
        if equal == "equal":
            raise AssertionError(f"{kind} are not equal!\n\nExpected {y.item()} but got {x.item()}.\nAbsolute difference: {error.item()}\n"
                                 f"Relative difference: {relative}{where}")
        raise AssertionError(f"{kind} are not close!\n\nExpected {y.item()} but got {x.item()}.\nAbsolute difference: {error.item()}"
                             f"{allowed.format(atol)}\nRelative difference: {relative}{allowed.format(rtol)}{where}")
    bad = int((~close).sum())
    masked = np.where(close, 0, error)
    at = np.unravel_index(int(np.argmax(np.where(np.isnan(masked), np.inf, masked))), x.shape)
    with np.errstate(all="ignore"):
        ratio = np.where(close, 0, error / np.abs(y))
    rel = np.unravel_index(int(np.argmax(np.where(np.isnan(ratio), np.inf, ratio))), x.shape)
    raise AssertionError(
        f"{kind} are not {equal}!\n\nMismatched elements: {bad} / {x.size} ({100 * bad / x.size:.1f}%)\n"
        f"Greatest absolute difference: {error[at]} at index {tuple(map(int, at))}{allowed.format(atol)}\n"
        f"Greatest relative difference: {ratio[rel]} at index {tuple(map(int, rel))}{allowed.format(rtol)}{where}")


def _wide(t):
    """The elements in a type in which differences are exact enough."""
    t = t.detach()
    if t.dtype.is_complex:
        return t.to(complex128).resolve_conj().numpy()
    if t.dtype.is_floating_point:
        return t.to(float64).numpy()
    array = t.numpy()
    return array.astype(np.float64) if array.dtype == np.uint64 else array.astype(np.int64)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The older form, which does not compare dtypes. Source: PyTorch, torch.testing.assert_allclose."""
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, check_device=True,
                 msg=msg or None)
