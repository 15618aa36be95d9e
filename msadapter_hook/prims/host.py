"""Host kernels of single operators: a NumPy or SciPy function with a gradient of its own."""

from msadapter_hook.tape import Primitive


def host_call(name, host, *, vjp=None, joint_vjp=None, outputs=1, uses_output=True, differentiable=True, static=False):
    """A primitive that exists only as a host kernel.

    `vjp` / `joint_vjp` are written with primitives (see `Primitive`), so that they can be differentiated again;
    without them the result carries no gradient.
    """
    return Primitive(name, host, vjp=vjp, joint_vjp=joint_vjp, outputs=outputs, uses_output=uses_output, static=static,
                     differentiable=differentiable)
