"""Late values: what is recorded in a step like the last one is not computed at once, but when it is read or differentiated.

A node whose signature (primitive, attributes, shapes and dtypes of its inputs) has been seen is only noted: its values are
pending, with known shape and dtype. Reading one computes what it needs, once. Backward gets the loss, every pending value
that the program still holds, and the gradients from one replay.
"""

import sys
import threading
import weakref
from pathlib import Path

from msadapter_hook import settings

from . import value as _value
from .program import Program
from .value import Value

SPECS = {}  # signature -> ((shape, dtype), ...) of the outputs
_KEPT = 20000
_WAITING = 400  # pending values outside the graph are computed when there are so many


class _State(threading.local):
    def __init__(self):
        self.enabled = not settings.current().eager
        self.waiting = []  # weak references to nodes that hang on pending values without being part of a graph


state = _State()


def remember(key, results):
    """Note the outputs of an executed signature."""
    if len(SPECS) > _KEPT:
        SPECS.clear()
    SPECS[key] = results


def wait(node):
    """Keep an eye on a pending node that no backward will reach."""
    state.waiting.append(weakref.ref(node))
    if len(state.waiting) > _WAITING:
        flush()


def flush():
    """Compute what still waits outside of graphs; called after each backward."""
    waiting, state.waiting = state.waiting, []
    for ref in waiting:
        node = ref()
        if node is None:
            continue
        for out in node.outputs:
            v = out()
            if v is not None and v.pending:
                try:
                    compute(v)
                except RuntimeError as error:
                    if error.args != (_value.SECOND_TIME,):
                        raise  # what a backward that failed has left behind is told to whoever reads it, not to the next one


_PACKAGE = str(Path(__file__).resolve().parent.parent)
_ours = {}  # file -> whether it is the adapter's: the served tree goes by names of PyTorch's


def user_line():
    """(file, line) of the innermost frame that is not the adapter's."""
    frame = sys._getframe(3)
    while frame is not None:
        file = frame.f_code.co_filename
        ours = _ours.get(file)
        if ours is None:
            ours = _ours[file] = file.startswith((_PACKAGE, "<schema "))
        if not ours:
            return file, frame.f_lineno
        frame = frame.f_back
    return None


def compute(value: Value):
    """Compute a pending value and what it needs, in order of recording."""
    if value.abstract:
        raise value.refuse()
    if value.node is None or value.node.freed and not any(v() is value for v in value.node.outputs):
        raise RuntimeError(_value.SECOND_TIME)
    if value.node.primitive.passing:
        source = value.node.inputs[0]
        if source.pending:
            compute(source)
        execute(value.node)
        return
    if value.requires_grad and value.size == 1 and _prefetch(value):
        return
    nodes, stack = {}, [value.node]
    while stack:
        node = stack.pop()
        if node.sequence in nodes:
            continue
        nodes[node.sequence] = node
        for v in node.inputs:
            if v._numpy is None and v._array is None:
                if v.node is None:
                    raise RuntimeError(_value.SECOND_TIME)
                stack.append(v.node)
    for sequence in sorted(nodes):
        execute(nodes[sequence])


def execute(node):
    """Run one pending node and give its values their data."""
    try:
        results = node.primitive.compute(node.inputs, node.attributes, node.replayable)
    except Exception as error:
        if node.where is not None and error.args and isinstance(error.args[0], str):
            error.args = (f"{error.args[0]}\n(in the operation recorded at {node.where[0]}:{node.where[1]})", *error.args[1:])
        raise
    for ref, result in zip(node.outputs, results):
        v = ref()
        if v is not None and v.pending:
            settle(v, result)


def settle(v, result):
    """Give a pending value its data; outside of graphs it lets go of its node."""
    v.fill(result)
    if not v.requires_grad:
        v.node = None


def _prefetch(value) -> bool:
    """A loss read before backward: where a program like its own was differentiated before, compute it with its gradients
    and keep them. False where that does not apply."""
    nodes, stack = {}, [value.node]
    while stack:
        node = stack.pop()
        if node.sequence in nodes:
            continue
        # what a backward has freed cannot be differentiated again, but its values are there to be read
        if node.freed or not node.replayable or node.taps is not None or node.hooks or node.prehooks:
            return False
        nodes[node.sequence] = node
        for v in node.inputs:
            if v.requires_grad and v.leaf is None and v.node is not None:
                stack.append(v.node)
    ordered = [nodes[s] for s in sorted(nodes)]
    wanted = [(value.node, value.index)]
    carried = held(ordered)
    program, inputs = Program.trace(ordered, wanted, carried)
    if not program.differentiated():
        return False
    grads = program.run(wanted + [c for c in carried if c not in wanted], inputs, [ones(value)])
    value.node.prefetched = (len(ordered), {id(inputs[i]): g for i, g in zip(program.positions, grads)}, inputs)
    return True


def ones(value):
    """A cotangent of ones, the same object for like values."""
    if value.abstract:
        return value.filled(1)
    return _value.constant(1, value.dtype) if not value.shape else _value.value_of(
        _value.np.ones(value.shape, value.dtype))


def held(nodes):
    """The pending outputs of `nodes` that something outside of these nodes holds: (node, index) pairs."""
    inside = {}
    for node in nodes:
        for v in node.inputs:
            inside[id(v)] = inside.get(id(v), 0) + 1
    found = []
    for node in nodes:
        for i, ref in enumerate(node.outputs):
            v = ref()
            if v is not None and v._numpy is None and v._array is None:
                # the references here: `v` and the argument of getrefcount
                if sys.getrefcount(v) - 2 > inside.get(id(v), 0):
                    found.append((node, i))
    return found


_value.compute_pending = compute
