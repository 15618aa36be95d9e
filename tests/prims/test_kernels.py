"""Host kernels give what their primitives give, and gradients that are those of the primitives' vjps, computed in float64."""

import os
import threading

import numpy as np
import pytest

from msadapter_hook import prims
from msadapter_hook.backend.onednn import RELU
from msadapter_hook.backend.threads import Later
from msadapter_hook.prims import kernels
from msadapter_hook.prims.attention import attention
from msadapter_hook.prims.convolution import conv_bias
from msadapter_hook.prims.kernels import convolution, derivatives
from msadapter_hook.prims.kernels.elementwise import evaluate
from msadapter_hook.prims.kernels.movement import add_rows
from msadapter_hook.prims.kernels.trust import FAMILIES, Family
from msadapter_hook.tape import Value, no_grad, value_of
from msadapter_hook.tape.kernel import quiet
from msadapter_hook.tape.value import Node
from msadapter_hook.tensor.leaf import Leaf


def numbers(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape, np.float32)


def channels_last(a):
    return np.ascontiguousarray(np.moveaxis(a, 1, -1)).transpose(0, a.ndim - 1, *range(1, a.ndim - 1))


@pytest.fixture(autouse=True)
def convolutions_of_any_size(monkeypatch):
    monkeypatch.setattr(convolution, "SMALL", 0)


WINDOW = {"kernel": (3, 2), "stride": (2, 2), "padding": (1, 0)}
PLAIN = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
GATES = (numbers(5, 3, 6), numbers(3, 4), numbers(3, 4), numbers(16, 6), numbers(16, 4), numbers(16))

