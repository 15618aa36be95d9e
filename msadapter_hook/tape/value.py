"""Value: an immutable array of the tape. Node: the primitive call that made it."""

import itertools
import weakref

import numpy as np

from msadapter_hook import backend

from .recording import state

_sequence = itertools.count(1)

SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
    "you need to backward through the graph a second time or if you need to access saved tensors after calling backward.")

INDEXED_VIEWS = ("UnfoldBackward0",)  # views that are made by a gather at constant positions


class Value:
    """An immutable array: `shape`, `dtype` (NumPy's), the array itself as NumPy and as MindSpore tensor over the same
    memory, each made on demand, and the `node` (with `index` among its outputs) that made it, where that matters.

    `leaf`: the accumulator of a leaf that requires grad. `requires_grad`: a gradient flows through this value.
    """

    __slots__ = ("shape", "dtype", "node", "index", "requires_grad", "leaf", "_numpy", "_array", "__weakref__")

    abstract = wrapped = False  # of the kinds of Value that have no data here, see `abstract`
    place = None  # the device of tensors over it, where it is not the one that computes

    def __init__(self, shape, dtype, numpy=None, array=None, node=None, index=0, requires_grad=False, leaf=None):
        self.shape = shape
        self.dtype = dtype
        self._numpy = numpy
        self._array = array
        self.node = node
        self.index = index
        self.requires_grad = requires_grad
        self.leaf = leaf

    @property
    def array(self):
        """The MindSpore tensor; computed now if the value was pending."""
        if self._array is None:
            if self._numpy is None:
                compute_pending(self)
                if self._array is not None:
                    return self._array
            self._array = backend.from_numpy(self._numpy)
        return self._array

    @property
    def numpy(self) -> np.ndarray:
        """The NumPy array, computed now if the value was pending; read only by agreement: a Value never changes."""
        if self._numpy is None:
            if self._array is None:
                compute_pending(self)
                if self._numpy is not None:
                    return self._numpy
            self._numpy = backend.as_numpy(self._array)
        return self._numpy

    @property
    def pending(self) -> bool:
        """Known by shape and dtype only, not computed yet."""
        return self._numpy is None and self._array is None

    def fill(self, result):
        """Take a kernel's result (a NumPy array or a MindSpore tensor) as the data."""
        if type(result) is np.ndarray:
            self._numpy = result
        else:
            self._array = result

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        n = 1
        for s in self.shape:
            n *= s
        return n

    def detach(self) -> "Value":
        """The same data without history."""
        if not self.requires_grad:
            return self
        if self._numpy is None and self._array is None:
            return without_history(self)
        made = Value(self.shape, self.dtype, self.numpy)  # two inputs of a gradient never share a MindSpore tensor
        for level in state.levels:
            level.copy(self, made)
        return made

    def output_of(self, node, index) -> "Value":
        """The same data as an output of `node`."""
        return Value(self.shape, self.dtype, self.numpy, None, node, index, True)

    def as_leaf(self, leaf) -> "Value":
        """The same data as a leaf that requires grad."""
        made = Value(self.shape, self.dtype, self.numpy, requires_grad=True, leaf=leaf)
        for level in state.levels:
            level.copy(self, made)
        return made

    def __repr__(self):
        made = self.node.primitive.name if self.node is not None else "data"
        return f"Value({self.dtype}{list(self.shape)} from {made}{', requires_grad' if self.requires_grad else ''})"


