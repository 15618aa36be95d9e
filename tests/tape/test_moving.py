"""What only moves elements is done by NumPy in plain replay: values, gradients, and memory that nobody shares by accident."""

import mindspore as ms
import numpy as np
import pytest
import torch

from msadapter_hook import backend
from msadapter_hook.backend.arrays import strided
from msadapter_hook.backend.moving import dense
from msadapter_hook.prims import concat, split, stack, transpose

P = ms.ops.operations
x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.complex64])
def test_views_are_read_in_place(dtype):
    tensor = backend.from_numpy(x.astype(dtype))
    view = P.Transpose()(P.Split(2, 2)(tensor)[1], (2, 0, 1))
    assert not view.is_contiguous()
    np.testing.assert_array_equal(backend.as_numpy(view), x[:, :, 2:].transpose(2, 0, 1).astype(dtype))
    if strided(view) is not None:
        assert np.shares_memory(strided(view), strided(tensor)) and strided(view).dtype == dtype
        copy = backend.as_numpy(view)
        assert copy.flags.owndata and copy.flags.c_contiguous


@pytest.mark.parametrize("tensor", [ms.Tensor([1.5], ms.bfloat16), ms.Tensor([True, False])], ids=["bfloat16", "bool"])
def test_what_numpy_cannot_read_in_place(tensor):
    assert strided(tensor) is None and dense(tensor) is tensor
    assert backend.as_numpy(tensor).shape == tensor.shape


def test_dense_copies_views_only_and_hands_the_cotangent_on():
    tensor = backend.from_numpy(x)
    assert dense(tensor) is tensor
    gradient = backend.Gradient(lambda t: (dense(P.Transpose()(t, (2, 0, 1))),), (0,))
    (value,), (grad,) = gradient((tensor,), (backend.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1))),))
    assert value.is_contiguous()
    np.testing.assert_array_equal(backend.as_numpy(value), x.transpose(2, 0, 1))
    np.testing.assert_array_equal(backend.as_numpy(grad), x)


CASES = {
    "transpose": (transpose, {"axes": (1, 2, 0)}, [x], lambda a: [a.transpose(1, 2, 0)]),
    "transpose of one row": (transpose, {"axes": (1, 0)}, [x[:1, 0]], lambda a: [a.T]),
    "concat": (concat, {"axis": 1}, [x, x[:, :1] + 30], lambda a, b: [np.concatenate([a, b], 1)]),
    "stack": (stack, {"axis": 2}, [x, x + 1], lambda a, b: [np.stack([a, b], 2)]),
    "split": (split, {"axis": 0, "sizes": (1, 1)}, [x], lambda a: np.split(a, 2, 0)),
    "split of the last axis": (split, {"axis": 2, "sizes": (2, 2)}, [x], lambda a: np.split(a, 2, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    primitive, attributes, inputs, expected = CASES[name]
    run = primitive.bound(**attributes)
    tensors = tuple([backend.from_numpy(a.copy()) for a in inputs])

    def function(*given):
        made = run(*given)
        return made if type(made) is tuple else (made,)

    wanted = expected(*inputs)
    cotangents = tuple([backend.from_numpy(np.ascontiguousarray(w) * 2) for w in wanted])
    values, grads = backend.Gradient(function, tuple(range(len(inputs))))(tensors, cotangents)
    for value, w in zip(values, wanted):
        assert value.is_contiguous() and not any(np.shares_memory(backend.as_numpy(value), strided(t)) for t in tensors)
        np.testing.assert_array_equal(backend.as_numpy(value), w)
    for grad, a in zip(grads, inputs):
        np.testing.assert_array_equal(backend.as_numpy(grad), 2 * a)


def test_one_part_of_a_split_is_differentiated():
    w = torch.arange(6.0).reshape(2, 3).requires_grad_()
    for _ in range(3):
        w.grad = None
        first, _, last = (w * 1).split(1, 1)
        (first * 2 + last * last).sum().backward()
    assert w.grad.tolist() == [[2, 0, 4], [2, 0, 10]]


def test_recurrent_layers_that_use_some_of_their_outputs():
    torch.manual_seed(0)
    lstm, x = torch.nn.LSTM(3, 4), torch.randn(5, 2, 3)
    for pick in (lambda out, h, c: out, lambda out, h, c: h, lambda out, h, c: c, lambda out, h, c: torch.cat([out[-1:], h, c], 2)):
        grads = []
        for _ in range(3):
            lstm.zero_grad()
            out, (h, c) = lstm(x)
            pick(out, h, c).square().sum().backward()
            grads.append(lstm.weight_hh_l0.grad.clone())
        assert grads[0].abs().sum() > 0 and torch.allclose(grads[0], grads[-1], rtol=1e-5, atol=1e-7)