CASES = {
    "relu": (prims.relu, [numbers(4, 5)], {}),
    "relu of images": (prims.relu, [channels_last(numbers(2, 3, 4, 5))], {}),
    "relu of a number": (prims.relu, [np.float32(2).reshape(())], {}),
    "sigmoid": (prims.sigmoid, [numbers(4, 5)], {}),
    "tanh": (prims.tanh, [numbers(4, 5)], {}),
    "gelu": (prims.gelu, [numbers(4, 5)], {"approximate": "none"}),
    "gelu by tanh": (prims.gelu, [numbers(4, 5)], {"approximate": "tanh"}),
    "gelu of images": (prims.gelu, [channels_last(numbers(2, 3, 4, 5))], {"approximate": "none"}),
    "gelu of a transposed matrix": (prims.gelu, [numbers(4, 5).T], {"approximate": "none"}),
    "silu": (prims.silu, [numbers(4, 5)], {}),
    "leaky relu": (prims.leaky_relu, [channels_last(numbers(8, 4, 30, 32))], {"slope": 0.2}),
    "relu of many": (prims.relu, [channels_last(numbers(8, 4, 30, 32))], {}),
    "sigmoid of many": (prims.sigmoid, [numbers(3, 30000)], {}),
    "gelu of many": (prims.gelu, [numbers(2, 140000)], {"approximate": "none"}),
    "mish": (prims.mish, [numbers(4, 5)], {}),
    "hardswish": (prims.hardswish, [numbers(3, 30000) * 3], {}),
    "clamp": (prims.clamp_range, [numbers(3, 30000)], {"low": -0.5, "high": 1}),
    "hardtanh": (prims.hardtanh, [channels_last(numbers(8, 4, 30, 32))], {"low": -0.5, "high": 1.0}),
    "bias of rows": (prims.bias_add, [numbers(4, 5), numbers(5)], {}),
    "bias of images": (prims.bias_add, [channels_last(numbers(2, 3, 4, 5)), numbers(3)], {}),
    "bias of volumes": (prims.bias_add, [numbers(2, 3, 4, 5, 6), numbers(3)], {}),
    "product of stacks, large": (prims.matmul, [numbers(2, 3, 64, 80), numbers(2, 3, 80, 64)], {}),
    "product of stacks, large and transposed": (prims.matmul, [numbers(3, 80, 64).swapaxes(1, 2), numbers(3, 64, 80)],
                                                {"transpose_b": True}),
    "transposed convolution": (prims.conv_input, [numbers(2, 4, 4, 5), numbers(4, 3, 3, 2)], {
        "size": (8, 6), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 1), "groups": 1}),
    "transposed convolution in groups": (prims.conv_input, [numbers(2, 4, 4, 5), numbers(4, 3, 3, 2)], {
        "size": (7, 6), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 1), "groups": 2}),
    "softmax": (prims.softmax, [numbers(2, 3, 7)], {"axis": 2}),
    "softmax of the middle": (prims.softmax, [numbers(2, 3, 7)], {"axis": 1}),
    "log_softmax": (prims.log_softmax, [numbers(4, 7)], {"axis": 1}),
    "log_softmax of many": (prims.log_softmax, [numbers(301, 400)], {"axis": 1}),
    "affine": (prims.affine_map, [numbers(2, 3, 4), numbers(5, 4), numbers(5)], {}),
    "affine, no bias": (prims.affine_map, [numbers(3, 4), numbers(5, 4)], {}),
    "affine, large": (prims.affine_map, [numbers(64, 80), numbers(48, 80), numbers(48)], {}),
    "affine, in halves": (prims.affine_map, [numbers(301, 200), numbers(150, 200), numbers(150)], {}),
    "affine, no rows": (prims.affine_map, [numbers(0, 4), numbers(5, 4), numbers(5)], {}),
    "affine, in halves of the columns": (prims.affine_map, [numbers(40, 300), numbers(801, 300), numbers(801)], {}),
    "reshape": (prims.reshape, [numbers(3, 4, 5).transpose(2, 0, 1)], {"shape": (6, 10)}),
    "transpose": (prims.transpose, [numbers(3, 4, 5)], {"axes": (2, 0, 1)}),
    "elements by index": (prims.take_along, [numbers(3, 4, 5), np.array([[[0, 4], [1, 1]], [[2, 3], [0, 0]]])], {"axis": 2}),
    "elements by index along the first axis": (prims.take_along, [channels_last(numbers(3, 4, 5)), np.array([[[1], [2]]])], {"axis": 0}),
    "elements added by index": (prims.add_along, [numbers(3, 4), np.array([[0, 2, 2], [1, 1, 1]]), numbers(3, 5)], {"axis": 1}),
    "filled where a mask holds": (prims.masked_fill, [numbers(3, 30000), numbers(3, 30000, seed=4) > 0, np.float32(3).reshape(())], {}),
    "product": (prims.matmul, [numbers(3, 4), numbers(4, 5)], {}),
    "product, large and transposed": (prims.matmul, [numbers(80, 64).T, numbers(48, 80)], {"transpose_b": True}),
    "product of stacks": (prims.matmul, [numbers(2, 3, 4), numbers(2, 5, 4)], {"transpose_b": True}),
    "attention": (attention, [numbers(2, 3, 5, 4), numbers(2, 3, 6, 4), numbers(2, 3, 6, 7)], {"scale": 0.5}),
    "attention, in halves": (attention, [*numbers(3, 3, 40, 17, 16), numbers(3, 1, 17, 17)], {"scale": 0.5}),
    "attention with a mask": (attention, [*numbers(3, 2, 3, 5, 4), numbers(3, 1, 5)], {"scale": 0.5}),
    "convolution": (prims.conv, [numbers(2, 3, 6, 5), numbers(4, 3, 3, 3)], PLAIN),
    "convolution in groups": (prims.conv, [channels_last(numbers(3, 4, 6, 5)), numbers(6, 2, 3, 2)],
                              {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}),
    "convolution by channel": (prims.conv, [numbers(2, 4, 6, 5), numbers(4, 1, 3, 3)], {**PLAIN, "groups": 4}),
    "convolution with a bias": (conv_bias, [numbers(2, 3, 6, 5), numbers(4, 3, 3, 3), numbers(4)], PLAIN),
    "convolution, large": (prims.conv, [numbers(5, 8, 20, 20), numbers(16, 8, 3, 3)], PLAIN),
    "convolution of volumes": (prims.conv, [numbers(2, 3, 4, 5, 6), numbers(4, 3, 2, 2, 2)],
                               {"stride": (1, 2, 1), "padding": (0, 1, 1), "dilation": (1, 1, 1), "groups": 1}),
    "max pooling": (prims.max_pool, [numbers(2, 3, 7, 8)], {**WINDOW, "dilation": (1, 1), "out": (4, 4)}),
    "max pooling of many": (prims.max_pool, [numbers(9, 5, 56, 60)], {
        "kernel": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "out": (28, 30)}),
    "max pooling, ceil": (prims.max_pool, [numbers(2, 3, 6, 7)], {**WINDOW, "dilation": (1, 1), "out": (4, 4)}),
    "average pooling": (prims.avg_pool, [numbers(2, 3, 7, 8)], {**WINDOW, "out": (4, 4), "count_padding": True, "divisor": None}),
    "average pooling, uncounted": (prims.avg_pool, [numbers(2, 3, 7, 8)],
                                   {**WINDOW, "out": (4, 4), "count_padding": False, "divisor": None}),
    "batch norm": (prims.batch_norm, [numbers(4, 3, 5, 6) * 2 + 3, numbers(3), numbers(3, seed=1)], {"eps": 1e-3}),
    "batch norm of rows": (prims.batch_norm, [numbers(9, 3), numbers(3), numbers(3, seed=1)], {"eps": 1e-3}),
    "batch norm of sequences": (prims.batch_norm, [numbers(4, 3, 5), numbers(3), numbers(3, seed=1)], {"eps": 1e-3}),
    "norm by given statistics": (prims.fixed_norm, [numbers(4, 3, 5, 6), *numbers(3, 3), np.float32([0.5, 1, 2])], {"eps": 1e-3}),
    "group norm": (prims.group_norm, [numbers(4, 6, 5, 6) * 2 + 3, numbers(6), numbers(6, seed=1)], {"groups": 3, "eps": 1e-3}),
    "group norm, in halves": (prims.group_norm, [channels_last(numbers(5, 8, 60, 60)) + 9, numbers(8), numbers(8, seed=1)],
                              {"groups": 2, "eps": 1e-3}),
    "repeated slices": (prims.axis_repeat, [numbers(3, 4, 5)], {"axis": 1, "times": 3}),
    "repeated slices of the last axis": (prims.axis_repeat, [numbers(3, 4, 5)], {"axis": 2, "times": 2}),
    "matrix along an axis": (prims.axis_map, [numbers(3, 4, 5), numbers(6, 4)], {"axis": 1}),
    "matrix along the last axis": (prims.axis_map, [numbers(3, 4, 5), numbers(6, 5)], {"axis": 2}),
    "layer norm": (prims.row_norm, [numbers(5, 8) * 2 + 3, numbers(8), numbers(8, seed=1)], {"eps": 1e-3}),
    "layer norm of batches": (prims.row_norm, [numbers(3, 5, 8) * 2 + 3, numbers(8), numbers(8, seed=1)], {"eps": 1e-3}),
    "cross entropy": (prims.sparse_cross_entropy, [numbers(6, 5), np.array([0, 4, 2, 2, 1, 3])], {}),
    "smooth L1": (prims.smooth_l1, [numbers(6, 5), numbers(6, 5, seed=1)], {"beta": 1.0}),
    "smooth L1, soon straight": (prims.smooth_l1, [numbers(6, 5), numbers(6, 5, seed=1)], {"beta": 0.3}),
    "lstm": (prims.lstm, list(GATES), {}),
    "lstm, in halves": (prims.lstm, [numbers(20, 9, 32), *numbers(2, 9, 64), numbers(256, 32) / 8, numbers(256, 64) / 8, numbers(256)], {}),
    "gru, in halves": (prims.gru, [numbers(20, 9, 32), numbers(9, 64), numbers(192, 32) / 8, numbers(192, 64) / 8, numbers(192),
                                   numbers(192, seed=1)], {}),
    "relu rnn": (prims.rnn, [GATES[0], GATES[1], numbers(4, 6), numbers(4, 4), numbers(4)], {"relu": True}),
    "gru": (prims.gru, [GATES[0], GATES[1], numbers(12, 6), numbers(12, 4), numbers(12), numbers(12, seed=1)], {}),
    "rnn": (prims.rnn, [GATES[0], GATES[1], numbers(4, 6), numbers(4, 4), numbers(4)], {"relu": False}),
}


