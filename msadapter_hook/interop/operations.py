"""MindSpore functions and Cells called with our tensors: one opaque node on our tape, results ours.

The call runs with MindSpore's own recording on; the node keeps that history, and its vjp is MindSpore's backward over it. So
what the call drew at random is what its gradient sees, and nothing runs twice.
"""

import mindspore
from mindspore import experimental, nn
from mindspore._c_expression import run_backward

from msadapter_hook import backend, errors
from msadapter_hook.autograd.function import Function
from msadapter_hook.autograd.passes import current_pass
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor

from . import crossing, modes, parameters
from .crossing import NativeTensor
from .references import is_mixed
from .trees import apart, filled, instances, tree_map

OPTIMIZERS = (nn.Optimizer, experimental.optim.Optimizer)
#: functions that write into their first argument: what they do to one of our tensors
WRITES = {"assign": "copy_", "assign_add": "add_", "assign_sub": "sub_"}


def name_of(function):
    """How errors call a MindSpore function."""
    if isinstance(function, nn.Cell):
        return f"mindspore.nn.{type(function).__name__}"
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}.{getattr(function, '__name__', type(function).__name__)}"


def call(function, args, kwargs):
    """`function(*args, **kwargs)` with our tensors among the arguments; tensors in the result are ours, with history."""
    name = getattr(function, "__name__", "")
    if name in WRITES and args and isinstance(args[0], Tensor):
        return getattr(args[0], WRITES[name])(*[crossing.cast_to_adapter_tensor(a) for a in args[1:]])
    return _record(function, args, kwargs, ())


def call_cell(cell, run, args, kwargs):
    """A Cell called with our tensors. One that holds served modules runs its `construct` with our tensors as they are."""
    if isinstance(cell, OPTIMIZERS):
        given = crossing.cast_to_ms_tensor((args, kwargs))
        with modes.pynative():
            return crossing.cast_to_adapter_tensor(run(*given[0], **given[1]))
    if is_mixed(cell):
        return cell.construct(*args, **kwargs)
    try:
        with modes.watching():
            return _record(_Named(cell, run), args, kwargs, cell.trainable_params())
    except modes.Crossed:
        cell.__dict__["_adapter_mixed"] = True
        return cell.construct(*args, **kwargs)


class _Named:
    """The call of a Cell under the Cell's name."""

    def __init__(self, cell, run):
        self.__name__, self.__module__ = type(cell).__name__, type(cell).__module__
        self.cell, self._run = cell, run
        self.has_bprop = any(hasattr(type(inner), "bprop") for _, inner in cell.cells_and_names())

    def __call__(self, *args, **kwargs):
        return self._run(*args, **kwargs)


def _record(function, args, kwargs, trained):
    """Run under one node. `trained`: MindSpore Parameters that the call reads without getting them as arguments."""
    if modes.state.weights:
        args, kwargs = tree_map(_with_history, (args, kwargs), NativeTensor)
    else:
        modes.meet(instances((args, kwargs), NativeTensor))
    ours = instances((args, kwargs), Tensor)
    natives = [p for p in trained if p.requires_grad]
    natives += [p for p in instances((args, kwargs), mindspore.Parameter) if p.requires_grad]
    partners = [parameters.adapted(p) for p in natives]
    if state.levels and any(t.requires_grad or t._dtype.is_floating_point for t in ours):
        raise errors.unsupported(name_of(function), "forward mode (jvp, torch.func.jvp) does not pass MindSpore's own operations; "
                                 "use the torch operation, or reverse mode")
    plan = _Plan(function, args, kwargs, natives)
    results = _Call.apply(plan, *ours, *partners)
    return filled(plan.output, results)


def _with_history(array):
    """A MindSpore tensor with a history of its own as one of ours; others, and Parameters, as they are."""
    if array._requires_grad and not isinstance(array, mindspore.Parameter):
        return crossing.entry(array)
    return array


class _Plan:
    """What one call needs beside its tensors, and the shape of its result."""

    def __init__(self, function, args, kwargs, natives):
        self.function, self.args, self.kwargs, self.natives = function, args, kwargs, natives
        self.output = None

    def run(self, inputs, recording):
        """Call with these MindSpore tensors in the places of ours; gives the MindSpore tensors of the result."""
        args, kwargs = filled((self.args, self.kwargs), inputs, Tensor)
        with modes.pynative(), modes.one_node(), modes.native_recording(recording):
            if recording and isinstance(self.function, _Named) and self.function.has_bprop:
                output = modes.in_native_graph(self.function.cell, self.function, args, kwargs)
            else:
                output = self.function(*args, **kwargs)
        self.output, found = apart(output, NativeTensor)
        return found


class _Call(Function):
    """The node of one call. Inputs: our tensors among its arguments, then the partners of MindSpore Parameters."""

    @staticmethod
    def forward(ctx, plan, *tensors):
        wanted = ctx.needs_input_grad[1:]
        recording = any(wanted)  # apply packs the node only where it is recorded; without, this history is dropped at once
        ours = len(tensors) - len(plan.natives)
        inputs = [crossing.unwrap(t) for t in tensors[:ours]]
        if recording:
            for array, need in zip(inputs, wanted):
                if need:
                    array.requires_grad_(True)
        results = plan.run(inputs, recording)
        made = [crossing.made(r) for r in results]
        ctx.name_ = name_of(plan.function)
        if recording:
            ctx.inputs = [*inputs, *plan.natives]
            ctx.outputs = [r if r._requires_grad and t._dtype.is_floating_point | t._dtype.is_complex else None
                           for r, t in zip(results, made)]
            ctx.mark_non_differentiable(*[t for t, r in zip(made, ctx.outputs) if r is None])
            ctx.set_materialize_grads(False)
        return tuple(made)

    @staticmethod
    def backward(ctx, *grads):
        if state.enabled:
            raise errors.unsupported(
                ctx.name_, "its gradient cannot be differentiated again (create_graph=True); use the torch operation instead")
        pairs = [(out, g) for out, g in zip(ctx.outputs, grads) if out is not None and g is not None]
        wanted = [x for x, need in zip(ctx.inputs, ctx.needs_input_grad[1:]) if need]
        if not pairs:
            return (None,) * (1 + len(ctx.inputs))
        keep = current_pass().retain_graph
        with modes.pynative():
            found = run_backward(tuple([out for out, _ in pairs]), tuple([backend.from_numpy(g.value.numpy) for _, g in pairs]),
                                 bool(keep), False, tuple(wanted), True, accumulate_grad=False)
        found = iter(found if isinstance(found, (tuple, list)) else (found,))
        grads = [next(found) if need else None for need in ctx.needs_input_grad[1:]]
        if not keep:
            ctx.inputs, ctx.outputs = [None] * len(ctx.inputs), [None] * len(ctx.outputs)
        return (None, *[None if g is None else crossing.made(g) for g in grads])
