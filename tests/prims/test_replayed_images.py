"""Convolutions and batch norm in replay: by their host kernels on images in the order of their axes, the same bits plain and compiled."""

import numpy as np
import pytest

from msadapter_hook import backend
from msadapter_hook.prims import normalization
from msadapter_hook.prims.convolution import conv, conv_bias, conv_input
from msadapter_hook.prims.kernels import convolution, replayed
from msadapter_hook.tape import Value, no_grad
from msadapter_hook.tape.primitive import PREFER_HOST

pytestmark = pytest.mark.skipif(PREFER_HOST or not backend.in_reach(), reason="replay of MindSpore's kernels, in this process's memory")


def geometry(stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


CASES = {
    "plain": (conv, geometry(), [(8, 16, 20, 18), (24, 16, 3, 3)]),
    "stride and padding": (conv, geometry((2, 1), (1, 2), (1, 2)), [(5, 6, 21, 18), (16, 6, 3, 3)]),
    "groups": (conv, geometry(padding=(1, 1), groups=4), [(4, 8, 16, 16), (12, 2, 3, 3)]),
    "each channel alone": (conv, geometry(padding=(1, 1), groups=16), [(4, 16, 16, 16), (16, 1, 3, 3)]),
    "few channels, and a bias": (conv_bias, geometry(padding=(2, 2)), [(16, 1, 28, 28), (6, 1, 5, 5), (6,)]),
    "one image": (conv_bias, geometry((2, 2), (1, 1)), [(1, 16, 32, 32), (32, 16, 3, 3), (32,)]),
    "weights larger than images": (conv, geometry(), [(4, 64, 5, 5), (64, 64, 3, 3)]),
    "small": (conv, geometry(), [(1, 2, 4, 4), (3, 2, 2, 2)]),
    "transposed": (conv_input, {**geometry((2, 2), (1, 1)), "size": (32, 32)}, [(4, 24, 16, 16), (24, 16, 4, 4)]),
    "batch norm": (normalization.batch_norm, {"eps": 1e-5}, [(8, 16, 20, 18), (16,), (16,)]),
    "batch norm of rows": (normalization.batch_norm, {"eps": 1e-5}, [(512, 64), (64,), (64,)]),
    "batch norm of little": (normalization.batch_norm, {"eps": 1e-5}, [(4, 3, 5, 5), (3,), (3,)]),
}


def inputs_of(name):
    rng = np.random.default_rng(0)
    primitive, attributes, shapes = CASES[name]
    arrays = [rng.standard_normal(s, np.float32) for s in shapes]
    result, _ = exact(primitive, attributes, arrays, None)
    return primitive, attributes, arrays, rng.standard_normal(result.shape, np.float32)


def exact(primitive, attributes, arrays, cotangent):
    """The first result and the gradients in double precision."""
    values = [Value(a.shape, np.dtype(float), a.astype(float)) for a in arrays]
    with no_grad():
        outs = primitive(*values, **attributes)
        first = outs if isinstance(outs, Value) else outs[0]
        if cotangent is None:
            return first.numpy, None
        grad = Value(cotangent.shape, np.dtype(float), cotangent.astype(float))
        if primitive.vjp is None:
            found = primitive.joint_vjp([grad, None, None], outs, (True,) * len(values), *values, **attributes)
        else:
            found = [vjp(grad, outs, *values, **attributes) for vjp in primitive.vjp]
    return first.numpy, [v.numpy for v in found]


def differentiated(make, run, arrays, cotangent):
    tensors = tuple(map(backend.from_numpy, arrays))

    def first(*given):
        made = run(*given)
        return (made[0] if isinstance(made, tuple) else made,)

    (value,), grads = make(first, tensors, tuple(range(len(tensors))))(tensors, (backend.from_numpy(cotangent),))
    return [np.array(backend.as_numpy(t)) for t in (value, *grads)]


def plain(run, tensors, positions):
    return backend.Gradient(run, positions)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_exact_and_the_same_compiled(name):
    primitive, attributes, arrays, cotangent = inputs_of(name)
    value, grads = exact(primitive, attributes, arrays, cotangent)
    found = differentiated(plain, primitive.bound(**attributes), arrays, cotangent)
    for a, b in zip(found, (value, *grads), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * max(1, np.abs(b).max()))
    for a, b in zip(found, differentiated(backend.compile_gradient, primitive.bound(**attributes), arrays, cotangent), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("make", [plain, backend.compile_gradient])
def test_gradients_that_nobody_asked_for_are_not_computed(make, monkeypatch):
    primitive, attributes, arrays, cotangent = inputs_of("plain")
    asked, backward = [], convolution.Convolution.backward
    monkeypatch.setattr(convolution.Convolution, "backward",
                        lambda self, x, w, g, needs, *rest: asked.append(needs[:2]) or backward(self, x, w, g, needs, *rest))
    run = primitive.partial((0,), (False, True), **attributes)
    found = differentiated(make, run, arrays, cotangent)
    assert asked == [(False, True)]
    np.testing.assert_allclose(found[2], exact(primitive, attributes, arrays, cotangent)[1][1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("make", [plain, backend.compile_gradient])
def test_what_a_program_calls_back_twice_keeps_both(make):
    """Two calls of one function, whose gradients are asked for in the other order, and one that the loss does not depend on in value."""
    primitive, attributes, arrays, cotangent = inputs_of("plain")
    run = primitive.bound(**attributes)
    add = backend.primitive("Add")
    (x, w), tensors = arrays, tuple(map(backend.from_numpy, arrays))
    g = backend.from_numpy(cotangent)
    (value,), (dx, dw) = make(lambda a, b: (add(run(a, b), run(a, add(b, b))),), tensors, (0, 1))(tensors, (g,))
    _, grads = exact(primitive, attributes, [x, 3 * w], cotangent)  # linear: three times the weights in all
    np.testing.assert_allclose(backend.as_numpy(dx), grads[0], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(backend.as_numpy(dw), 3 * grads[1], rtol=1e-3, atol=2e-3)


def test_mindspores_kernels_serve_where_the_library_cannot_be_used(monkeypatch):
    monkeypatch.setattr(convolution.FAMILY, "_trusted", False)
    theirs = object()
    assert replayed._convolution(conv, lambda **attributes: theirs, convolution.IN_ORDER[conv], (0,), None, **geometry()) is theirs
