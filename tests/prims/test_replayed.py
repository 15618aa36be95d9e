"""Layer norm and GELU in replay: by their host kernels where there is much to do, with the same bits plain and compiled."""

import numpy as np
import pytest

from msadapter_hook import backend
from msadapter_hook.prims import gelu, kernels, row_norm
from msadapter_hook.prims.kernels import replayed
from msadapter_hook.tape import Value, no_grad
from msadapter_hook.tape.primitive import PREFER_HOST

pytestmark = pytest.mark.skipif(PREFER_HOST or not backend.in_reach(), reason="replay of MindSpore's kernels, in this process's memory")
CASES = {"norm": (row_norm, {"eps": 1e-5}, (64, 256)), "few rows": (row_norm, {"eps": 1e-5}, (3, 8)),
         "gelu": (gelu, {"approximate": "none"}, (300, 500)), "few": (gelu, {"approximate": "none"}, (3, 5)),
         "tanh": (gelu, {"approximate": "tanh"}, (300, 500))}


def inputs_of(primitive, shape, seed=0):
    rng = np.random.default_rng(seed)
    rest = [(shape[1],)] * 2 if primitive is row_norm else []
    return [rng.standard_normal(s, np.float32) * 2 for s in (shape, *rest)], rng.standard_normal(shape, np.float32)


def exact(primitive, attributes, inputs, cotangent):
    """The result and the gradients in double precision."""
    grad, *values = [Value(a.shape, np.dtype(float), a.astype(float)) for a in (cotangent, *inputs)]
    with no_grad():
        out = primitive(*values, **attributes)
        found = primitive.vjp[0](grad, out, *values, **attributes) if primitive.vjp else primitive.joint_vjp(
            [grad], [out], (True,) * len(values), *values, **attributes)
    return out.numpy, [v.numpy for v in (found if isinstance(found, list) else [found])]


def differentiated(make, run, arrays, cotangent):
    tensors = tuple(map(backend.from_numpy, arrays))
    (value,), grads = make(run, tensors)(tensors, (backend.from_numpy(cotangent),))
    return [np.array(backend.as_numpy(t)) for t in (value, *grads)]


def plain(run, tensors):
    return backend.Gradient(lambda *given: (run(*given),), tuple(range(len(tensors))))


def compiled(run, tensors):
    return backend.compile_gradient(lambda *given: (run(*given),), tensors, tuple(range(len(tensors))))


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_exact_and_the_same_compiled(name):
    primitive, attributes, shape = CASES[name]
    arrays, cotangent = inputs_of(primitive, shape)
    value, grads = exact(primitive, attributes, arrays, cotangent)
    found = differentiated(plain, primitive.bound(**attributes), arrays, cotangent)
    for a, b in zip(found, (value, *grads)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6 * max(1, np.abs(b).max()))
    last_bits = 1e-6 if name == "tanh" else 0  # MindSpore's kernels, which its compiler puts together in another way
    for a, b in zip(found, differentiated(compiled, primitive.bound(**attributes), arrays, cotangent)):
        np.testing.assert_allclose(a, b, rtol=0, atol=last_bits)


@pytest.mark.parametrize("name", ["norm", "gelu"])
def test_what_is_no_number_stays_so(name):
    primitive, attributes, shape = CASES[name]
    arrays, cotangent = inputs_of(primitive, shape)
    arrays[0][1, 2] = np.nan
    if name == "norm":  # GELU of infinity is infinity or NaN in PyTorch too, as the processor's instructions have it
        arrays[0][5, 0] = np.inf
    value, grads = exact(primitive, attributes, arrays, cotangent)
    for a, b in zip(differentiated(plain, primitive.bound(**attributes), arrays, cotangent), (value, *grads)):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))


@pytest.mark.parametrize("name", ["norm", "gelu"])
@pytest.mark.parametrize("make", [plain, compiled])
def test_what_the_kernel_does_not_take_goes_by_numpy(name, make):
    primitive, attributes, shape = CASES[name]
    arrays, cotangent = inputs_of(primitive, shape)
    refusing = kernels.KERNELS[primitive].__class__(lambda keep, *given, **attributes: None, None)
    run = backend.in_memory(replayed.in_place(primitive, refusing, attributes))
    value, grads = exact(primitive, attributes, arrays, cotangent)
    for a, b in zip(differentiated(make, run, arrays, cotangent), (value, *grads)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * max(1, np.abs(b).max()))


@pytest.mark.parametrize("name", ["norm", "gelu"])
def test_mindspores_kernels_serve_where_the_library_cannot_be_used(name):
    primitive, attributes, shape = CASES[name]
    refusing = kernels.KERNELS[primitive].__class__(lambda keep, *given, **attributes: None, None)
    theirs = object()
    trial = next(trial for p, _, trial, _ in replayed._LARGE if p is primitive)
    assert replayed._chosen(primitive, lambda **attributes: theirs, refusing, 1, trial, {}, **attributes) is theirs
