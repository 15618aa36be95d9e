"""Levels of function transforms: a function is run on stand-ins of its arguments, differentiated, and its results leave the
level with the history that they have outside of it."""

import weakref

from msadapter_hook import prims
from msadapter_hook.tape import enable_grad
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor
from msadapter_hook.tensor.leaf import Leaf
from msadapter_hook.tensor.storage import births

from . import api, forward

NO_SAVED_HOOKS = ("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use "
                  "case.")
CAPTURED_WRITE = (
    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation that would mutate a "
    "captured Tensor. This is not supported; please rewrite the function being transformed to explicitly accept the mutated Tensor(s) "
    "as inputs.")

_levels = weakref.WeakKeyDictionary()  # leaf of a stand-in -> its level


class Level:
    """One differentiation in reverse mode, as a context. Inside, operations are recorded whatever the mode outside."""

    maps = False  # of what watches writes: this is no mapped call

    def __init__(self):
        self.alive = False
        self.recording = True
        self.outer = self.disabled = None
        self.born = next(births)
        self.own = set()  # storages of arguments, which may be written to
        self.stand_ins = set()  # numbers of the nodes that made stand-ins with a history

    def __enter__(self):
        if state.saving is not None:
            raise RuntimeError(NO_SAVED_HOOKS)
        self.disabled, state.saving_disabled = state.saving_disabled, NO_SAVED_HOOKS
        self.outer, state.mapped = state.mapped, self
        self.recording = state.enabled
        self.alive = True
        state.enabled = True
        state.transforms += 1
        return self

    def __exit__(self, *exc):
        state.enabled = self.recording
        state.transforms -= 1
        state.mapped = self.outer
        state.saving_disabled = self.disabled
        self.alive = False

    def depends(self, tensor):
        """Whether a tensor is made of a sample of a mapped call around this level."""
        return self.outer is not None and self.outer.depends(tensor)

    def written(self, history, value):
        """Called for each write before it happens. RuntimeError where what depends on this level is put into a tensor from outside
        of it."""
        if (value.requires_grad and history.storage.born < self.born and not history.value.requires_grad
                and id(history.storage) not in self.own and self._made(value)):
            raise RuntimeError(CAPTURED_WRITE)
        if self.outer is not None:
            self.outer.written(history, value)

    def _made(self, value):
        """Whether the history of a value leads to a stand-in of this level."""
        seen, stack = set(), [value]
        while stack:
            v = stack.pop()
            if v.leaf is not None:
                if _levels.get(v.leaf) is self:
                    return True
            elif v.node is not None and id(v.node) not in seen:
                if v.node.sequence in self.stand_ins:
                    return True
                seen.add(id(v.node))
                stack.extend([i for i in v.node.inputs if i.requires_grad])
        return False

    def enter(self, tensor):
        """A stand-in for `tensor` that requires grad; its history goes on to the tensor's, where that has one."""
        if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if tensor.requires_grad and self.recording:
            made = Tensor._make(prims.reshape(tensor.value, shape=tuple(tensor.shape)))
            self.stand_ins.add(made.value.node.sequence)
            return made
        leaf = Leaf(None)
        _levels[leaf] = self
        return tensor._alias(Tensor, leaf=leaf)

    def borrow(self, tensor):
        """A stand-in for an argument that is not differentiated: writes to it reach the tensor as data."""
        self.own.add(id(tensor._history.storage))
        return tensor if tensor.requires_grad else tensor._alias(Tensor)

    def leave(self, tensor):
        """`tensor` without the part of its history that belongs to this level alone."""
        if not isinstance(tensor, Tensor) or not tensor.requires_grad:
            return tensor
        if not self.recording or not reaches_outside([tensor], self):
            return tensor._alias(Tensor)  # unlike detach, tangents stay
        return tensor

    def gradients(self, outputs, inputs, cotangents=None):
        """The gradients of `outputs` with respect to stand-ins, zeros where there is none; they can be differentiated again if
        something outside of the level asks for it."""
        pairs = [(o, None if cotangents is None else cotangents[i]) for i, o in enumerate(outputs) if o.requires_grad]
        if not pairs:
            return [zeros_like(t) for t in inputs]
        chosen, given = [p[0] for p in pairs], [p[1] for p in pairs]
        again = state.enabled and reaches_outside([*chosen, *[g for g in given if g is not None]], self)
        found = api.grad(chosen, inputs, given, retain_graph=True, create_graph=again, allow_unused=True)
        return [zeros_like(t) if g is None else g for g, t in zip(found, inputs)]


def zeros_like(tensor):
    return Tensor._make(prims.zeros_like(tensor.value))


def reaches_outside(tensors, level):
    """Whether the history of any of `tensors` leads to a leaf that is the user's, or a stand-in of another running level."""
    seen, stack = set(), []
    with enable_grad():
        stack = [t.value for t in tensors if isinstance(t, Tensor) and t.requires_grad]
    while stack:
        v = stack.pop()
        if v.leaf is not None:
            owner = _levels.get(v.leaf)
            if owner is None or owner is not level and owner.alive:
                return True
            continue
        node = v.node
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        stack.extend([i for i in node.inputs if i.requires_grad])
    return False


class ForwardLevel:
    """One differentiation in forward mode, as a context."""

    def __init__(self):
        self.level = forward.Level()
        self.before = ()

    def __enter__(self):
        self.before = state.levels
        state.levels = self.before + (self.level,)
        state.transforms += 1
        return self

    def __exit__(self, *exc):
        state.levels = self.before
        state.transforms -= 1

    def enter(self, tensor, tangent):
        """A stand-in for `tensor` with a tangent. ValueError unless floating or complex."""
        return forward.dual(self.level, tensor, tangent)

    def tangent(self, tensor):
        """The tangent of a result, zeros where it has none."""
        found = forward.tangent_of(self.level, tensor)
        return zeros_like(tensor) if found is None else found

    def depends(self, tensor):
        """Whether a result depends on what has a tangent."""
        return forward.tangent_of(self.level, tensor) is not None
