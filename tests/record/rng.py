"""Record what real PyTorch's CPU generator draws: `python tests/record/rng.py` with an interpreter that has torch.
Each case: a seed, an operation with its arguments, a checksum of all bytes, the ends of the values, the next draw."""

import json
import pathlib
import warnings
import zlib

import numpy as np
import torch

warnings.simplefilter("ignore")
OUT = pathlib.Path(__file__).parents[1] / "goldens" / "rng.json"
FLOATS = ("float32", "float64", "float16", "bfloat16")
WEIGHTS = [0.1, 0.2, 0.3, 0.4]


def ramp(n, period, scale, start=0):
    """start, start + 1, … times `scale` in periods: numbers that every type holds exactly."""
    return (torch.arange(n) % period + start).double() * scale


def cases():
    """(operation, arguments, n, dtype, torch call)."""
    empty = lambda n, d: torch.empty(n, dtype=d)  # noqa: E731
    for d in (*FLOATS, "complex64", "complex128", "complex32"):
        for n in (0, 1, 5, 15, 16, 17, 40, 1000, 20011):
            yield "rand", {}, n, d, lambda n, t: torch.rand(n, dtype=t)
            yield "normal", {}, n, d, lambda n, t: torch.randn(n, dtype=t)
        for n in (1, 40, 5003):
            yield "normal", {"mean": 3.0, "std": 0.3}, n, d, lambda n, t: empty(n, t).normal_(3.0, 0.3)
            yield "normal", {"scattered": True}, n, d, lambda n, t: torch.empty(2 * n, dtype=t)[::2].normal_()
            yield "uniform", {"low": -0.3, "high": 1.7}, n, d, lambda n, t: empty(n, t).uniform_(-0.3, 1.7)
            yield "uniform", {"low": 100.1, "high": 100.7}, n, d, lambda n, t: empty(n, t).uniform_(100.1, 100.7)
    for d in FLOATS:
        for n in (1, 5003):
            yield "exponential", {"lambd": 2.0}, n, d, lambda n, t: empty(n, t).exponential_(2.0)
            yield "cauchy", {"median": 1.0, "sigma": 2.0}, n, d, lambda n, t: empty(n, t).cauchy_(1.0, 2.0)
            yield "log_normal", {"mean": 0.1, "std": 0.5}, n, d, lambda n, t: empty(n, t).log_normal_(0.1, 0.5)
    for d in (*FLOATS, "int64", "int32", "int8", "uint8"):
        yield "geometric", {"p": 0.01}, 999, d, lambda n, t: empty(n, t).geometric_(0.01)
    for d in (*FLOATS, "int64", "int32", "int16", "int8", "uint8", "bool"):
        for n in (1, 20, 9001):
            yield "random_", {}, n, d, lambda n, t: empty(n, t).random_()
        yield "random_", {"low": 1}, 999, d, lambda n, t: empty(n, t).random_(1, None)
    yield "random_", {"high": 100}, 50, "float32", lambda n, t: empty(n, t).random_(100)
    yield "random_", {"low": -(2**63)}, 50, "int64", lambda n, t: empty(n, t).random_(-(2**63), None)
    ranges = [(0, 10), (-3, 4), (0, (1 << 28) - 1), (0, 1 << 28), (-5, 2**31), (0, 2**33), (-(2**62), 2**62)]
    for low, high in [*ranges, (-(2**63), 2**63 - 1)]:
        for n in (1, 30, 9001):
            call = lambda n, t, a=low, b=high: torch.randint(a, b, (n,), dtype=t)  # noqa: E731
            yield "randint", {"low": low, "high": high}, n, "int64", call
    for d in ("int8", "uint8", "int32", "float32", "uint16", "uint32", "uint64", "bool"):
        yield "randint", {"low": 0, "high": 2}, 77, d, lambda n, t: torch.randint(0, 2, (n,), dtype=t)
    for n in (0, 1, 2, 10, 500, 501, 70001):
        yield "randperm", {}, n, None, lambda n, t: torch.randperm(n)
    for n in (1, 40, 70001):
        for p in (0.0, 0.3, 0.5, 1.0):
            yield "bernoulli_p", {"p": p}, n, None, lambda n, t, p=p: torch.empty(n).bernoulli_(p).bool()
        for d in FLOATS:
            yield "bernoulli_t", {}, n, d, lambda n, t: torch.bernoulli(ramp(n, 65, 1 / 64).to(t)).bool()
    for d in ("float32", "float64"):
        for k, replacement in ((1, False), (3, False), (50, True), (1, True)):
            a = {"k": k, "replacement": replacement}
            call = lambda n, t, k=k, r=replacement: torch.multinomial(ramp(n, 13, 0.25, 1).to(t), k, r)  # noqa: E731
            yield "multinomial", a, 7, d, call
            yield "multinomial", a, 901, d, call
            weights = lambda n, t: ramp(n, 13, 0.25, 1).to(t).reshape(3, 4)  # noqa: E731
            call = lambda n, t, k=k, r=replacement, w=weights: torch.multinomial(w(n, t), k, r)  # noqa: E731
            yield "multinomial_rows", a, 12, d, call
    for d in FLOATS:
        yield "poisson", {}, 400, d, lambda n, t: torch.poisson(ramp(n, 121, 0.5).to(t))
        if d in ("float32", "float64"):
            yield "standard_gamma", {}, 400, d, lambda n, t: torch._standard_gamma(ramp(n, 64, 0.125, 1).to(t))
            rows = lambda n, t: ramp(n, 64, 0.125, 1).to(t).reshape(-1, 4)  # noqa: E731
            yield "sample_dirichlet", {}, 400, d, lambda n, t, r=rows: torch._sample_dirichlet(r(n, t)).flatten()
            for most in (20.0, 500.0):
                counts = lambda n, t, m=most: ramp(n, 21, m / 20).to(t)  # noqa: E731
                call = lambda n, t, c=counts: torch.binomial(c(n, t), ramp(n, 33, 1 / 32).to(t))  # noqa: E731
                yield "binomial", {"most": most}, 400, d, call