for name in ("exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan sinh cosh atan softplus erf erfc "
             "absolute").split():
    CASES[name] = (getattr(prims, name), [np.abs(numbers(4, 5)) + 0.1], {})
CASES.update({
    "absolute of any sign": (prims.absolute, [channels_last(numbers(2, 3, 4, 5))], {}),
    "softplus, straight above a threshold": (prims.softplus_beta, [numbers(40, 50) * 3], {"beta": 1.5, "threshold": 2.0}),
    "softplus of many": (prims.softplus, [numbers(3, 90001)], {}),
    "square root of a transposed matrix": (prims.sqrt, [np.abs(numbers(4, 5)).T], {}),
    "quotient": (prims.div, [numbers(4, 5), np.abs(numbers(4, 5, seed=1)) + 0.5], {}),
    "quotient of a number": (prims.div, [np.float32(2).reshape(()), channels_last(np.abs(numbers(4, 3, 5, 6))) + 0.5], {}),
    **{f"power {exponent}": (prims.pow_number, [np.abs(numbers(4, 5)) + 0.1], {"exponent": exponent})
       for exponent in (1, 2, 3, 4, -1, 0.5, 2.5)},
})


def double(a):
    return a.astype(np.float64) if a.dtype == np.float32 else a


def exact(primitive, arrays, attributes):
    """The results in float64, and a function from cotangents to gradients by the primitive's vjp."""
    inputs = [value_of(double(a)).as_leaf(Leaf(None)) if a.dtype == np.float32 else value_of(a) for a in arrays]
    with no_grad():
        made = primitive(*[v.detach() for v in inputs], **attributes)
    made = (made,) if type(made) is Value else made
    node = Node(primitive, attributes, inputs, False)
    outputs = [Value(m.shape, m.dtype, m.numpy, node=node, index=i, requires_grad=True) for i, m in enumerate(made)]
    node.bind(outputs)

    def gradients(cotangents):
        needs = [v.requires_grad for v in inputs]
        with no_grad():
            found = primitive.cotangents(node, [None if c is None else value_of(double(c)) for c in cotangents], needs)
        return [None if f is None or not need else f.numpy for f, need in zip(found, needs)], outputs

    return [m.numpy for m in made], gradients


