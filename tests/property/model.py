"""The NumPy model of a program over tensors: what every value and every gradient has to be, without PyTorch.

A storage is a flat NumPy buffer, a tensor a NumPy window over it; so what aliases what is NumPy's word. Gradients are checked by
tangents: each leaf (and each probed intermediate) has a direction of its own, carried along by complex steps, an independent way
to the derivative. `detach()` and `.data` are a history of their own (no tangents) over the same buffer. For second derivatives
the mixed tangents of two directions are carried along as well.
"""

from dataclasses import dataclass, field

import numpy as np

STEP = 1e-30  # of the complex step: so small that its square vanishes
SECOND_STEP = 1e-5  # of the central difference over the complex step
LARGEST = 60.0  # programs stay where float32 has digits to spare


class Skip(Exception):
    """The statement is not one that a program of this model may hold."""


@dataclass(eq=False)
class Store:
    flat: np.ndarray
    used: bool = False  # an operation that was recorded reads or made it


@dataclass(eq=False)
class History:
    store: Store
    version: list  # of one number, so that it can be shared
    tangents: dict = field(default_factory=dict)  # row -> flat array like the store's
    requires: bool = False
    leaf: int | None = None  # the row of the leaf whose history this is
    views: bool = False
    touched: bool = False  # something was computed from it
    stale: bool = False  # its graph has been freed
    factor: float = 1.0  # by which hooks multiply the gradient of the tensor


