"""Tensors that are made of several plain ones: the base of sparse and nested tensors. They have no storage of their own;
operators reach them by tables (`ops.compound`), and whatever would read them as one array is refused."""

from msadapter_hook.tape import enable_grad

from . import geometry
from .core import DISABLED, Tensor
from .geometry import Size


def refusal(name, tensor, advice=None):
    """NotImplementedError: `name` does nothing for tensors of this kind; `advice` says what to do instead."""
    kind = type(tensor).__name__ if type(tensor)._own_name else f"tensors of layout {tensor.layout}"
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{tensor._backend}' backend: {name} is not available for "
        f"{kind}; {advice or tensor._advice}")


class Compound(Tensor):
    """A tensor whose data are plain tensors. Subclasses say in `_flow` which of them carries the gradient, and by `_like`
    how the same tensor looks with other data there."""

    __slots__ = ()
    __module__ = "torch"
    __torch_function__ = staticmethod(DISABLED)
    _compound = True
    _backend = "Compound"
    _noun = "Compound"
    _own_name = False  # whether users see a class of this name
    _advice = "to_dense() gives a tensor that has it"

    def __init_subclass__(cls, own_name=False, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._overrides = True  # so operators look here before they read a value
        cls._own_name = own_name
        if not own_name:  # PyTorch has one class for all layouts
            cls.__name__ = cls.__qualname__ = "Tensor"

    @classmethod
    def _blank(cls, size, dtype):
        """A tensor of this class without parts."""
        self = object.__new__(cls)
        self._size, self._dtype = Size(size), dtype
        self._stride, self._offset, self._moves = (0,) * len(self._size), 0, ()
        self._value, self._generation = None, -1
        self._leaf = self._extra = self._source = self._base = self._parent = None
        return self

    # ------------------------------------------------------------------------------------------------ parts
    @property
    def _flow(self):
        """The plain tensor whose history is this tensor's."""
        raise NotImplementedError

    def _like(self, flow):
        """This tensor with other data."""
        raise NotImplementedError

    def _part_of(self, gradient):
        """What of `gradient`, given for this tensor, belongs to `_flow`."""
        raise NotImplementedError

    @property
    def value(self):
        raise refusal("the operator", self)

    @property
    def _history(self):
        raise NotImplementedError(f"Cannot access storage of {self._noun}")

    _shared = False

    @property
    def device(self):
        return self._flow.device

    @property
    def _version(self):
        return self._flow._version

    # ------------------------------------------------------------------------------------------------ autograd
    @property
    def requires_grad(self):
        return self._flow.requires_grad

    @requires_grad.setter
    def requires_grad(self, mode):
        self.requires_grad_(mode)

    def requires_grad_(self, requires_grad=True):
        """Start or stop computing gradients for this leaf, in place. Source: PyTorch, Tensor.requires_grad_."""
        self._flow.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self):
        return self._flow.is_leaf

    @property
    def grad_fn(self):
        return self._flow.grad_fn

    @property
    def output_nr(self):
        return self._flow.output_nr

    @property
    def retains_grad(self):
        return self._flow.retains_grad

    @property
    def grad(self):
        """The gradient gathered by backward, of the layout of this tensor; or None. Source: PyTorch, Tensor.grad."""
        found = self._flow.grad
        if found is None:
            return None
        part, version, assigned = self.__dict__.get("_assigned", (None, 0, None))
        if part is found and found._version == version:  # it may have elements where this tensor has none
            return assigned
        kept = self.__dict__.get("_gradient")
        if kept is None or kept._flow is not found:
            kept = self.__dict__["_gradient"] = self._like(found)
        return kept

    @grad.setter
    def grad(self, new):
        if new is None:
            self._flow.grad = None
            self.__dict__.pop("_gradient", None)
            self.__dict__.pop("_assigned", None)
            return
        if not isinstance(new, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(new).__name__}")
        if new._size != self._size:
            raise RuntimeError(f"assigned grad has data of a different size: expected {list(self._size)}, got {list(new._size)}")
        self._flow.grad = self._part_of(new)
        self.__dict__["_assigned"] = (self._flow.grad, self._flow.grad._version, new)

    @grad.deleter
    def grad(self):
        self.grad = None

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Sum the gradients of this tensor into the leaves' `.grad`. Source: PyTorch, Tensor.backward."""
        if gradient is not None:
            gradient = self._part_of(gradient)
        self._flow.backward(gradient, retain_graph, create_graph, inputs=inputs)

    def _hooked(self, hook):
        def wrapped(grad):
            result = hook(self._like(grad))
            return None if result is None else self._part_of(result)

        return wrapped

    def register_hook(self, hook):
        """Call `hook(grad)` with the gradient of this tensor. Source: PyTorch, Tensor.register_hook."""
        return self._flow.register_hook(self._hooked(hook))

    def register_post_accumulate_grad_hook(self, hook):
        """Call `hook(tensor)` after the gradient has been added. Source: PyTorch, Tensor.register_post_accumulate_grad_hook."""
        return self._flow.register_post_accumulate_grad_hook(lambda _: hook(self))

    def retain_grad(self):
        """Keep the gradient of this tensor, which is no leaf. Source: PyTorch, Tensor.retain_grad."""
        self._flow.retain_grad()

    def detach(self):
        """The same data, cut from the graph. Source: PyTorch, Tensor.detach."""
        return self._like(self._flow.detach())

    def detach_(self):
        """Cut this tensor from the graph. Source: PyTorch, Tensor.detach_."""
        self._take(self.detach())
        return self

    @property
    def data(self):
        return self._like(self._flow.data)

    @data.setter
    def data(self, new):
        if type(new) is not type(self):
            raise RuntimeError(f"incompatible tensor type: {self.layout} cannot take the data of {new.layout}")
        self._take(new.detach())

    def _take(self, other):
        """Become what `other`, of the same class, is."""
        for cls in type(self).__mro__[: type(self).__mro__.index(Compound)]:
            for name in cls.__dict__.get("__slots__", ()):
                setattr(self, name, getattr(other, name))
        self._size, self._dtype, self._stride = other._size, other._dtype, other._stride

    # ------------------------------------------------------------------------------------------------ what needs memory
    def stride(self, dim=None):
        return self._stride if dim is None else self._stride[geometry.wrap_dim(dim, len(self._size), scalar=False)]

    def is_contiguous(self, memory_format=None):
        return False

    def data_ptr(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def untyped_storage(self):
        return self._history

    def is_set_to(self, tensor):
        return self is tensor

    def numpy(self, *, force=False):
        raise TypeError(f"can't convert {self._kind} layout tensor to numpy. Use Tensor.to_dense() first.")

    asnumpy = numpy

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def tolist(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def is_inference(self):
        return self._flow.is_inference()

    def is_conj(self):
        return False

    def is_neg(self):
        return False

    def _view(self, *args, **kwargs):
        raise refusal("as_strided", self)

    def _alias(self, *args, **kwargs):
        raise refusal("alias", self)

    def as_subclass(self, cls):
        if cls is Tensor or cls is type(self):
            return self
        raise refusal("alias", self, f"an instance of {cls.__name__} cannot be made of it")


Compound._overrides = True
Tensor._compound = False


def flow(tensor):
    """The plain tensor that carries the gradient of `tensor`: itself, but of a compound tensor."""
    return tensor._flow if tensor._compound else tensor


def recorded_name(tensor, name):
    """`tensor`, whose gradient is now called `name` where it is made by an operation."""
    with enable_grad():
        value = flow(tensor).value
    if value.requires_grad and value.node is not None and value.leaf is None:
        value.node.operator = name
    return tensor
