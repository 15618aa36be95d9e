"""Sizes, strides and offsets against NumPy's views and against the addresses themselves."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msadapter_hook.tensor import geometry as g

examples = settings(deadline=None, max_examples=80)

SIZES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
FULL = st.lists(st.integers(1, 4), max_size=4).map(tuple)


@st.composite
def windows(draw, sizes=FULL):
    """(size, stride, offset) of a view taken from a contiguous tensor by permuting, slicing and expanding."""
    size = draw(sizes)
    stride, offset = list(g.contiguous_stride(size)), 0
    order = draw(st.permutations(range(len(size))))
    size, stride = [size[d] for d in order], [stride[d] for d in order]
    for d in range(len(size)):
        kind = draw(st.sampled_from(["keep", "keep", "step", "start", "expand"]))
        if kind == "step" and size[d]:
            step = draw(st.integers(1, 3))
            size[d], stride[d] = (size[d] + step - 1) // step, stride[d] * step
        elif kind == "start" and size[d] > 1:
            first = draw(st.integers(0, size[d] - 1))
            size[d], offset = size[d] - first, offset + first * stride[d]
        elif kind == "expand" and size[d] == 1:
            size[d], stride[d] = draw(st.integers(1, 3)), 0
    return tuple(size), tuple(stride), offset


def addresses(size, stride, offset=0):
    return [offset + sum(i * s for i, s in zip(at, stride)) for at in itertools.product(*map(range, size))]


def shapes_of(count):
    """All sizes of up to four dimensions with that many elements, without needless ones."""
    found = {(count,)} if count != 1 else {(), (1,)}
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    for n in (2, 3):
        found |= {s for s in itertools.product(divisors, repeat=n) if math.prod(s) == count}
    return sorted(found)


@examples
@given(SIZES)
def test_contiguous_strides_are_numpys(size):
    stride = g.contiguous_stride(size)
    assert g.is_contiguous(size, stride)
    if 0 not in size:
        assert addresses(size, stride) == list(range(math.prod(size)))


@examples
@given(windows())
def test_contiguous_means_in_order(window):
    size, stride, _ = window
    assert g.is_contiguous(size, stride) == (addresses(size, stride) == list(range(math.prod(size))))


@examples
@given(windows())
def test_dense_means_no_gaps(window):
    size, stride, _ = window
    found = addresses(size, stride)
    if not g.overlaps(size, stride):
        assert len(set(found)) == len(found)
        assert g.is_dense(size, stride) == (sorted(found) == list(range(len(found))))
    else:
        assert len(set(found)) < len(found)


@examples
@given(windows())
def test_memory_order_gives_dense_strides_back(window):
    size, stride, _ = window
    if g.is_dense(size, stride) and not g.overlaps(size, stride):
        again = g.permuted_stride(size, g.memory_order(size, stride))
        assert addresses(size, again) == addresses(size, stride)


@examples
@given(windows(), st.data())
def test_a_view_is_given_where_numpy_gives_one(window, data):
    size, stride, offset = window
    memory = np.arange(1 + max(addresses(size, stride, offset)))
    seen = np.lib.stride_tricks.as_strided(memory[offset:], size, [s * memory.itemsize for s in stride])
    shape = data.draw(st.sampled_from(shapes_of(math.prod(size))))
    found = g.view_stride(size, stride, shape)
    if found is not None:
        assert [memory[a] for a in addresses(shape, found, offset)] == seen.reshape(shape).ravel().tolist()
        return
    mine = seen[...]
    with pytest.raises(AttributeError):
        mine.shape = shape


@examples
@given(st.lists(windows(), min_size=1, max_size=3))
def test_results_of_elementwise_operators_are_dense(operands):
    shapes = [size for size, _, _ in operands]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(RuntimeError, match="must match the size"):
            g.broadcast_shapes(*shapes)
        return
    assert g.broadcast_shapes(*shapes) == shape
    stride = g.elementwise_stride(shape, [(size, stride) for size, stride, _ in operands])
    assert g.is_dense(shape, stride) and not g.overlaps(shape, stride)
    if len(operands) == 1 and g.is_dense(*operands[0][:2]) and not g.overlaps(*operands[0][:2]):
        assert addresses(shape, stride) == addresses(*operands[0][:2])


@examples
@given(windows(), windows())
def test_overlap_of_windows(one, other):
    found = g.overlap_of(one, other)
    a, b = addresses(*one), addresses(*other)
    if found == "full":
        assert a == b or sorted(a) == sorted(b)
    elif found == "partial":
        assert set(a) & set(b)
    elif all(g.is_dense(size, stride) and not g.overlaps(size, stride) for size, stride, _ in (one, other)):
        assert not set(a) & set(b)


@examples
@given(FULL, st.data())
def test_one_size_is_inferred_as_numpy_infers_it(size, data):
    total = math.prod(size)
    shape = list(data.draw(st.sampled_from(shapes_of(total))))
    if shape:
        shape[data.draw(st.integers(0, len(shape) - 1))] = -1
    assert g.infer_size(shape, total) == np.empty(size).reshape(shape).shape


@examples
@given(SIZES, st.lists(st.integers(-1, 5), max_size=4))
def test_sizes_that_do_not_fit_are_refused_where_numpy_refuses(size, shape):
    total = math.prod(size)
    try:
        right = np.empty(size).reshape(shape).shape
    except ValueError:
        with pytest.raises(RuntimeError):
            g.infer_size(shape, total)
        return
    assert g.infer_size(shape, total) == right


@examples
@given(st.lists(st.integers(1, 4), min_size=4, max_size=5).map(tuple))
def test_channels_last_is_recognised(size):
    stride = g.channels_last_stride(size)
    assert g.is_channels_last(size, stride) and sorted(addresses(size, stride)) == list(range(math.prod(size)))
    moved = np.moveaxis(np.arange(math.prod(size)).reshape((size[0], *size[2:], size[1])), -1, 1)
    assert addresses(size, stride) == moved.ravel().tolist()


@examples
@given(st.lists(st.integers(1, 4), min_size=2, max_size=4).map(tuple))
def test_columns_are_the_rows_of_the_transposed(size):
    turned = np.arange(math.prod(size)).reshape((*size[:-2], size[-1], size[-2])).swapaxes(-1, -2)
    assert addresses(size, g.columns_stride(size)) == turned.ravel().tolist()


@examples
@given(st.integers(-6, 6), st.integers(0, 4))
def test_dimensions_count_from_both_ends(dim, ndim):
    n = max(ndim, 1)
    if -n <= dim < n:
        assert g.wrap_dim(dim, ndim) == dim % n
    else:
        with pytest.raises(IndexError, match="Dimension out of range"):
            g.wrap_dim(dim, ndim)


@examples
@given(st.permutations([0, 1, 2, -1]))
def test_dimensions_are_named_once(dims):
    assert g.wrap_dims(dims[:1], 4) == (dims[0] % 4,)
    if len({d % 3 for d in dims}) < len(dims):
        with pytest.raises(RuntimeError, match="appears multiple times"):
            g.wrap_dims(dims, 3)