def as_numpy(t):
    """The bytes of a tensor in a type NumPy knows."""
    if t.dtype is torch.bfloat16:
        return t.view(torch.int16).numpy()
    if t.dtype is torch.complex32:
        return t.to(torch.complex64).numpy()
    return t.contiguous().numpy()


def ends(t):
    t = t.to(torch.complex128) if t.is_complex() else t.double() if t.is_floating_point() else t
    return [repr(v) for v in np.concatenate([t.flatten()[:3].numpy(), t.flatten()[-3:].numpy()]).tolist()]


def main():
    rows = []
    for op, args, n, d, call in cases():
        for seed in (0, 2**40 + 7):
            torch.manual_seed(seed)
            torch.rand(3)
            value = call(n, d and getattr(torch, d))
            after = torch.randint(0, 2**27, (1,)).item()
            data = np.ascontiguousarray(as_numpy(value))
            rows.append([op, args, n, d, seed, zlib.crc32(data.tobytes()), ends(value), after])
    states = []
    histories = [(77, 0, 0), (77, 1, 0), (-5, 3, 1), (2**64 - 1, 5, 2), (0, 623, 0), (0, 624, 0), (0, 625, 1)]
    for seed, uniforms, normals in histories:
        torch.manual_seed(seed)
        for _ in range(uniforms):
            torch.rand(1)
        for _ in range(normals):
            torch.randn(1)
        state = torch.get_rng_state().numpy()
        checksum = zlib.crc32(state.tobytes())
        states.append([seed, uniforms, normals, checksum, torch.randn(3).tolist(), torch.initial_seed()])
    text = ",\n".join(json.dumps(r) for r in rows)
    more = ",\n".join(json.dumps(r) for r in states)
    OUT.write_text(f'{{"torch": "{torch.__version__}",\n"streams": [\n{text}\n],\n"states": [\n{more}\n]}}\n')
    print(len(rows), "streams,", len(states), "states")


main()
