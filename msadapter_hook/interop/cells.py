"""Modules and Cells as each other: CellModule is a Cell as a served module, ServedCell a served module as a Cell.

Parameters are shared (see parameters), so state dictionaries, checkpoints and optimizers of either side see the same numbers.
"""

import functools
import weakref

import mindspore
from mindspore import nn
from mindspore.common._grad_function import _Function
from mindspore.common.api import _pynative_executor

from msadapter_hook import backend
from msadapter_hook.autograd.engine import Backward
from msadapter_hook.autograd.passes import key_of
from msadapter_hook.tape import enable_grad, no_grad
from msadapter_hook.tensor import Tensor, cast_value, dtypes

from . import crossing, modes, parameters
from .crossing import NativeTensor
from .optimizers import as_optimizer, is_optimizer
from .precision import restore, set_level
from .references import Holder, is_module
from .trees import apart, filled, instances, tree_map

#: parameters of Cells that are statistics, not weights
STATISTICS = frozenset(["moving_mean", "moving_variance"])


# ------------------------------------------------------------------------------------------------ a Cell as a module
def _cell_module_init(self, cell):
    super(type(self), self).__init__()
    object.__setattr__(self, "cell", cell)
    for name, p in cell._params.items():
        if p is None:
            continue
        if name in STATISTICS:
            self.register_buffer(name, parameters.adapted(p).data)
        else:
            self.register_parameter(name, parameters.adapted(p))
    for name, inner in cell._cells.items():
        if inner is not None:
            self.add_module(name, inner.module if isinstance(inner, ServedCell) else inner)
    cell.set_train(True)  # as a new module is; a new Cell is not
    object.__setattr__(self, "complete", True)  # until here, a name that the Cell has is still free


def _cell_module_forward(self, *args, **kwargs):
    for link in _links_of(self):
        parameters.refresh(link)
    return self.cell(*args, **kwargs)


def _links_of(module):
    for tensor in [*module.parameters(), *module.buffers()]:
        link = parameters._linked(tensor)
        if link is not None:
            yield link


def _cell_module_train(self, mode=True):
    self.cell.set_train(mode)
    return super(type(self), self).train(mode)


def _cell_module_getattr(self, name):
    try:
        return super(type(self), self).__getattr__(name)
    except AttributeError:
        if "complete" not in self.__dict__:
            raise
        return getattr(self.cell, name)


def _cell_module_repr(self):
    return repr(self.cell)


@functools.lru_cache(maxsize=8)
def cell_module_class(Module):
    """The class CellModule over this served `Module` (there is one per served tree)."""
    return type("CellModule", (Module,), {
        "__doc__": "A MindSpore Cell as a served module; `cell` is the Cell itself.",
        "__module__": __name__, "__init__": _cell_module_init, "forward": _cell_module_forward, "train": _cell_module_train,
        "__getattr__": _cell_module_getattr, "__repr__": _cell_module_repr,
    })


def CellModule(cell, Module=None):
    """`cell` as a served module. `Module`: the served base class; the one of `import torch` by default."""
    if Module is None:
        import sys

        Module = sys.modules["torch.nn"].Module
    return cell.module if isinstance(cell, ServedCell) else cell_module_class(Module)(cell)



# ------------------------------------------------------------------------------------------------ a module as a Cell
class ServedCell(Holder):
    """A served module as a MindSpore Cell; `module` is the module itself, whose attributes are reached through the Cell.

    Called with MindSpore tensors it gives MindSpore tensors and takes part in MindSpore's differentiation; called with ours
    it is the module.
    """

    def __init__(self, module):
        super().__init__(auto_prefix=False)
        self.__dict__["_adapter_mixed"] = True
        for name, p in module.named_parameters():
            self._adopt(name, p)
        for name, b in module.named_buffers():
            if (b.dtype.numpy.kind in "fiub" or b.dtype is dtypes.bfloat16) and b.dim() and b.is_contiguous():
                self._adopt(name, b)
        self.__dict__["module"] = module  # only now: until here, a name that the module has is still free
        self.set_train(module.training)

    def _adopt(self, name, tensor):
        native = parameters.native_parameter(tensor, name)
        if native.name != name:
            native.name = name
        # the key has the dots too: a Cell that holds this one names its parameters by prefix and key
        self.insert_param_to_cell(name, native, check_name_contain_dot=False)

    def set_train(self, mode=True):
        """Training or evaluation, of the module too."""
        super().set_train(mode)
        if "module" in self.__dict__:
            self.module.train(mode)
        return self

    def add_flags(self, **flags):
        """Flags of the Cell; those of `to_float` (also of a Cell that holds this one) are a precision for the module."""
        super().add_flags(**flags)
        if "module" in self.__dict__ and flags.keys() >= {"fp16", "bf16", "fp32"}:
            if flags["fp16"] or flags["bf16"]:
                set_level(self.module, "O3", mindspore.bfloat16 if flags["bf16"] else mindspore.float16)
            else:
                restore(self.module)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "module" not in self.__dict__:
                raise
            return getattr(self.__dict__["module"], name)

    def pairs(self):
        """(MindSpore Parameter, our parameter) of every parameter, both up to date."""
        made = []
        for name, p in self.module.named_parameters():
            made.append((parameters.native_parameter(p, name), p))
        return made

    def construct(self, *args, **kwargs):
        """The module's forward, on either side's tensors."""
        pairs = self.pairs()
        if type(self.module).__module__.endswith("nn.modules.loss"):
            args, kwargs = tree_map(_wide, (args, kwargs), (NativeTensor, Tensor))
        if instances((args, kwargs), Tensor):
            return self.module(*args, **kwargs)
        if not _pynative_executor.grad_flag():
            with no_grad():
                result = self.module(*crossing.cast_to_adapter_tensor(args), **crossing.cast_to_adapter_tensor(kwargs))
            return crossing.cast_to_ms_tensor(result)
        if modes.state.weights:  # our gradient is under way: both histories join there
            return self.module(*crossing.cast_to_adapter_tensor(args), **crossing.cast_to_adapter_tensor(kwargs))
        plan = _Plan(self.module, args, kwargs, [ours for _, ours in pairs])
        found = _Served.apply(plan, *instances((args, kwargs), NativeTensor), *[native for native, _ in pairs])
        return filled(plan.output, found if isinstance(found, tuple) else (found,))


