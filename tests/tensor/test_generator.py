"""The generator and its streams against values recorded from PyTorch (tests/record/rng.py)."""

import copy
import json
import pathlib
import pickle
import zlib

import numpy as np
import pytest

from msadapter_hook.tensor import dtype as dt
from msadapter_hook.tensor import generator, samplers, streams
from msadapter_hook.tensor.generator import Generator

GOLDENS = json.loads((pathlib.Path(__file__).parents[1] / "goldens" / "rng.json").read_text())
# Double-precision logarithms and trigonometry come from other libraries: right to the last places only. So are values
# of narrower types where such a double happens to lie beside a rounding boundary, which has not been seen.
INEXACT = {"normal", "exponential", "cauchy", "log_normal", "standard_gamma", "sample_dirichlet"}


def ramp(n, period, scale, t, start=0):
    """start, start + 1, … times `scale` in periods: numbers that every type holds exactly."""
    return ((np.arange(n) % period + start) * scale).astype(t.numpy)


def draw(g, op, args, n, t):
    if op == "bernoulli_t":
        return streams.bernoulli_t(g, ramp(n, 65, 1 / 64, t))
    if op == "multinomial":
        return streams.multinomial(g, ramp(n, 13, 0.25, t, 1), **args)
    if op == "multinomial_rows":
        return streams.multinomial(g, ramp(n, 13, 0.25, t, 1).reshape(3, 4), **args)
    if op == "poisson":
        return samplers.poisson(g, ramp(n, 121, 0.5, t))
    if op == "standard_gamma":
        return samplers.standard_gamma(g, ramp(n, 64, 0.125, t, 1))
    if op == "sample_dirichlet":
        return samplers.sample_dirichlet(g, ramp(n, 64, 0.125, t, 1).reshape(-1, 4)).ravel()
    if op == "binomial":
        return samplers.binomial(g, ramp(n, 21, args["most"] / 20, t), ramp(n, 33, 1 / 32, t))
    if op in ("randperm", "bernoulli_p"):
        return getattr(streams, op)(g, n, **args)
    return getattr(streams, op)(g, n, dtype=t, **args)


@pytest.mark.parametrize("case", GOLDENS["streams"], ids=lambda c: f"{c[0]}-{c[3]}-{c[2]}-{c[4]}-{list(c[1].values())}")
def test_stream_is_pytorchs(case):
    op, args, n, name, seed, checksum, ends, after = case
    g = Generator().manual_seed(seed)
    streams.rand(g, 3)
    t = name and dt.DTYPES[name]
    out = np.ascontiguousarray(draw(g, op, args, n, t))
    assert g.draw() % 2**27 == after
    if t is not None and op in ("rand", "normal", "uniform", "random_", "exponential"):
        assert out.dtype == t.numpy
    flat = out.ravel()
    shown = np.concatenate([flat[:3], flat[-3:]])
    shown = shown.astype(complex if shown.dtype.kind == "c" else float if shown.dtype.kind in "fV" else shown.dtype)
    wide = name in ("float64", "complex128")
    got, want = shown.tolist(), [eval(v, {"nan": np.nan, "inf": np.inf}) for v in ends]
    if op in INEXACT and wide:
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)
    else:
        assert got == want
        assert zlib.crc32(out.tobytes()) == checksum


@pytest.mark.parametrize("case", GOLDENS["states"], ids=str)
def test_state_bytes_are_pytorchs(case):
    seed, uniforms, normals, checksum, following, initial = case
    g = Generator().manual_seed(seed)
    for _ in range(uniforms):
        streams.rand(g, 1)
    for _ in range(normals):
        streams.normal(g, 1)
    state = np.asarray(g.get_state())  # a tensor where those are there
    assert state.dtype == np.uint8 and state.shape == (5056,)
    assert zlib.crc32(state.tobytes()) == checksum
    assert streams.normal(g, 3).tolist() == following
    assert g.initial_seed() == initial
    assert streams.normal(Generator().set_state(state), 3).tolist() == following


def test_state_returns_to_where_it_was():
    g = Generator().manual_seed(3)
    streams.normal(g, 5)
    state, first = g.get_state(), streams.rand(g, 1000)
    assert (streams.rand(g.set_state(state), 1000) == first).all()


