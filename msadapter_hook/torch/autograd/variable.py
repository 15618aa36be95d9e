"""torch.autograd.variable: Variable, which has long been Tensor itself."""

from msadapter_hook.autograd.passes import queue_callback

from .. import Tensor

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, Tensor)


class _Engine:
    """What programs reach for of PyTorch's engine."""

    queue_callback = staticmethod(queue_callback)


class Variable(metaclass=_VariableMeta):
    """`Variable(x, requires_grad)`: the tensor itself as a leaf. Source: PyTorch, torch.autograd.Variable."""

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        from .. import empty

        data = empty(0) if data is None else data
        return data.detach().requires_grad_(requires_grad)