def settled(found):
    """The arrays, of those that are filled beside as well."""
    return [f.array if type(f) is Later else f for f in found]


def close(found, expected):
    assert found.shape == expected.shape and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=3e-5, atol=3e-6 * max(1, np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("case", CASES)
def test_kernel_gives_values_and_gradients_of_its_primitive(case):
    primitive, arrays, attributes = CASES[case]
    kernel = kernels.KERNELS[primitive]
    before = [a.copy() for a in arrays]
    with quiet():
        result, kept = kernel.forward(True, *arrays, **attributes)
    results = result if type(result) is tuple else (result,)
    expected, gradients = exact(primitive, arrays, attributes)
    for found, want in zip(results, expected):
        close(found, want)
    cotangents = [numbers(*r.shape, seed=7 + i) if i == 0 or primitive is not prims.batch_norm else None
                  for i, r in enumerate(results)]
    needs = [a.dtype == np.float32 for a in arrays]
    with quiet():
        found = settled(kernel.backward(kept, cotangents, needs, *arrays, **attributes))
        again = settled(kernel.backward(kept, cotangents, needs, *arrays, **attributes))  # the graph may be kept
    wanted, _ = gradients(cotangents)
    for f, a, w in zip(found, again, wanted):
        assert (f is None) == (w is None)
        if w is not None:
            close(f, w)
            assert np.array_equal(f, a)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before))


