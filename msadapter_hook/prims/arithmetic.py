"""Arithmetic on Values, so that kernels and gradients read like formulas. Python numbers take the Value's dtype."""

from msadapter_hook.tape import Value, constant

from . import linear, movement, pointwise


def _operand(other, like):
    return other if isinstance(other, Value) else constant(other, like.dtype)


def _binary(name):
    primitive = getattr(pointwise, name)
    return (lambda a, b: primitive(a, _operand(b, a)), lambda a, b: primitive(_operand(b, a), a))


Value.__add__, Value.__radd__ = _binary("add")
Value.__sub__, Value.__rsub__ = _binary("sub")
Value.__mul__, Value.__rmul__ = _binary("mul")
Value.__truediv__, Value.__rtruediv__ = _binary("div")
Value.__pow__, Value.__rpow__ = _binary("pow")
Value.__neg__ = lambda a: pointwise.neg(a)
Value.__matmul__ = lambda a, b: linear.matmul(a, b)
Value.__gt__ = lambda a, b: pointwise.greater(a, _operand(b, a))
Value.__ge__ = lambda a, b: pointwise.greater_equal(a, _operand(b, a))
Value.__lt__ = lambda a, b: pointwise.less(a, _operand(b, a))
Value.__le__ = lambda a, b: pointwise.less_equal(a, _operand(b, a))
Value.reshape = lambda a, *shape: movement.reshape(a, shape=tuple(shape))
