"""Statements of random programs: what each says in PyTorch and what it means to the model, and how programs are drawn."""

import random
from dataclasses import dataclass, replace

import numpy as np

from tests.property.model import Model, Skip, direction

PRELUDE = """\
import numpy as np
import torch


def weights(t):
    return ((torch.arange(t.numel()) * 3 % 7).to(t.dtype) * 0.25 - 0.6).reshape(t.shape)


def fails(statement):
    try:
        statement()
    except (RuntimeError, ValueError):
        return
    raise AssertionError("no error")
"""


@dataclass(frozen=True)
class Statement:
    """`kind`: a row of KINDS; `names`: the tensors it reads; `out`: the one it makes; `a`: its constants; `record`: grad mode."""

    kind: str
    names: tuple = ()
    out: str = ""
    a: tuple = ()
    record: bool = True

    def source(self, dtype):
        text = KINDS[self.kind].source(self, dtype)
        if self.record:
            return text
        return "with torch.no_grad():\n" + "\n".join("    " + line for line in text.split("\n"))

    def apply(self, model):
        KINDS[self.kind].apply(self, model)


class Kind:
    """One kind of statement. `source(statement, dtype)` and `apply(statement, model)`."""

    def __init__(self, template, apply):
        self.template, self._apply = template, apply

    def source(self, s, dtype):
        if callable(self.template):
            return self.template(s, dtype)
        return self.template.format(*s.names, o=s.out, a=s.a, dtype=dtype)

    def apply(self, s, model):
        self._apply(s, model)


def _softmax(x, d):
    e = np.exp(x - x.real.max(axis=d, keepdims=True))
    return e / e.sum(axis=d, keepdims=True)


def _changed(x, change):
    out = np.array(x)
    change(out)
    return out


def _put(x, index, values):
    def change(out):
        out[index] = values

    values = np.asarray(values)
    if np.iscomplexobj(values) and not np.iscomplexobj(x):
        x = x.astype(complex)
    return _changed(x, change)


def _add_at(x, d, index, u, alpha=1):
    out = np.moveaxis(np.array(x, dtype=np.result_type(x, u)), d, 0)
    np.add.at(out, list(index), alpha * np.moveaxis(u, d, 0))
    return np.moveaxis(out, 0, d)


def _along(x, d, index, u, add=False):
    out = np.array(x, dtype=np.result_type(x, u))
    places = list(np.indices(np.shape(index)))
    places[d] = np.array(index)
    if add:
        np.add.at(out, tuple(places), u[tuple(slice(0, n) for n in np.shape(index))])
    else:
        out[tuple(places)] = u[tuple(slice(0, n) for n in np.shape(index))]
    return out


def _slices(spec):
    """An index from constants: (start, stop, step) is a slice, a number itself."""
    return tuple(slice(*p) if isinstance(p, tuple) else p for p in spec)


def index_text(spec):
    return ", ".join(f"{p[0]}:{p[1]}:{p[2]}" if isinstance(p, tuple) else str(p) for p in spec)


