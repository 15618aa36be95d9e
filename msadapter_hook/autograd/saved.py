"""Hooks on the tensors that a graph keeps: pack when saved, unpack when needed.

While hooks are active, an operator computes with stand-ins of the tensors that PyTorch would save. Afterwards a stand-in lets
go of its data and keeps what the pack hook gave; who reads it in backward gets what the unpack hook gives. The nodes of such
operators pass gradients on one by one: a replayed program would compute the values again instead.
"""

import weakref
from collections import OrderedDict

from msadapter_hook import backend
from msadapter_hook.ops import kept
from msadapter_hook.tape import Value, enable_grad, late
from msadapter_hook.tape.recording import state
from msadapter_hook.tape.value import SECOND_TIME
from msadapter_hook.tensor import Tensor
from msadapter_hook.tensor.storage import Version

from .passes import current_pass

_UNCHANGED = Version()  # the counter of what a hook keeps

PACK_WROTE = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by "
    "in-place "
    "operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on "
    "the "
    "input to a pack hook.")


def pack(hooks, tensor):
    """What the pack hook makes of a tensor; nothing is recorded meanwhile. RuntimeError if it writes to the tensor."""
    before, state.enabled = state.enabled, False
    saving, state.saving = state.saving, None
    version = tensor._history.version.count if not tensor._history.storage.inference else None
    try:
        packed = hooks.pack_hook(tensor)
    finally:
        state.enabled, state.saving = before, saving
    if version is not None and tensor._history.version.count != version:
        raise RuntimeError(PACK_WROTE)
    return packed


def unpack(hooks, packed):
    """The tensor that the unpack hook gives. TypeError if it gives something else."""
    saving, state.saving = state.saving, None
    try:
        found = hooks.unpack_hook(packed)
    finally:
        state.saving = saving
    if not isinstance(found, Tensor):
        raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(found).__name__}")
    return found


class Packed(Value):
    """A stand-in of a saved value: its data until `store`, from then on what the unpack hook gives.

    What was unpacked stays for the backward pass that asked for it.
    """

    __slots__ = ("_data", "_hooks", "_packed", "_cached", "_pass")

    def __init__(self, value):
        self._hooks = self._packed = self._cached = self._pass = None
        super().__init__(value.shape, value.dtype, value.numpy, None, value.node, value.index, value.requires_grad, value.leaf)

    @property
    def _numpy(self):
        return self._data if self._hooks is None else self._unpacked()

    @_numpy.setter
    def _numpy(self, array):
        self._data = array

    @property
    def _array(self):
        return None

    @_array.setter
    def _array(self, array):
        pass

    @property
    def array(self):
        return backend.from_numpy(self._numpy)

    @property
    def numpy(self):
        return self._numpy

    @property
    def pending(self):
        return False

    def store(self, hooks, packed):
        """Let go of the data for what the pack hook gave."""
        self._hooks, self._packed, self._data = hooks, packed, None

    def _unpacked(self):
        running = current_pass()
        if self._cached is None or self._pass is None or self._pass() is not running:
            before, state.enabled = state.enabled, False
            try:
                found = unpack(self._hooks, self._packed).value.numpy
            finally:
                state.enabled = before
            if running is None:
                return found
            self._cached, self._pass = found, weakref.ref(running)
        return self._cached


class _PackedResult:
    """A saved result in the place of the weak reference that a node has to its output."""

    def __init__(self, value, hooks, packed):
        self.node, self.index = weakref.ref(value.node), value.index
        self.stand_in = Packed(value)
        self.stand_in.node = None
        self.stand_in.store(hooks, packed)

    def __call__(self):
        node = self.node()
        if node is None:
            return None
        made = Value(self.stand_in.shape, self.stand_in.dtype, None, None, node, self.index, True)
        if not node.freed:
            made.fill(self.stand_in.numpy)
        return made