@pytest.mark.parametrize("needs", [(True, False, False), (False, True, False), (False, False, True)])
@pytest.mark.parametrize("case", ["affine", "convolution with a bias", "attention"])
def test_kernel_computes_the_gradients_asked_for(case, needs):
    primitive, arrays, attributes = CASES[case]
    kernel = kernels.KERNELS[primitive]
    result, kept = kernel.forward(True, *arrays, **attributes)
    g = numbers(*result.shape, seed=3)
    every = settled(kernel.backward(kept, [g], (True,) * 3, *arrays, **attributes))
    found = settled(kernel.backward(kept, [g], needs, *arrays, **attributes))
    for f, e, need in zip(found, every, needs):
        if need:
            np.testing.assert_allclose(f, e, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", ["affine", "affine, no bias", "convolution with a bias", "attention", "attention with a mask",
                                  "norm by given statistics"])
def test_primitives_made_for_host_kernels_exist_in_mindspore_too(case):
    primitive, arrays, attributes = CASES[case]
    found = primitive.compute([value_of(a) for a in arrays], attributes, True)[0].asnumpy()
    np.testing.assert_allclose(found, primitive.host(*arrays, **attributes), rtol=1e-4, atol=1e-4)


def test_small_convolutions_are_left_to_numpy(monkeypatch):
    monkeypatch.undo()
    _, arrays, attributes = CASES["convolution with a bias"]
    assert kernels.KERNELS[conv_bias].forward(True, *arrays, **attributes) is None


@pytest.mark.parametrize("primitive", [prims.sigmoid, prims.tanh, prims.relu, prims.silu])
def test_single_numbers_keep_their_dtype(primitive):
    x = np.float32(0.5).reshape(())
    made = kernels.KERNELS[primitive].forward(True, x)
    if made is not None:
        found, = kernels.KERNELS[primitive].backward(made[1], [x], (True,), x)
        assert found.dtype == np.float32 and found.shape == ()


def test_gradients_of_functions_are_those_of_the_primitives_to_the_last_bit():
    """At zeros, NaN and infinities as well, and over several blocks."""
    x = numbers(3, 90001)
    x[0, :8] = 0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 2
    g = numbers(3, 90001, seed=1)
    g[1, :3] = np.nan, np.inf, -np.inf
    for primitive in derivatives.KERNELS:
        attributes = {prims.pow_number: [{"exponent": e} for e in (2, 3, -1, 1, 0.5)],
                      prims.softplus_beta: [{"beta": 1, "threshold": 20}, {"beta": 0.5, "threshold": 1}]}.get(primitive, [{}])
        inputs = [x, numbers(3, 90001, seed=2)] if primitive is prims.div else [x]
        for one in attributes:
            with quiet(), no_grad():
                _, kept = kernels.KERNELS[primitive].forward(True, *inputs, **one)
                found = kernels.KERNELS[primitive].backward(kept, [g], [True] * len(inputs), *inputs, **one)
                node = Node(primitive, one, [value_of(a) for a in inputs], False)
                output = primitive(*node.inputs, **one)
                node.bind([output])
                wanted = [f.numpy for f in primitive.cotangents(node, [value_of(g)], [True] * len(inputs))]
            for f, w in zip(found, wanted):
                if primitive in (prims.softplus, prims.softplus_beta, prims.pow_number):  # NumPy's own powers 1 and 2 are not exact
                    np.testing.assert_allclose(f, w, rtol=5e-7)
                else:
                    assert np.array_equal(f, w, equal_nan=True), (primitive, one)