#: out of place: expression, function of the arrays and the constants, and which constants ("" none; see `constants`)
COMPUTE = {
    "sin": ("{0}.sin()", np.sin, ""),
    "cos": ("torch.cos({0})", np.cos, ""),
    "tanh": ("{0}.tanh()", np.tanh, ""),
    "sigmoid": ("torch.sigmoid({0})", lambda x: 1 / (1 + np.exp(-x)), ""),
    "relu": ("torch.relu({0})", lambda x: np.where(x.real > 0, x, 0), ""),
    "abs": ("{0}.abs()", lambda x: x * np.sign(x.real), ""),
    "square": ("{0} ** 2", lambda x: x * x, ""),
    "exp": ("({0} * 0.25).exp()", lambda x: np.exp(x * 0.25), ""),
    "root": ("({0} * {0} + 1).sqrt()", lambda x: np.sqrt(x * x + 1), ""),
    "scaled": ("{0} * 0.5", lambda x: x * 0.5, ""),
    "shifted": ("1.5 - {0}", lambda x: 1.5 - x, ""),
    "neg": ("-{0}", lambda x: -x, ""),
    "clone": ("{0}.clone()", lambda x: x * 1, ""),
    "sum": ("{0}.sum()", lambda x: x.sum(), ""),
    "mean": ("{0}.mean()", lambda x: x.mean(), ""),
    "add": ("{0} + {1}", lambda x, y: x + y, ""),
    "sub": ("torch.sub({0}, {1}, alpha=2)", lambda x, y: x - 2 * y, ""),
    "mul": ("{0} * {1}", lambda x, y: x * y, ""),
    "div": ("{0} / ({1} ** 2 + 1)", lambda x, y: x / (y * y + 1), ""),
    "where": ("torch.where({1} > 0, {0}, {1})", lambda x, y: np.where(y.real > 0, x, y), ""),
    "matmul": ("{0} @ {1}", lambda x, y: x @ y, ""),
    "addmul": ("torch.addcmul({0}, {1}, {0}, value=0.5)", lambda x, y: x + 0.5 * y * x, ""),
    "sum_dim": ("{0}.sum(dim={a[0]}, keepdim={a[1]})", lambda x, d, k: x.sum(axis=d, keepdims=k), "dim bool"),
    "mean_dim": ("{0}.mean({a[0]}, keepdim={a[1]})", lambda x, d, k: x.mean(axis=d, keepdims=k), "dim bool"),
    "cumsum": ("{0}.cumsum({a[0]})", lambda x, d: x.cumsum(axis=d), "dim"),
    "softmax": ("torch.softmax({0}, {a[0]})", _softmax, "dim"),
    "logsumexp": ("torch.logsumexp({0}, {a[0]})", lambda x, d: np.log(np.exp(x).sum(axis=d)), "dim"),
    "flip": ("{0}.flip({a[0]})", lambda x, d: np.flip(x, d), "dim"),
    "roll": ("{0}.roll(1, {a[0]})", lambda x, d: np.roll(x, 1, d), "dim"),
    "repeat": ("{0}.repeat_interleave(2, {a[0]})", lambda x, d: np.repeat(x, 2, d), "dim"),
    "cat": ("torch.cat([{0}, {1}, {0}], {a[0]})", lambda x, y, d: np.concatenate([x, y, x], d), "dim"),
    "stack": ("torch.stack([{0}, {1}], {a[0]})", lambda x, y, d: np.stack([x, y], d), "dim"),
    "index_select": ("{0}.index_select({a[0]}, torch.tensor({a[1]}))", lambda x, d, i: np.take(x, list(i), d), "dim positions"),
    "gather": ("{0}.gather({a[0]}, torch.tensor({a[1]}))", lambda x, d, i: np.take_along_axis(x, np.array(i), d), "dim along"),
    "picked": ("{0}[torch.tensor({a[0]})]", lambda x, i: x[list(i)], "rows"),
    "masked": ("{0}[torch.tensor({a[0]})]", lambda x, m: x[np.array(m)], "mask"),
    "index_add": ("torch.index_add({0}, {a[0]}, torch.tensor({a[1]}), {1})", lambda x, u, d, i: _add_at(x, d, i, u), "dim fitting"),
    "scatter_add": ("{0}.scatter_add({a[0]}, torch.tensor({a[1]}), {1})", lambda x, u, d, i: _along(x, d, i, u, True), "dim along2"),
    "contiguous_t": ("{0}.transpose(0, -1).contiguous() * 1", lambda x: np.swapaxes(x, 0, -1) * 1, ""),
}

#: views: expression, NumPy's view, constants, whether the memory layout matters
VIEW = {
    "slice": ("{0}[{a[0]}]", lambda x, i: x[i], "slices", False),
    "select": ("{0}.select({a[0]}, {a[1]})", lambda x, d, i: np.moveaxis(x, d, 0)[i, ...], "dim place", False),
    "narrow": ("{0}.narrow({a[0]}, 1, {a[1]} - 1)", lambda x, d, n: np.moveaxis(np.moveaxis(x, d, 0)[1:n], 0, d), "dim length", False),
    "transpose": ("{0}.transpose({a[0]}, -1)", lambda x, d: np.swapaxes(x, d, -1), "dim", False),
    "permute": ("{0}.permute({a[0]})", lambda x, p: x.transpose(p), "order", False),
    "t": ("{0}.t()", lambda x: _flat2(x).T, "", False),
    "unsqueeze": ("{0}.unsqueeze({a[0]})", lambda x, d: np.expand_dims(x, d), "dim", False),
    "squeeze": ("{0}.squeeze()", lambda x: np.squeeze(x), "", False),
    "expand": ("{0}.expand(2, *{0}.shape)", lambda x: np.broadcast_to(x, (2, *x.shape)), "", False),
    "diagonal": ("{0}.diagonal({a[0]})", lambda x, k: np.diagonal(x, k), "offset", False),
    "unfold": ("{0}.unfold({a[0]}, 2, {a[1]})", lambda x, d, s: _unfold(x, d, 2, s), "dim step", False),
    "view": ("{0}.view({a[0]})", lambda x, s: _viewed(x, s), "shape", True),
    "reshape": ("{0}.reshape({a[0]})", lambda x, s: _viewed(x, s), "shape", True),
    "flatten": ("{0}.view(-1)", lambda x: _viewed(x, (x.size,)), "", True),
    "view_as": ("{0}.view_as({0})", lambda x: x[...], "", True),
}