def run(overload, bound):
    """Run an operator's kernel under the active hooks; the result as new tensors."""
    hooks = state.saving
    stand_ins, values = [], list(bound)
    for place, tensor in kept.arguments(overload, bound):
        stand_in = Packed(tensor.value)
        stand_ins.append((stand_in, tensor))
        values[place] = stand_in
    before, late.state.enabled = late.state.enabled, False
    first = _newest()
    try:
        result = overload.wrap(overload.evaluate(values), bound)
    finally:
        late.state.enabled = before
    made = result if isinstance(result, (tuple, list)) else (result,)
    results = [r for r in made if isinstance(r, Tensor) and r.requires_grad]
    if not results:
        return result
    for node in _made_since(first, [r.value for r in results]):
        # hooks keep what they keep: later writes do not matter, a second backward does
        node.saved = tuple([(_UNCHANGED, 0, *rest) for _, _, *rest in node.saved or ()])
        if node.hooks is None:
            node.hooks = OrderedDict()  # observed: the node is no part of a replayed program
    for stand_in, tensor in stand_ins:
        stand_in.store(hooks, pack(hooks, tensor))
    for _, r in kept.results(overload, bound, made):
        _keep_result(r, hooks, results)
    return result


def _keep_result(tensor, hooks, results):
    """Keep what the hook makes of a result, where a node needs it: as its output, or (positions) as an input of its gradient."""
    packed = pack(hooks, tensor)
    with enable_grad():
        value = tensor.value
    node = value.node if value.requires_grad else None
    if node is not None and node.primitive.uses_output:
        outputs = list(node.outputs)
        outputs[value.index] = _PackedResult(value, hooks, packed)
        node.outputs = tuple(outputs)
    for other in results:
        node = other.value.node
        if any(v is value for v in node.inputs) and not isinstance(value, Packed):
            stand_in = Packed(value)
            stand_in.store(hooks, packed)
            node.inputs = tuple([stand_in if v is value else v for v in node.inputs])


def _newest():
    from msadapter_hook.tape.value import _sequence

    return next(_sequence)


def _made_since(first, values):
    """The nodes recorded after number `first` that lead to `values`."""
    found, stack = {}, [v.node for v in values if v.node is not None]
    while stack:
        node = stack.pop()
        if node.sequence < first or node.sequence in found:
            continue
        found[node.sequence] = node
        stack.extend([v.node for v in node.inputs if v.requires_grad and v.node is not None])
    return found.values()


class saved_tensors_hooks:
    """Context: what is saved for backward goes through `pack_hook`, and comes back through `unpack_hook`.

    Source: PyTorch, torch.autograd.graph.saved_tensors_hooks.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def run(self, overload, bound):
        """Called by operators: run one under these hooks."""
        return run(overload, bound)

    def __enter__(self):
        if state.saving_disabled is not None:
            raise RuntimeError(state.saving_disabled)
        self._before = (state.saving, getattr(self, "_before", None))
        state.saving = self

    def __exit__(self, *exc):
        state.saving, self._before = self._before


class save_on_cpu(saved_tensors_hooks):
    """Context: saved tensors wait on the CPU. Source: PyTorch, torch.autograd.graph.save_on_cpu."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


class disable_saved_tensors_hooks:
    """Context (or decorator): setting hooks is an error with `error_message`. RuntimeError where hooks are active. Source:
    PyTorch, torch.autograd.graph.disable_saved_tensors_hooks."""

    def __init__(self, error_message):
        self.error_message = error_message

    def __enter__(self):
        if state.saving is not None:
            raise RuntimeError(self.error_message)
        self.before, state.saving_disabled = state.saving_disabled, self.error_message

    def __exit__(self, *exc):
        state.saving_disabled = self.before


# ---------------------------------------------------------------------------------------------- what users see of it
_PLACES = {"self": 0, "input": 0, "other": 1, "mat2": 1, "vec2": 1, "exponent": 1, "target": 1, "weight": 1}
_SAME = {"mat2": "other", "vec2": "other"}  # names of operators that PyTorch makes of others
FREED = ("Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when you call "
         ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you "
         "need to access saved variables after calling backward.")