@pytest.mark.parametrize("exponent", [3, 4, 5, -1, -2, -3, 63, 64, 0.5, 2.5, float("inf")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_negative_numbers(exponent, dtype):
    x = np.array([-2, -0.5, 0, -0.0, 1, 3, np.inf, -np.inf, np.nan, -1], dtype)
    with quiet():
        found, wanted = prims.pow_number.host(x, exponent=exponent), np.power(x.astype(np.float64), float(exponent)).astype(dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert found.dtype == dtype and np.array_equal(np.signbit(found[:-2]), np.signbit(wanted[:-2]))


def test_relu_passes_no_gradient_where_it_cut_whatever_that_is():
    x = np.array([-1, 2, 0, -3], np.float32)
    _, kept = kernels.KERNELS[prims.relu].forward(True, x)
    found, = kernels.KERNELS[prims.relu].backward(kept, [np.array([np.nan, 5, np.inf, 7], np.float32)], (True,), x)
    assert found.tolist() == [0, 5, 0, 0]


@pytest.mark.parametrize("primitive, attributes", [(prims.relu, {}), (prims.clamp_range, {"low": 0, "high": 1}),
                                                   (prims.hardtanh, {"low": 0, "high": 1}), (prims.gelu, {"approximate": "none"}),
                                                   (prims.leaky_relu, {"slope": 0.1}), (prims.sigmoid, {}), (prims.silu, {}),
                                                   (prims.mish, {}), (prims.hardswish, {})])
def test_activations_of_nan_and_infinities_are_those_of_numpy(primitive, attributes):
    x = numbers(20000)
    x[:4] = np.nan, np.inf, -np.nan, -0.0
    made = kernels.KERNELS[primitive].forward(False, x, **attributes)
    with quiet():
        expected = primitive.host(x, **attributes)
    found = expected if made is None else made[0]
    if primitive is prims.gelu:  # of an infinity NaN on some processors, as PyTorch's own, which is the same kernel
        x, found, expected = x[2:], found[2:], expected[2:]
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("shape, axes", [((300, 5, 40), (0, 1)), ((5000, 3), (0,)), ((100, 7), (0,)), ((64, 2, 3), (0,)), ((65, 4), (-2,))])
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_of_many_rows_keep_their_digits(shape, axes, keepdims):
    a, axes = np.random.default_rng(0).random(shape, np.float32), tuple(i % len(shape) for i in axes)
    for primitive, function in (prims.sum, np.sum), (prims.mean, np.mean):
        found, _ = kernels.KERNELS[primitive].forward(False, a, axes=axes, keepdims=keepdims)
        wanted = function(a.astype(np.float64), axis=axes, keepdims=keepdims)
        assert found.shape == wanted.shape and found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=4e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex64, np.int32])
def test_where_takes_bits_as_they_are(dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2, 150, 200)) * 100).astype(dtype)
    if np.dtype(dtype).kind in "fc":
        a[0, :3] = np.nan, np.inf, -0.0
    mask = rng.random(a.shape) < 0.5
    for one, other in (a, b), (a, b[3, 4]), (a[3, 4], b), (a.T.copy().T, b):
        found, _ = kernels.KERNELS[prims.where].forward(False, mask, np.asarray(one), np.asarray(other))
        expected = np.where(mask, one, other)
        assert found.dtype == dtype and found.tobytes() == expected.tobytes()
    assert kernels.KERNELS[prims.where].forward(False, mask, a[:1], b) is None


def test_every_number_of_a_block_that_is_not_a_power_of_two_is_computed():
    for count in (1, 2, 3, 255, 65535, 65537, 196609, 262145):
        x = numbers(count)
        found = evaluate(False, RELU, 0, 0, x)
        assert np.array_equal(found, np.maximum(x, 0)), count


def test_softmax_of_nan_is_nan_in_its_row_only():
    x = numbers(3, 5)
    x[1, 2] = np.nan
    with quiet():
        y, _ = kernels.KERNELS[prims.softmax].forward(False, x, axis=1)
    assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_max_pooling_leaves_numbers_that_are_none_to_numpy(odd):
    x = numbers(1, 1, 4, 4)
    x[0, 0, 1, 1] = odd
    attributes = {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "out": (2, 2)}
    assert kernels.KERNELS[prims.max_pool].forward(True, x, **attributes) is None


def test_ties_of_max_pooling_go_to_the_first():
    x = np.zeros((1, 1, 2, 4), np.float32)
    kernel = kernels.KERNELS[prims.max_pool]
    attributes = {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "out": (1, 2)}
    _, kept = kernel.forward(True, x, **attributes)
    found, = kernel.backward(kept, [np.ones((1, 1, 1, 2), np.float32)], (True,), x, **attributes)
    assert found.tolist() == [[[[1, 0, 1, 0], [0, 0, 0, 0]]]]