class Node:
    """One recorded primitive call. Its outputs are held weakly: the values keep their node, not the reverse.

    `operator` names the gradient as users see it; `saved` are (counter, version, size, dtype) of tensors that must be
    unchanged when the gradient is taken; `taps` watch single outputs, by index (hooks, retained gradients); `hooks` and
    `prehooks` watch the whole node.
    """

    __slots__ = ("primitive", "attributes", "inputs", "outputs", "replayable", "sequence", "operator", "saved",
                 "taps", "hooks", "prehooks", "metadata", "specs", "freed", "where", "prefetched", "kept", "__weakref__")

    def __init__(self, primitive, attributes, inputs, replayable):
        self.primitive = primitive
        self.attributes = attributes
        self.inputs = inputs
        self.outputs = ()
        self.replayable = replayable
        self.sequence = next(_sequence)
        self.operator = None
        self.saved = None
        self.taps = None
        self.hooks = None
        self.prehooks = None
        self.metadata = {"traceback_": user_stack()} if state.anomaly else None
        self.where = None  # (file, line) of the user's program, of a node that is computed late
        self.prefetched = None  # gradients that came with an early read of a loss
        self.kept = None  # what a host kernel keeps for its own gradient
        self.specs = ()
        self.freed = False

    def bind(self, outputs):
        """Attach the outputs (a sequence of Values)."""
        self.outputs = tuple(map(weakref.ref, outputs))
        self.specs = tuple([(o.shape, o.dtype) for o in outputs])

    def release(self):
        """Let go of the data that the gradient needed; the shape of the graph stays. What is still pending keeps its inputs."""
        self.freed = True
        self.prefetched = self.kept = None
        for ref in self.outputs:
            value = ref()
            if value is not None and value.pending:
                return
        kept = "i" if self.operator in INDEXED_VIEWS else ""  # a view passes gradients on ever after, its positions stay
        self.inputs = tuple(
            [
                v
                if v.dtype.kind in kept and not v.requires_grad and v.node is None
                else Value(v.shape, v.dtype, None, None, v.node, v.index, v.requires_grad, v.leaf)
                for v in self.inputs
            ]
        )

    def output(self, index: int) -> Value:
        """Output `index` as a Value of this node; computed again if nothing holds it any more."""
        found = self.outputs[index]()
        if found is None:
            if self.freed:
                shape, dtype = self.specs[index]
                return Value(shape, dtype, node=self, index=index, requires_grad=True)
            if any(v.abstract for v in self.inputs):
                found = abstract_again(self, index)
            else:
                again = self._again()
                shape, dtype = self.specs[index]
                found = Value(shape, dtype, node=self, index=index, requires_grad=True)
                found.fill(again[index].numpy if type(again[index]) is Value else again[index])
                for level in state.levels:
                    level.copy(again[index], found)
            refs = list(self.outputs)
            refs[index] = weakref.ref(found)
            self.outputs = tuple(refs)
        return found

    def _again(self):
        """The outputs' data, computed once more; as Values where forward mode wants their tangents."""
        if not state.levels:
            return self.primitive.compute(self.inputs, self.attributes, self.replayable)
        before, state.enabled = state.enabled, False
        try:
            made = self.primitive(*self.inputs, **self.attributes)
        finally:
            state.enabled = before
        return (made,) if type(made) is Value else made


def user_stack():
    """The stack of the user's program as text; set by `autograd`, where anomaly mode lives."""
    return []


def compute_pending(value):
    """Compute a pending value; set by `late`, which knows how."""
    raise RuntimeError("a value without data was read")


def without_history(value):
    """A pending value without its history; set by `detach`."""
    raise RuntimeError("a value without data was read")


def abstract_again(node, index):
    """An output that has no data, made once more; set by `abstract`."""
    raise RuntimeError("a value without data was read")


def value_of(array: np.ndarray) -> Value:
    """The Value of a NumPy array that nobody writes to any more."""
    return Value(array.shape, array.dtype, array)


_constants = {}


def constant(number, dtype) -> Value:
    """A zero-dim Value of a Python number; the common ones are kept."""
    key = (number, dtype, type(number), str(number) if number == 0 else None)  # 0.0 and -0.0 are two constants
    found = _constants.get(key)
    if found is None:
        with np.errstate(all="ignore"):
            found = value_of(np.array(number).astype(dtype, copy=False))
        if number == number:
            if len(_constants) > 4096:
                _constants.clear()
            _constants[key] = found
    return found