TWICE = ("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time.")


def saved_entry(node, name, freed=SECOND_TIME):
    """What is noted of the tensor that a node keeps under a name (see `kept.versions`); None where it keeps none now, which it might.
    AttributeError for other names; RuntimeError once the graph has been freed."""
    found = {entry[-1]: entry for entry in node.saved or ()}
    entry = found.get(name) or found.get(_SAME.get(name))
    if entry is None and not (found and _PLACES.get(name, len(node.inputs)) < len(node.inputs)):
        raise AttributeError(f"'{node.operator or node.primitive.name}' object has no attribute '_saved_{name}'")
    if node.freed and freed:
        raise RuntimeError(freed)
    return entry


def _place(node, entry):
    """Which input of the node a kept tensor is; None for one that only the operator had."""
    _, _, size, dtype, whose, name = entry
    tensor = whose()
    like = [i for i, v in enumerate(node.inputs) if v.shape == size and v.dtype == dtype.numpy]
    same = [i for i in like if tensor is not None and (node.inputs[i] is tensor._value or tensor._leaf is not None
                                                       and node.inputs[i].leaf is tensor._leaf)]
    for places in (same, like):
        if _PLACES.get(name) in places:
            return _PLACES[name]
    return next(iter(same or like), None)


def saved_value(node, entry):
    """The tensor itself where there still is one, else one of the same value and history."""
    whose = entry[4]
    if isinstance(whose, int):
        return Tensor._make(node.output(whose))
    place, tensor = _place(node, entry), whose()
    value = None if place is None else node.inputs[place]
    if isinstance(value, Packed):
        return Tensor._make(Value(value.shape, value.dtype, value.numpy, None, value.node, value.index, value.requires_grad, value.leaf))
    if tensor is not None:
        return tensor
    if value is None:
        raise RuntimeError(f"_saved_{entry[-1]}: the tensor is gone; hold it if you want to see it")
    return Tensor._make(value)


class SavedTensor:
    """A tensor that a node keeps, as hooks can be put on it. Source: PyTorch, torch._C._autograd.SavedTensor."""

    __slots__ = ("_node", "_entry", "_name")
    __module__ = "torch._C._autograd"

    def __init__(self, node, name):
        self._node, self._entry, self._name = node, saved_entry(node, name, None), name

    def register_hooks(self, pack_hook, unpack_hook):
        """Keep what `pack_hook` makes of the tensor, and use what `unpack_hook` gives for that. RuntimeError once the graph has been
        freed, and where there are hooks already. Source: PyTorch, SavedTensor.register_hooks."""
        node, entry = self._node, self._entry
        if node.freed:
            raise RuntimeError(FREED)
        if entry is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        number = entry[4] if isinstance(entry[4], int) else None
        place = number if number is not None else _place(node, entry)
        held = None if place is None else node.outputs[place] if number is not None else node.inputs[place]
        if isinstance(held, (Packed, _PackedResult)):
            raise RuntimeError(TWICE)
        hooks = saved_tensors_hooks(pack_hook, unpack_hook)
        packed = pack(hooks, saved_value(node, entry))
        if place is None:
            raise NotImplementedError(f"hooks on _raw_saved_{self._name}: this operator keeps it in another form; use "
                                      "torch.autograd.graph.saved_tensors_hooks around the operator")
        value = node.output(number or 0)
        value.numpy  # noqa: B018 - computed now, from what is there
        if node.hooks is None:
            node.hooks = OrderedDict()  # observed: the node is no part of a replayed program
        node.kept = None
        if number is not None:
            outputs = list(node.outputs)
            outputs[number] = _PackedResult(value, hooks, packed)
            node.outputs = tuple(outputs)
            return
        stand_in = Packed(held)
        stand_in.store(hooks, packed)
        inputs = list(node.inputs)
        inputs[place] = stand_in
        node.inputs = tuple(inputs)
        node.saved = tuple([(_UNCHANGED, 0, *e[2:]) if e is entry else e for e in node.saved])