@pytest.mark.parametrize("copier", [Generator.clone_state, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_continue_alike_and_apart(copier, monkeypatch):
    import sys
    import types

    # pickled by the public name, which the served tree provides
    fake = types.ModuleType("torch._C")
    fake.Generator = Generator
    monkeypatch.setitem(sys.modules, "torch._C", fake)
    from msadapter_hook.tensor.device import device

    root = sys.modules.get("torch") or types.ModuleType("torch")
    monkeypatch.setattr(root, "device", device, raising=False)
    monkeypatch.setitem(sys.modules, "torch", root)
    g = Generator().manual_seed(9)
    streams.normal(g, 3)
    other = copier(g)
    a = streams.normal(g, 3).tolist()
    streams.rand(g, 3)
    assert streams.normal(other, 3).tolist() == a
    assert other.initial_seed() == 9


@pytest.mark.parametrize(
    ("seed", "error", "text"),
    [
        (2**64, ValueError, "Overflow when unpacking long long"),
        (-(2**63) - 1, ValueError, "Overflow when unpacking long long"),
        (1.5, RuntimeError, "manual_seed expected a long, but got float"),
        (True, RuntimeError, "manual_seed expected a long, but got bool"),
    ],
)
def test_bad_seed(seed, error, text):
    with pytest.raises(error, match=text):
        Generator().manual_seed(seed)


def test_bad_states():
    g = Generator()
    with pytest.raises(RuntimeError, match="Expected a CPUGeneratorImplState of size 5056 but found .* to be 3"):
        g.set_state(np.zeros(3, np.uint8))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        g.set_state(np.zeros(5056, np.uint8))
    with pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor"):
        g.set_state(np.zeros(5056))
    with pytest.raises(RuntimeError, match="does not use offset"):
        g.get_offset()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda g: streams.random_(g, 3, dt.float32, 5, 5), "'from' to be less than 'to', but got from=5 >= to=5"),
        (lambda g: streams.random_(g, 3, dt.int8, 0, 200), "to - 1 is out of bounds for signed char"),
        (lambda g: streams.randint(g, 3, -200, 20, dt.int8), "from is out of bounds for signed char"),
        (lambda g: streams.bernoulli_p(g, 3, 1.5), r"bernoulli_ expects p to be in \[0, 1\], but got p=1.5"),
        (lambda g: streams.bernoulli_t(g, np.array([1.5])), "Expected p_in >= 0 && p_in <= 1 to be true"),
        (lambda g: streams.exponential(g, 3, -1), "exponential_ expects lambda > 0.0, but found lambda=-1"),
        (lambda g: streams.exponential(g, 3, 1, dt.int64), "dtype must be a floating point but you specified Long"),
        (lambda g: streams.geometric(g, 3, 1), r"geometric_ expects p to be in \(0, 1\), but got p=1"),
        (lambda g: streams.cauchy(g, 3, 0, 0), "cauchy_ expects sigma > 0.0, but found sigma=0"),
        (lambda g: streams.log_normal(g, 3, 0, 0), "log_normal_ expects std > 0.0, but found std=0"),
        (lambda g: streams.uniform(g, 3, 2, 1), r"expects to return a \[from, to\) range, but found from=2 > to=1"),
        (lambda g: streams.uniform(g, 3, -1e38, 3e38), "found to=3e.38 and from=-1e.38 which result in"),
        (lambda g: streams.normal(g, 3, 0, -1), "normal expects std >= 0.0, but found std -1"),
        (lambda g: streams.normal(g, 3, dtype=dt.int64), "\"normal_kernel_cpu\" not implemented for 'Long'"),
        (lambda g: streams.multinomial(g, np.array([-1.0, 2]), 1), "contains either `inf`, `nan` or element < 0"),
        (lambda g: streams.multinomial(g, np.zeros(3), 1), "sum of probabilities <= 0"),
        (lambda g: streams.multinomial(g, np.ones(3), 4), "cannot sample n_sample > "),
        (lambda g: streams.multinomial(g, np.ones(3), 0), "cannot sample n_sample <= 0 samples"),
        (lambda g: streams.multinomial(g, np.ones(3, int), 1), "floating-point dtypes for input, got: Long"),
        (lambda g: samplers.poisson(g, np.array([-1.0])), "invalid Poisson rate"),
        (lambda g: streams.randperm(g, -1), r"negative dimension -1: \[-1\]"),
    ],
)
def test_errors_in_pytorchs_words(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(Generator())


def test_default_generator_has_pytorchs_first_seed():
    assert Generator().initial_seed() == 67280421310721
    assert isinstance(generator.default_generator, Generator)


def test_fork_is_seeded_by_one_draw():
    g, same = Generator().manual_seed(1), Generator().manual_seed(1)
    child = g.fork()
    assert child.initial_seed() == int(same.draws64(1)[0]) and g.draw() == same.draw()


def test_system_seeds_differ():
    g = Generator()
    first, second = g.seed(), g.seed()
    assert first != second and g.initial_seed() == second


def test_random_int64_is_random_of_one_element():
    a, b = Generator().manual_seed(4), Generator().manual_seed(4)
    assert streams.random_int64(a) == int(streams.random_(b, 1, dt.int64)[0])