@pytest.mark.parametrize("vocabulary, count", [(7, 20), (3, 200), (2, 5000), (3000, 4000), (30000, 1)])
def test_rows_add_up_where_an_index_comes_again(vocabulary, count):
    rng = np.random.default_rng(0)
    index, rows = rng.integers(0, vocabulary, count), rng.standard_normal((count, 3), np.float32)
    total = np.ones((vocabulary, 3), np.float32)
    expected = np.ones((vocabulary, 3))
    np.add.at(expected, index, rows)
    add_rows(total, index, rows)
    np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-5)


def test_rows_that_come_once_and_in_order():
    total = np.ones((6, 3), np.float32)
    add_rows(total, np.array([0, 2, 5]), np.arange(9, dtype=np.float32).reshape(3, 3))
    assert total.tolist() == [[1, 2, 3], [1, 1, 1], [4, 5, 6], [1, 1, 1], [1, 1, 1], [7, 8, 9]]


@pytest.mark.parametrize("vocabulary, count", [(7, 20), (300, 400)])
def test_an_infinite_row_stays_where_it_is_added(vocabulary, count):
    index, rows = np.arange(count) % vocabulary, np.ones((count, 300), np.float32)
    rows[3] = np.inf
    total = np.zeros((vocabulary, 300), np.float32)
    add_rows(total, index, rows)
    assert np.isinf(total[3]).all() and np.isfinite(np.delete(total, 3, 0)).all()


@pytest.mark.parametrize("axis, shape", [(0, (4,)), (1, (4,)), (1, (2, 2)), (2, ()), (-1, (4,))])
def test_rows_are_added_by_index_along_any_axis(axis, shape):
    axis %= 3
    index = np.array([1, -1, 1, 0])[:max(1, int(np.prod(shape)))].reshape(shape)
    a = numbers(3, 4, 5)
    source = numbers(*a.shape[:axis], *shape, *a.shape[axis + 1:])
    found, _ = kernels.KERNELS[prims.index_add].forward(False, a, index, source, axis=axis)
    np.testing.assert_allclose(found, prims.index_add.host(a, index, source, axis=axis), rtol=1e-6)
    if shape:
        assert kernels.KERNELS[prims.index_add].forward(False, a, index + 5, source, axis=axis) is None


def test_windows_add_up_in_one_array():
    into = kernels.KERNELS[prims.strided_slice].into
    first = into(None, np.ones((2, 2), np.float32), (2, 4), np.dtype(np.float32), start=(0, 0), stop=(2, 2), step=(1, 1))
    second = into(first, np.ones((2, 3), np.float32), (2, 4), np.dtype(np.float32), start=(0, 1), stop=(2, 4), step=(1, 1))
    assert second is first and first.tolist() == [[1, 2, 1, 1]] * 2


def test_every_family_of_onednn_is_trusted_here():
    assert [f.reason for f in FAMILIES if not f.trusted] == []
    assert kernels.status().startswith("3.")


def test_family_that_differs_from_numpy_is_left_alone(monkeypatch):
    monkeypatch.setattr("msadapter_hook.prims.kernels.trust.FAMILIES", [])

    def check():
        yield np.float32([1, 2.1]), np.float32([1, 2])

    family = Family("sums", check)
    assert family.operation(lambda n: n)(3) is None
    assert family.reason.startswith("sums: off by 4.8e-02") or family.reason.startswith("sums: off by 5.0e-02")