def _wide(array):
    """Class labels: MindSpore's are int32, those of PyTorch's losses int64."""
    if isinstance(array, Tensor):
        return array.to(dtypes.int64) if array.dtype is dtypes.int32 else array
    return array.astype(mindspore.int64) if array.dtype == mindspore.int32 else array


class _Plan:
    """One call of a module inside a native gradient."""

    def __init__(self, module, args, kwargs, weights):
        self.module, self.args, self.kwargs, self.weights = module, args, kwargs, weights
        self.output = None


class _Served(_Function):
    """A served module as one operation of MindSpore's differentiation: our tape inside, our engine as its gradient."""

    @staticmethod
    def forward(ctx, plan, *arrays):
        count = len(arrays) - len(plan.weights)
        inputs = []
        with modes.inside_native_gradient(), enable_grad():
            for array in arrays[:count]:
                t = crossing.made(array)
                inputs.append(t.requires_grad_(True) if t.dtype.is_floating_point else t)
            args, kwargs = filled((plan.args, plan.kwargs), inputs, NativeTensor)
            output = plan.module(*args, **kwargs)
        plan.output, outputs = apart(output, Tensor)
        ctx.tape = inputs + plan.weights, outputs
        made = tuple([crossing.unwrap(t) for t in outputs])
        return made if len(made) != 1 else made[0]

    @staticmethod
    def backward(ctx, *grads):
        wanted, outputs = ctx.tape
        with modes.native_recording(False), enable_grad():
            roots = [(o.value, cast_value(crossing.made(g).value, o.dtype))
                     for o, g in zip(outputs, grads) if g is not None and o.requires_grad]
            keys = [key_of(t.value) if t.requires_grad else None for t in wanted]
        with modes.native_recording(False):
            found = Backward(roots, [k for k in keys if k is not None], accumulate=False).run() if roots else {}
            made = [found.get(k) if k is not None else None for k in keys]
            return (None, *[None if g is None else backend.from_numpy(g.numpy) for g in made])


_as_cell = weakref.WeakKeyDictionary()  # module -> its Cell


def as_cell(module):
    """A served Module as a `mindspore.nn.Cell` with the same parameters; the same Cell each time. Cells come back as they are.

    For nn.WithLossCell, nn.TrainOneStepCell, mindspore.Model, native optimizers, save_checkpoint. TypeError for anything else.
    """
    if isinstance(module, nn.Cell):
        return module
    if not is_module(module):
        raise TypeError(f"as_cell: expected a torch.nn.Module, got {type(module).__name__}")
    if type(module).__name__ == "CellModule" and type(module).__module__ == __name__:
        return module.cell
    found = _as_cell.get(module)
    if found is None:
        found = _as_cell[module] = ServedCell(module)
    return found


def as_cells(x):
    """`x` with the served modules and optimizers in its lists, tuples and dicts as Cells; the same object where there is none."""
    if is_module(x):
        return as_cell(x)
    if is_optimizer(x):
        return as_optimizer(x)
    if type(x) in (list, tuple):
        made = [as_cells(item) for item in x]
        return x if all(a is b for a, b in zip(made, x)) else type(x)(made)
    if type(x) is dict:
        made = {key: as_cells(item) for key, item in x.items()}
        return x if all(made[key] is x[key] for key in x) else made
    return x