@dataclass(eq=False)
class Var:
    name: str
    history: History
    re: np.ndarray
    fixed: bool = True  # the memory layout is certain
    is_leaf: bool = False
    is_view: bool = False
    several: bool = False  # one of several views made at once, or a view of one: autograd refuses writes to it
    unrecorded: bool = False  # a view made while nothing was recorded
    overlaps: bool = False
    behind: bool = False  # written to since it was made

    @property
    def dead(self):
        """A view that autograd cannot follow any more, after a write."""
        return self.behind and (self.several or self.unrecorded) and self.history.requires

    @property
    def store(self):
        return self.history.store

    @property
    def shape(self):
        return self.re.shape

    def window(self, flat):
        """The window that this tensor has, over another buffer like its store's."""
        start = (self.re.__array_interface__["data"][0] - self.store.flat.__array_interface__["data"][0]) // self.re.itemsize
        if not self.re.size:
            return np.zeros(self.re.shape)
        return np.lib.stride_tricks.as_strided(flat[start:], self.re.shape, self.re.strides)

    def tangent(self, row):
        flat = self.history.tangents.get(row)
        return None if flat is None else self.window(flat)

    def offset(self):
        return (self.re.__array_interface__["data"][0] - self.store.flat.__array_interface__["data"][0]) // self.re.itemsize

    def strides(self):
        return tuple(s // self.re.itemsize for s in self.re.strides)


def direction(row, shape):
    """The direction of a leaf or a probe: two decimals, no zeros."""
    made = np.random.default_rng(7000 + row).uniform(0.5, 1.5, shape)
    return np.round(made * np.where(np.random.default_rng(row).random(shape) < 0.5, -1, 1), 2)


def weights(shape):
    """The linear functional that a loss is: the same numbers as the helper of the programs' prelude."""
    size = int(np.prod(shape))
    return ((np.arange(size) * 3 % 7) * 0.25 - 0.6).reshape(shape)


class Model:
    """The state after the statements so far. `double`: carry second derivatives along."""

    def __init__(self, double=False):
        self.vars = {}
        self.arrays = {}  # NumPy arrays that share memory with tensors: name -> window
        self.double = double
        self.rows = 0
        self.leaves = {}  # name -> row
        self.pairs = []
        self.gathered = {}  # row of a leaf -> derivative that .grad must have along its direction
        self.probes = {}  # name of a probe -> (row, kind, tensor name)
        self.seen = {}  # probe -> derivative gathered
        self.risky = False  # backward may meet a tensor that was written to
        self.largest = 1.0

    # ------------------------------------------------------------------------------------------ computing
    def lift(self, f, inputs, record=True):
        """`f` of the inputs: (data, tangents by row). Not recorded: no tangents."""
        with np.errstate(all="ignore"):
            data = np.array(f(*[v.re for v in inputs]), dtype=float)
            self.bound(data)
            tangents = {}
            if not record:
                return data, tangents
            rows = {r for v in inputs for r in v.history.tangents if isinstance(r, int)}
            for row in rows:
                tangents[row] = np.array(np.imag(f(*[self._bent(v, row, None, 0) for v in inputs])) / STEP, dtype=float)
            for pair in self.pairs:
                i, j = pair
                if i not in rows or (j not in rows and not any(pair in v.history.tangents for v in inputs)):
                    continue
                up, down = (np.imag(f(*[self._bent(v, i, pair, s * SECOND_STEP) for v in inputs])) / STEP for s in (1, -1))
                tangents[pair] = np.array((up - down) / (2 * SECOND_STEP), dtype=float)
            for t in tangents.values():
                self.bound(t, 50 * LARGEST)
        return data, tangents

    def _bent(self, v, row, pair, s):
        first = v.tangent(row)
        first = np.zeros(v.shape) if first is None else first
        if pair is None:
            return v.re + 1j * STEP * first
        other, mixed = v.tangent(pair[1]), v.tangent(pair)
        re = v.re if other is None else v.re + s * other
        return re + 1j * STEP * (first if mixed is None else first + s * mixed)

    def bound(self, data, limit=LARGEST):
        if data.size > 64 or not np.isfinite(data).all() or (np.abs(data) > limit).any():
            raise Skip("too large")
        if data.size:
            self.largest = max(self.largest, float(np.abs(data).max()))

    # ------------------------------------------------------------------------------------------ tensors
    def new(self, name, data, tangents, requires, fixed=True):
        store = Store(np.array(data, dtype=float).reshape(-1).copy())
        history = History(store, [0], {r: np.array(t).reshape(-1).copy() for r, t in tangents.items()}, requires)
        store.used = requires
        made = Var(name, history, store.flat.reshape(np.shape(data)), fixed)
        self.vars[name] = made
        return made

    def over(self, name, flat):
        """A tensor over a NumPy array's memory."""
        store = Store(flat.reshape(-1))
        self.vars[name] = Var(name, History(store, [0]), flat)
        return self.vars[name]

    def get(self, name):
        v = self.vars.get(name)
        if v is None or v.dead:
            raise Skip("no such tensor")
        return v

    def leaf(self, v):
        """Make `v` (not requiring grad) a leaf."""
        if v.history.requires or v.is_leaf or v.is_view or v.history.views or v.overlaps:
            raise Skip("not a plain tensor")
        row = self.row()
        history = History(v.store, v.history.version, {}, True, row)
        v.history = history
        v.is_leaf, v.is_view = True, False
        self.inject(v, row)
        self.leaves[v.name] = row
        self.gathered[row] = 0.0
        if self.double:
            first = min(self.leaves.values())
            self.pairs = [(first, j) for j in self.leaves.values()]

    def row(self):
        if self.rows >= 12:
            raise Skip("rows")
        self.rows += 1
        return self.rows

    def inject(self, v, row):
        flat = v.history.tangents.setdefault(row, np.zeros(v.store.flat.shape))
        v.window(flat)[...] += direction(row, v.shape)

    # ------------------------------------------------------------------------------------------ statements
    def compute(self, out, f, names, record):
        """An operation out of place."""
        inputs = [self.get(n) for n in names]
        self.usable(inputs, record)
        requires = record and any(v.history.requires for v in inputs)
        data, tangents = self.lift(f, inputs, record)
        for v in inputs:
            v.history.touched = True
            v.store.used = v.store.used or requires
        fixed = all(v.fixed and v.re.flags.c_contiguous for v in inputs)
        self.new(out, data, tangents, requires, fixed)

    def usable(self, inputs, record):
        if record and any(v.history.stale for v in inputs):
            raise Skip("its graph was freed")

    def view(self, out, g, name, record, several=False, certain=True, needs_layout=False):
        """A view: `g` gives NumPy's view of the window."""
        v = self.get(name)
        if needs_layout and not v.fixed:
            raise Skip("layout")
        window = g(v.re)
        if window.size == 0 or window.size > 64:
            raise Skip("empty")
        if not np.shares_memory(window, v.re):
            raise Skip("no view")
        v.history.views = True
        history, unrecorded = v.history, v.unrecorded or not record
        if not record and v.history.requires:
            history = History(v.store, v.history.version, {}, True)
        overlaps = v.overlaps or has_overlap(window)
        self.vars[out] = Var(out, history, window, v.fixed and certain, False, True, v.several or several, unrecorded, overlaps)

    def alias(self, out, name, data):
        """`detach()`, or `.data` with a version counter of its own."""
        v = self.get(name)
        history = History(v.store, [0] if data else v.history.version)
        self.vars[out] = Var(out, history, v.re, v.fixed, False, False, False, False, v.overlaps)

    def write(self, name, f, others, record, itself=True, expect_error=False):
        """An operation in place: `f(target, *others)` gives what the target holds afterwards. `itself`: an operand may be the target."""
        t, inputs = self.get(name), [self.get(n) for n in others]
        self.usable([t, *inputs], record)
        for u in inputs:
            if u.store is t.store and not (itself and same_window(u, t)) and np.shares_memory(u.re, t.re):
                raise Skip("overlap")
        requires = record and (t.history.requires or any(u.history.requires for u in inputs))
        wrong = t.overlaps or (record and t.history.requires and t.history.leaf is not None) or (requires and t.several)
        if wrong and t.overlaps and (t.several or t.history.requires):
            raise Skip("which error comes first")
        if expect_error != wrong:
            raise Skip("error or not")
        if expect_error:
            if t.overlaps and not any(n > 1 and not k for n, k in zip(t.shape, t.strides())):
                raise Skip("an overlap that PyTorch does not look for")
            return
        if t.unrecorded and requires:
            raise Skip("a view made under no_grad")
        data, tangents = self.lift(lambda *a: np.broadcast_to(f(*a), t.shape), [t, *inputs], record)
        for u in inputs:
            u.history.touched = True
        if t.store.used or requires and any(u.store is t.store for u in inputs):
            self.risky = True
        t.re[...] = data
        t.history.version[0] += 1
        for v in self.vars.values():
            if v.store is t.store:
                v.behind = True
        if record:
            for row in set(t.history.tangents) | set(tangents):
                flat = t.history.tangents.setdefault(row, np.zeros(t.store.flat.shape))
                t.window(flat)[...] = tangents.get(row, 0.0)
            t.history.touched = True
            if requires:
                t.history.requires = True
                t.store.used = True
                for u in inputs:
                    u.store.used = True
        for probe, (_, kind, of) in list(self.probes.items()):
            if kind in ("watch", "retain") and self.vars[of].store is t.store:
                del self.probes[probe]

    def alone(self, name):
        """The tensor, where hooks and kept gradients mean just it: no view of it, nor it a view, nor a write to it yet."""
        v = self.get(name)
        if not v.history.requires or v.history.views or v.is_view or v.is_leaf or v.history.version[0] or v.unrecorded or v.history.touched:
            raise Skip("not alone")
        return v

    def probe(self, key, kind, name):
        v = self.alone(name)
        if self.double or v.history.stale:
            raise Skip("probes")
        if kind == "watch" and v.history.factor != 1:
            raise Skip("hooks")
        row = self.row()
        self.inject(v, row)
        v.history.tangents[row] *= v.history.factor
        self.probes[key] = (row, kind, name)
        self.seen[key] = 0.0
        return v

    def scale(self, name, factor):
        """A hook that multiplies the gradient."""
        v = self.alone(name)
        if self.double or v.history.stale:
            raise Skip("probes")
        mine = {row: kind for row, kind, of in self.probes.values() if of == name}
        if "watch" in mine.values():
            raise Skip("hooks")
        v.history.factor *= factor
        for row in v.history.tangents:
            if mine.get(row) != "hook":  # hooks run in order, and what is kept is kept after all of them
                v.history.tangents[row] *= factor

    def loss(self, names, record=True):
        """Derivatives by row of the loss over the named tensors."""
        total, requires = {}, False
        for k, n in enumerate(names):
            v = self.get(n)
            self.usable([v], record)
            requires = requires or v.history.requires
            for row in v.history.tangents:
                total[row] = total.get(row, 0.0) + (k + 1) * float((weights(v.shape) * v.tangent(row)).sum())
            v.store.used = v.history.touched = True
        if not requires:
            raise Skip("no grad")
        return total

    def backward(self, names, retain):
        total = self.loss(names)
        for row in self.gathered:
            self.gathered[row] += total.get(row, 0.0)
        for key, (row, _, _) in self.probes.items():
            self.seen[key] += total.get(row, 0.0)
        if not retain:
            for v in self.vars.values():
                if v.history.requires and v.history.leaf is None:
                    v.history.stale = True


def same_window(u, t):
    return u.re.shape == t.re.shape and u.re.strides == t.re.strides and u.offset() == t.offset()


def has_overlap(window):
    """Whether two positions of a window share memory."""
    if not window.size:
        return False
    places = np.zeros(window.shape, np.int64)
    for axis, (n, s) in enumerate(zip(window.shape, window.strides)):
        places = places + (np.arange(n) * s).reshape((-1,) + (1,) * (window.ndim - axis - 1))
    return len(np.unique(places)) != window.size