def test_family_whose_check_was_interrupted_is_not_trusted(monkeypatch):
    monkeypatch.setattr("msadapter_hook.prims.kernels.trust.FAMILIES", [])
    family = Family("sums", lambda: 1 // 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            family.trusted  # noqa: B018


def test_other_threads_wait_until_a_family_is_checked(monkeypatch):
    monkeypatch.setattr("msadapter_hook.prims.kernels.trust.FAMILIES", [])
    begun, go_on = threading.Event(), threading.Event()

    def check():
        assert family.trusted  # in this thread
        begun.set()
        go_on.wait()
        yield np.float32([2]), np.float32([1])

    family, found = Family("sums", check), []
    first, second = [threading.Thread(target=lambda: found.append(family.trusted)) for _ in range(2)]
    first.start()
    begun.wait()
    second.start()
    second.join(0.1)
    assert found == []
    go_on.set()
    first.join()
    second.join()
    assert found == [False, False]


def test_one_thread_is_all_that_is_used_where_one_is_asked_for(monkeypatch):
    import threading

    from msadapter_hook.backend import threads

    monkeypatch.setitem(threads._threads, "number", 1)
    seen = []
    threads.side_by_side(lambda: seen.append(threading.get_ident()), lambda: seen.append(threading.get_ident()))
    assert seen == [threading.get_ident()] * 2


def test_an_error_in_the_helper_thread_is_raised(monkeypatch):
    from msadapter_hook.backend import threads

    monkeypatch.setitem(threads._threads, "number", 2)
    done = []
    for _ in range(2):  # the helper goes on after an error
        with pytest.raises(ZeroDivisionError):
            threads.side_by_side(lambda: done.append(1), lambda: 1 // 0)
    threads.side_by_side(lambda: done.append(1), lambda: done.append(2))
    assert sorted(done) == [1, 1, 1, 2]


@pytest.fixture
def two_threads(monkeypatch):
    from msadapter_hook.backend import threads

    monkeypatch.setitem(threads._threads, "number", 2)
    return threads


def test_a_job_that_the_helper_has_not_begun_is_done_by_who_needs_it(two_threads):
    import threading

    busy, free, done = threading.Event(), threading.Event(), []
    array = np.zeros(2)

    def occupy():
        busy.set()
        free.wait(10)

    occupied = two_threads.put_off([occupy], np.zeros(1))
    assert busy.wait(10)
    try:
        later = two_threads.put_off([lambda: array.__setitem__(0, 1), lambda: array.__setitem__(1, 2)], array)
        assert (later.shape, later.dtype) == ((2,), np.float64)
        two_threads.side_by_side(lambda: done.append(1), lambda: done.append(threading.get_ident()))
        assert done == [1, threading.get_ident()]
        assert later.array.tolist() == [1, 2] and later.array is array
    finally:
        free.set()
    assert occupied.array.tolist() == [0]


def test_an_error_in_what_was_put_off_is_raised_where_it_is_needed(two_threads):
    later = two_threads.put_off([lambda: 1 // 0], np.zeros(2))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            later.array  # noqa: B018


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be placed here")
def test_the_helper_keeps_off_the_processor_of_its_caller(two_threads, monkeypatch):
    helper = two_threads._Helper()
    placed = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda thread: {0, 1, 2})
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, where: placed.append((thread, where)))
    for here in (1, 1, 2):
        helper._place = lambda here=here: here
        helper.post(int, helper.urgent).finish()
    assert placed == [(helper._thread.native_id, {0, 2}), (helper._thread.native_id, {0, 1})]
    monkeypatch.setattr(os, "sched_getaffinity", lambda thread: {0})
    helper._place = lambda: 0
    helper.post(int, helper.urgent).finish()  # one processor only: it is shared
    assert len(placed) == 2


def test_a_helper_that_may_not_be_placed_works_all_the_same(two_threads, monkeypatch):
    def refuse(thread, where):
        raise PermissionError("not allowed")

    helper, done = two_threads._Helper(), []
    monkeypatch.setattr(os, "sched_getaffinity", lambda thread: {0, 1}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", refuse, raising=False)
    helper._place = lambda: 0
    for i in range(2):
        helper.post(lambda i=i: done.append(i), helper.urgent).finish()
    assert done == [0, 1]


def test_little_work_is_not_put_off(two_threads):
    array = np.zeros(1)
    assert two_threads.put_off([lambda: array.fill(3)], array, multiplications=10) is array and array[0] == 3


def test_no_more_is_put_off_than_a_few_jobs(two_threads):
    import threading

    busy, free, order = threading.Event(), threading.Event(), []

    def occupy():
        busy.set()
        free.wait(10)

    occupied = two_threads.put_off([occupy], np.zeros(1))
    assert busy.wait(10)
    try:
        waiting = [two_threads.put_off([lambda i=i: order.append(i)], np.zeros(1)) for i in range(20)]
        assert order == list(range(12))  # the oldest by who puts off more
    finally:
        free.set()
    for later in [occupied, *waiting]:
        later.array  # noqa: B018
    assert sorted(order) == list(range(20))