#: views of which several are made at once: like VIEW; the expression gives one of them
SEVERAL = {
    "split": ("{0}.split([1, {a[1]} - 1], {a[0]})[1]", lambda x, d, n: np.moveaxis(np.moveaxis(x, d, 0)[1:], 0, d), "dim length"),
    "chunk": ("{0}.chunk(2, {a[0]})[0]", lambda x, d: np.moveaxis(np.moveaxis(x, d, 0)[: -(-x.shape[d] // 2)], 0, d), "dim"),
    "unbind": ("{0}.unbind({a[0]})[{a[1]}]", lambda x, d, i: np.moveaxis(x, d, 0)[i, ...], "dim place"),
}

#: in place: statement, what the target holds afterwards, constants
WRITE = {
    "mul_": ("{0}.mul_({a[0]})", lambda x, c: x * c, "factor"),
    "add_": ("{0}.add_({a[0]})", lambda x, c: x + c, "factor"),
    "fill_": ("{0}.fill_({a[0]})", lambda x, c: x * 0 + c, "factor"),
    "zero_": ("{0}.zero_()", lambda x: x * 0, ""),
    "neg_": ("{0}.neg_()", lambda x: -x, ""),
    "sin_": ("{0}.sin_()", np.sin, ""),
    "tanh_": ("{0}.tanh_()", np.tanh, ""),
    "relu_": ("{0}.relu_()", lambda x: np.where(x.real > 0, x, 0), ""),
    "sigmoid_": ("{0}.sigmoid_()", lambda x: 1 / (1 + np.exp(-x)), ""),
    "cumsum_": ("{0}.cumsum_({a[0]})", lambda x, d: x.cumsum(axis=d), "dim"),
    "mul_t": ("{0}.mul_({1})", lambda x, y: x * y, ""),
    "add_t": ("{0}.add_({1}, alpha=0.5)", lambda x, y: x + 0.5 * y, ""),
    "isub_t": ("{0} -= {1}", lambda x, y: x - y, ""),
    "addcmul_": ("{0}.addcmul_({1}, {1})", lambda x, y: x + y * y, ""),
    "copy_": ("{0}.copy_({1})", lambda x, y: x * 0 + y, ""),
    "setitem": ("{0}[{a[0]}] = {a[1]}", lambda x, i, c: _put(x, i, c), "slices factor"),
    "setitem_t": ("{0}[{a[0]}] = {1}", lambda x, y, i: _put(x, i, y), "slices"),
    "augmented": ("{0}[{a[0]}] *= {a[1]}", lambda x, i, c: _put(x, i, x[i] * c), "slices factor"),
    "set_rows": ("{0}[torch.tensor({a[0]})] = {1}", lambda x, y, i: _put(x, list(i), y), "distinct"),
    "set_mask": ("{0}[torch.tensor({a[0]})] = {a[1]}", lambda x, m, c: _put(x, np.array(m), c), "mask factor"),
    "masked_fill_": ("{0}.masked_fill_(torch.tensor({a[0]}), {a[1]})", lambda x, m, c: _put(x, np.array(m), c), "mask factor"),
    "index_add_": ("{0}.index_add_({a[0]}, torch.tensor({a[1]}), {1})", lambda x, u, d, i: _add_at(x, d, i, u), "dim fitting"),
    "index_fill_": ("{0}.index_fill_({a[0]}, torch.tensor({a[1]}), 0.5)",
                    lambda x, d, i: np.moveaxis(_put(np.moveaxis(x, d, 0), list(i), 0.5), 0, d), "dim positions"),
    "scatter_": ("{0}.scatter_({a[0]}, torch.tensor({a[1]}), {1})", lambda x, u, d, i: _along(x, d, i, u), "dim once"),
}


def _flat2(x):
    if x.ndim > 2:
        raise Skip("t")
    return x


def _viewed(x, shape):
    made = x.view()
    try:
        made.shape = shape  # an error where a copy would be needed
    except AttributeError:
        raise Skip("no view")
    return made


def _unfold(x, d, size, step):
    if x.shape[d] < size:
        raise Skip("unfold")
    made = np.lib.stride_tricks.sliding_window_view(x, size, d, writeable=True)
    return np.moveaxis(np.moveaxis(made, d, 0)[::step], 0, d)


# ---------------------------------------------------------------------------------------------- constants
def constants(words, rng, x, y=None):
    """Constants for a target `x` (and another operand `y`), by their names."""
    given = []
    for word in words.split():
        n = x.ndim
        if word in ("dim", "dim length", "order", "rows", "distinct", "slices") and not n and word != "order":
            raise Skip("zero-dim")
        if word == "dim":
            given.append(rng.randrange(n))
        elif word == "bool":
            given.append(rng.random() < 0.5)
        elif word == "positions":
            given.append(tuple(rng.randrange(x.shape[given[0]]) for _ in range(rng.randint(1, 4))))
        elif word == "rows":
            given.append(tuple(rng.randrange(x.shape[0]) for _ in range(rng.randint(1, 4))))
        elif word == "distinct":
            given.append(tuple(rng.sample(range(x.shape[0]), rng.randint(1, x.shape[0]))))
        elif word == "fitting":
            if y.ndim != n or any(a != b for d, (a, b) in enumerate(zip(x.shape, y.shape)) if d != given[0]):
                raise Skip("shapes")
            given.append(tuple(rng.randrange(x.shape[given[0]]) for _ in range(y.shape[given[0]])))
        elif word in ("along", "along2", "once"):
            given.append(_index(word, rng, x, y, given[0]))
        elif word == "mask":
            if not n:
                raise Skip("zero-dim")
            made = np.random.default_rng(rng.randrange(1 << 30)).random(x.shape) < 0.5
            made.reshape(-1)[rng.randrange(made.size)] = True
            given.append(_tuples(made.tolist()))
        elif word == "slices":
            given.append(_window(rng, x.shape))
        elif word == "place":
            given.append(rng.randrange(x.shape[given[0]]))
        elif word == "length":
            if x.shape[given[0]] < 2:
                raise Skip("short")
            given.append(x.shape[given[0]])
        elif word == "order":
            given.append(tuple(rng.sample(range(n), n)))
        elif word == "offset":
            if n != 2:
                raise Skip("diagonal")
            given.append(rng.randint(-1, 1))
        elif word == "step":
            given.append(rng.randint(1, 2))
        elif word == "shape":
            given.append(rng.choice(_factors(x.size)))
        elif word == "factor":
            given.append(rng.choice([-1.25, 0.5, 0.75, 2.0, -0.5]))
    return tuple(given)


def _index(word, rng, x, y, d):
    """An index for gather (`along`), scatter_add (`along2`: positions may repeat) and scatter (`once`: they may not)."""
    shape = list(x.shape)
    if word != "along":
        if y.ndim != x.ndim:
            raise Skip("dims")
        shape = y.shape  # of another shape autograd takes no source that requires grad
        if any(b > a for k, (a, b) in enumerate(zip(x.shape, shape)) if k != d or word == "once"):
            raise Skip("too large")
    if not x.ndim:
        raise Skip("zero-dim")
    made = np.zeros(shape, int)
    lines = np.moveaxis(made, d, -1)
    for at in np.ndindex(lines.shape[:-1]):
        if word == "once":
            lines[at] = rng.sample(range(x.shape[d]), shape[d])
        else:
            lines[at] = [rng.randrange(x.shape[d]) for _ in range(shape[d])]
    return _tuples(made.tolist())


def _window(rng, shape):
    index = []
    for n in shape[: rng.randint(1, len(shape))]:
        if rng.random() < 0.3:
            index.append(rng.randrange(n))
        else:
            start = rng.randrange(n)
            index.append((start, rng.randint(start + 1, n), rng.randint(1, 2)))
    return tuple(index)


def _factors(n):
    found = [(n,)]
    for a in range(1, n + 1):
        if n % a == 0:
            found.append((a, n // a))
            found.extend([(a, b, n // a // b) for b in (1, 2, 3) if n // a % b == 0])
    return found


def _tuples(nested):
    return tuple(map(_tuples, nested)) if isinstance(nested, list) else nested


# ---------------------------------------------------------------------------------------------- kinds
KINDS = {}


def _text(template, windows):
    def source(s, dtype):
        a = [index_text(c) if w == "slices" else _nested(c) if isinstance(c, tuple) else c for w, c in zip(windows, s.a)]
        return template.format(*s.names, o=s.out, a=a, dtype=dtype)

    return source


def _nested(c):
    return "[" + ", ".join(map(_nested, c)) + "]" if isinstance(c, tuple) else repr(c)


def _for_numpy(words, a):
    return [_slices(c) if w == "slices" else c for w, c in zip(words, a)]


def _add_tables():
    for name, (text, f, words) in COMPUTE.items():
        w = words.split()
        KINDS[name] = Kind(_text("{o} = " + text, w), lambda s, m, f=f, w=w: m.compute(
            s.out, lambda *v: f(*v, *_for_numpy(w, s.a)), s.names, s.record))
    for name, (text, f, words, layout) in VIEW.items():
        w = words.split()
        KINDS[name] = Kind(_text("{o} = " + text, w), lambda s, m, f=f, w=w, layout=layout: m.view(
            s.out, lambda x: f(x, *_for_numpy(w, s.a)), s.names[0], s.record, needs_layout=layout))
    for name, (text, f, words) in SEVERAL.items():
        w = words.split()
        KINDS[name] = Kind(_text("{o} = " + text, w), lambda s, m, f=f, w=w: m.view(
            s.out, lambda x: f(x, *_for_numpy(w, s.a)), s.names[0], s.record, several=True))
    for name, (text, f, words) in WRITE.items():
        w = words.split()
        KINDS[name] = Kind(_text(text, w), lambda s, m, f=f, w=w: m.write(
            s.names[0], lambda x, *v: f(x, *v, *_for_numpy(w, s.a)), s.names[1:], s.record, itself=not w))
    KINDS["fails"] = Kind("fails(lambda: {0}.mul_(0.5))", lambda s, m: m.write(s.names[0], lambda x: x, (), s.record, expect_error=True))


def _create(s, m):
    m.new(s.out, np.array(s.a[0]), {}, False)
    if s.a[1]:
        m.leaf(m.vars[s.out])


def _as_strided(s, m):
    size, stride, offset = s.a
    v = m.get(s.names[0])
    last = offset + sum((n - 1) * t for n, t in zip(size, stride))
    if last >= v.store.flat.size:
        raise Skip("out of bounds")
    m.view(s.out, lambda x: np.lib.stride_tricks.as_strided(v.store.flat[offset:], size, [t * 8 for t in stride]), s.names[0],
           s.record, needs_layout=True)


def _from_numpy(s, m):
    flat = np.array(s.a[0], dtype=float)
    v = m.over(s.out, flat)
    m.arrays["a" + s.out] = v.re


def _numpy(s, m):
    v = m.get(s.names[0])
    if v.overlaps:
        raise Skip("overlap")
    m.arrays[s.out] = v.re


def _numpy_write(s, m):
    array = m.arrays.get(s.names[0])
    if array is None:
        raise Skip("no array")
    array *= s.a[0]
    array += 0.25
    m.bound(array)


def _watch(s, m):
    m.probe(s.out, "watch", s.names[0])


def _hook(s, m):
    m.probe(s.out, "hook", s.names[0])


def _retain(s, m):
    m.probe(s.out, "retain", s.names[0])


def _losses(names):
    return " + ".join(f"(({n} * weights({n})).sum() * {k + 1})" for k, n in enumerate(names))


def _backward(s, m):
    m.backward(s.names, s.a[0])


def _grad(s, m):
    """autograd.grad for leaves and watched tensors."""
    if any(kind != "watch" for _, kind, _ in m.probes.values()):
        raise Skip("hooks run in it too")
    loss = m.loss(s.names)
    wanted = [(n, r) for n, r in m.leaves.items()] + [(of, r) for r, _, of in m.probes.values()]
    m.asked = [(n, r, loss.get(r, 0.0)) for n, r in wanted]


def _grad_source(s, dtype):
    return f"asked = gradients({_losses(s.names)})"


def _second(s, m):
    """The gradient of a directional derivative."""
    if not m.double or s.a[0] not in m.leaves:
        raise Skip("double")
    loss = m.loss(s.names)
    first = min(m.leaves.values())
    for row in m.gathered:
        m.gathered[row] += loss.get((first, row), 0.0)
    for v in m.vars.values():
        if v.history.requires and v.history.leaf is None:
            v.history.stale = True


def _second_source(s, dtype):
    leaf, shape = s.a
    return (f"g, = torch.autograd.grad({_losses(s.names)}, [{leaf}], create_graph=True, allow_unused=True)\n"
            f"if g is not None and g.requires_grad:\n"
            f"    (g * torch.tensor({direction(1, shape).tolist()}, dtype=torch.{dtype})).sum().backward()")


def _zero_grad(s, m):
    if s.names[0] not in m.leaves:
        raise Skip("no leaf")
    m.gathered[m.leaves[s.names[0]]] = 0.0


def _look(s, m):
    m.get(s.names[0])


_add_tables()
KINDS.update({
    "create": Kind(lambda s, dtype: f"{s.out} = torch.tensor({_nested(s.a[0])}, dtype=torch.{dtype}"
                   f"{', requires_grad=True' if s.a[1] else ''})", _create),
    "requires_grad_": Kind("{0}.requires_grad_()", lambda s, m: m.leaf(m.get(s.names[0]))),
    "detach": Kind("{o} = {0}.detach()", lambda s, m: m.alias(s.out, s.names[0], False)),
    "data": Kind("{o} = {0}.data", lambda s, m: m.alias(s.out, s.names[0], True)),
    "as_strided": Kind("{o} = {0}.as_strided({a[0]}, {a[1]}, {a[2]})", _as_strided),
    "from_numpy": Kind(lambda s, dtype: f"a{s.out} = np.array({_nested(s.a[0])}, dtype=np.{dtype})\n"
                       f"{s.out} = torch.from_numpy(a{s.out})", _from_numpy),
    "numpy": Kind("{o} = {0}.detach().numpy()", _numpy),
    "numpy_write": Kind("{0} *= {a[0]}\n{0} += 0.25", _numpy_write),
    "watch": Kind("watched['{o}'] = {0}", _watch),
    "hook": Kind("{0}.register_hook(counting('{o}'))", _hook),
    "scaling_hook": Kind("{0}.register_hook(lambda g: g * {a[0]})", lambda s, m: m.scale(s.names[0], s.a[0])),
    "retain": Kind("{0}.retain_grad()\nretained['{o}'] = {0}", _retain),
    "backward": Kind(lambda s, dtype: f"({_losses(s.names)}).backward(retain_graph={s.a[0]})", _backward),
    "grad": Kind(_grad_source, _grad),
    "second": Kind(_second_source, _second),
    "zero_grad": Kind("{0}.grad = None", _zero_grad),
    "look": Kind("look({0})", _look),
})


#: kinds that leave the model as it is where they are refused
PURE = {*COMPUTE, *VIEW, *SEVERAL, *WRITE, "fails", "detach", "data", "look", "zero_grad", "as_strided", "numpy"}


# ---------------------------------------------------------------------------------------------- drawing
class Drawing:
    """Draws programs: each statement is tried on a model, and kept where the model takes it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.double = self.rng.random() < 0.15
        self.dtype = self.rng.choice(["float64", "float32"])
        self.every = self.rng.random() < 0.3  # all tensors are looked at after each statement: nothing stays late
        self.length = self.rng.randint(4, 14)
        self.model = Model(self.double)
        self.statements = []
        self.count = 0

    def draw(self):
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            self.keep(self.creation(rng.random() < 0.7))
        tries = 0
        while len(self.statements) < self.length and tries < 80:
            tries += 1
            self.attempt(self.proposal)
        for _ in range(10):
            if self.attempt(self.ending):
                break
        return Program(tuple(self.statements), self.dtype, self.double, self.every)

    def attempt(self, propose):
        try:
            statement = propose()
            if statement is None:
                return False
        except (Skip, IndexError, ValueError):
            return False
        return self.keep(statement)

    def keep(self, statement):
        """Apply to the model; what a refused statement may have left behind is cleared away by a model made anew."""
        try:
            statement.apply(self.model)
            if statement.kind == "numpy_write":
                for v in self.model.vars.values():
                    self.model.bound(v.re)
        except (Skip, IndexError, ValueError, TypeError, KeyError):
            if statement.kind not in PURE:
                self.model = Program(tuple(self.statements), self.dtype, self.double, self.every).simulate()
            return False
        self.statements.append(statement)
        return True

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def numbers(self, shape):
        made = [round(self.rng.uniform(-2, 2), 2) for _ in range(int(np.prod(shape)))]
        return _tuples(np.reshape(made, shape).tolist())

    def creation(self, requires):
        rng = self.rng
        shape = rng.choice([(3,), (4,), (2, 3), (3, 2), (3, 3), (2, 2), (1, 3), (2, 2, 2), (4, 1), ()])
        if not requires and shape and rng.random() < 0.25:
            return Statement("from_numpy", (), self.name(), (self.numbers(shape),))
        return Statement("create", (), self.name(), (self.numbers(shape), requires))

    def tensor(self):
        """A name, the younger the likelier."""
        live = [n for n, v in self.model.vars.items() if not v.dead]
        return live[min(int(self.rng.expovariate(0.45)), len(live) - 1) * -1 - 1]

    def other(self, text):
        return (self.tensor(),) if "{1}" in text else ()

    def proposal(self):
        rng = self.rng
        record = rng.random() > 0.12
        kind = rng.choices(["compute", "view", "several", "write", "special"], [30, 26, 4, 28, 20])[0]
        if kind == "special":
            return self.special(record)
        table = {"compute": COMPUTE, "view": VIEW, "several": SEVERAL, "write": WRITE}[kind]
        word = rng.choice(list(table))
        text, words = table[word][0], table[word][2]
        names = (self.tensor(), *self.other(text))
        arrays = [self.model.vars[n].re for n in names]
        a = constants(words, rng, *arrays)
        return Statement(word, names, "" if kind == "write" else self.name(), a, record)

    def special(self, record):
        rng = self.rng
        word = rng.choices(["create", "requires_grad_", "detach", "data", "as_strided", "numpy", "numpy_write", "watch", "hook",
                            "scaling_hook", "retain", "backward", "grad", "zero_grad", "look", "fails"],
                           [4, 4, 10, 6, 5, 5, 8, 5, 9, 5, 5, 5, 4, 2, 6, 6])[0]
        if word == "create":
            return self.creation(rng.random() < 0.5)
        if word == "numpy_write":
            return Statement(word, (rng.choice(list(self.model.arrays)),), "", (rng.choice([0.5, -1.0, 2.0]),))
        name = self.tensor()
        if word == "as_strided":
            n = rng.randint(1, 2)
            a = (tuple(rng.randint(1, 3) for _ in range(n)), tuple(rng.randint(1, 3) for _ in range(n)), rng.randint(0, 2))
            return Statement(word, (name,), self.name(), a, record)
        if word == "numpy":
            return Statement(word, (name,), "a" + self.name())
        if word in ("watch", "hook", "retain", "detach", "data"):
            return Statement(word, (name,), self.name())
        if word == "scaling_hook":
            return Statement(word, (name,), "", (rng.choice([2.0, -0.5]),))
        if word in ("backward", "grad"):
            if self.double:
                return None
            return Statement(word, self.some(), "", (rng.random() < 0.75,))
        if word == "zero_grad":
            return Statement(word, (rng.choice(list(self.model.leaves)),))
        return Statement(word, (name,), "", (), record if word == "fails" else True)

    def some(self):
        return tuple(dict.fromkeys(self.tensor() for _ in range(self.rng.randint(1, 3))))

    def ending(self):
        if self.double:
            first = min(self.model.leaves, key=self.model.leaves.get)
            return Statement("second", self.some(), "", (first, self.model.vars[first].shape))
        return Statement("backward", self.some(), "", (self.rng.random() < 0.3,))


@dataclass(frozen=True)
class Program:
    statements: tuple
    dtype: str
    double: bool
    every: bool

    def simulate(self, watch=None):
        """The model after all statements, or None where one does not fit. `watch(number, model)` sees it after each."""
        model = Model(self.double)
        try:
            for k, statement in enumerate(self.statements):
                model.asked = None
                statement.apply(model)
                for v in model.vars.values():
                    model.bound(v.re)
                if watch is not None:
                    watch(k, model)
        except (Skip, IndexError, ValueError, TypeError, KeyError):
            return None
        return model

    def without(self, k):
        return replace(self, statements=self.statements[:k] + self.statements[k + 1:])
