"""backward() and grad(): PyTorch's entry points to the engine."""

import warnings

from msadapter_hook import settings
from msadapter_hook.ops.registry import warn_once
from msadapter_hook.ops.tables import call
from msadapter_hook.prims import origin
from msadapter_hook.tape import enable_grad, late
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor, cast_value
from msadapter_hook.tensor.compound import flow

from .engine import Backward, accumulate
from .graph import GradientEdge, edge_value
from .layouts import laid_out
from .passes import key_of

NO_GRAD_FN = "element {} of tensors does not require grad and does not have a grad_fn"


def require_tape():
    """Raise where the tape was not asked for."""
    if not settings.current().enable_backward:
        raise RuntimeError(
            "Tensor.backward() needs the tape: set ENABLE_BACKWARD=1 in the environment, or run the program with "
            "`python -m msadapter_hook program.py`, which sets it. (Without it, gradients are MindSpore's functional "
            "`value_and_grad`.)")


def _as_tuple(x):
    if x is None:
        return ()
    return (x,) if isinstance(x, (Tensor, GradientEdge)) else tuple(x)


def _flows(outputs, grads):
    """The plain tensors that carry the gradients of compound ones (sparse, nested), with what is given for them."""
    if not any(isinstance(t, Tensor) and t._compound for t in outputs):
        return outputs, grads
    given = (None,) * len(outputs) if grads is None else (grads,) if isinstance(grads, Tensor) else tuple(grads)
    parts = [t._part_of(g) if isinstance(t, Tensor) and t._compound and isinstance(g, Tensor) else g for t, g in zip(outputs, given)]
    return tuple([flow(t) if isinstance(t, Tensor) else t for t in outputs]), parts + list(given[len(parts):])


def _cotangents(outputs, grads, batched=False):
    """One cotangent Value per output; a scalar output has 1 by default. RuntimeError in PyTorch's words."""
    grads = (None,) * len(outputs) if grads is None else ((grads,) if isinstance(grads, Tensor) else tuple(grads))
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    made, implicit = [], []
    for out, g in zip(outputs, grads):
        if isinstance(out, GradientEdge):
            made.append(_of_edge(edge_value(out), g, implicit))
            continue
        if g is None:
            if out.requires_grad and out.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if out.requires_grad and not (out.dtype.is_floating_point or out.dtype.is_complex):
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
            if out.requires_grad and out.dtype.is_complex:
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
            made.append(late.ones(_recorded(out)))
            implicit.append(made[-1])
            continue
        if not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        if g._size != out._size:
            raise RuntimeError(f"Mismatch in shape: grad_output[{len(made)}] has a shape of {g.shape} and "
                               f"output[{len(made)}] has a shape of {out.shape}.")
        if g.dtype.is_complex != out.dtype.is_complex:
            raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch "
                               f"in dtype: grad_output[{len(made)}] has a dtype of {g.dtype} and output[{len(made)}] has a dtype "
                               f"of {out.dtype}.")
        made.append(cast_value(g.value, out.dtype))
    return made, implicit


def _strides(cotangents, grads):
    """The strides of the cotangents given; None where they are contiguous."""
    grads = (grads,) if isinstance(grads, Tensor) else grads if grads is not None else ()
    made = [g._stride if isinstance(g, Tensor) else None for g in grads]
    return made + [None] * (len(cotangents) - len(made))


def _of_edge(value, g, implicit):
    """The cotangent of an edge."""
    if g is not None:
        return g.value
    if value.size != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    implicit.append(late.ones(value))
    return implicit[-1]


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Sum the gradients of `tensors` with respect to the leaves into their `.grad`.

    Source: PyTorch, torch.autograd.backward. RuntimeError without ENABLE_BACKWARD=1.
    """
    require_tape()
    if state.transforms:
        raise RuntimeError("backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
                           "functorch.vjp instead or call backward() outside of functorch transforms.")
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        grad_tensors = grad_variables
    if create_graph:
        warn_once("Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
                  "cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this "
                  "function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the "
                  "leak.")
    if inputs is not None and not isinstance(inputs, Tensor) and len(inputs := tuple(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs, grad_tensors = _flows(_as_tuple(tensors), grad_tensors)
    cotangents, implicit = _cotangents(outputs, grad_tensors)
    retain_graph = create_graph if retain_graph is None else retain_graph
    roots = _roots(outputs, cotangents)
    wanted = None
    if inputs is not None:
        inputs = _flows(_as_tuple(inputs), None)[0]
        wanted = []
        for t in inputs:
            if not isinstance(t, GradientEdge) and not t.requires_grad:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            wanted.append(key_of(origin(_recorded(t))))
    found = Backward(roots, wanted, accumulate=True, retain_graph=retain_graph, create_graph=create_graph,
                     implicit=implicit, layouts=_strides(cotangents, grad_tensors)).run()
    if inputs is not None:
        for t, key in zip(inputs, wanted):
            if not isinstance(t, GradientEdge) and t._leaf is None and key in found and not getattr(t, "retains_grad", False):
                accumulate(t._extra_state(), "grad", found[key], create_graph)


def _roots(outputs, cotangents):
    roots = []
    for i, (out, g) in enumerate(zip(outputs, cotangents)):
        if not isinstance(out, GradientEdge) and not out.requires_grad:
            raise RuntimeError(NO_GRAD_FN.format(i))
        roots.append((_recorded(out), g))
    return roots


def _recorded(tensor):
    """The tensor's value with its history, whatever the grad mode; of an edge, its place in the graph."""
    if isinstance(tensor, GradientEdge):
        return edge_value(tensor)
    with enable_grad():
        return tensor.value


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` is untouched.

    Source: PyTorch, torch.autograd.grad.
    """
    require_tape()
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True).", FutureWarning, stacklevel=2)
    outputs, grad_outputs = _flows(_as_tuple(outputs), grad_outputs)
    given = _as_tuple(inputs)
    inputs = _flows(given, None)[0] if all(isinstance(t, (Tensor, GradientEdge)) for t in given) else given
    if any(isinstance(t, Tensor) and t._compound for t in given):
        found = grad(outputs, inputs, grad_outputs, retain_graph, create_graph, True, allow_unused, is_grads_batched, materialize_grads)
        return tuple([g if g is None or not (isinstance(t, Tensor) and t._compound) else t._like(g) for t, g in zip(given, found)])
    if is_grads_batched:
        return _batched(outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads)
    cotangents, implicit = _cotangents(outputs, grad_outputs)
    retain_graph = create_graph if retain_graph is None else retain_graph
    roots = _roots(outputs, cotangents)
    keys = []
    for t in inputs:
        if not isinstance(t, (Tensor, GradientEdge)):
            raise TypeError(f"inputs must be Tensors, got {type(t).__name__}")
        if isinstance(t, Tensor) and not t.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        keys.append(key_of(origin(_recorded(t))))
    walk = Backward(roots, keys, accumulate=False, retain_graph=retain_graph, create_graph=create_graph,
                    implicit=implicit, layouts=_strides(cotangents, grad_outputs))
    found = walk.run()
    results = []
    for i, (t, key) in enumerate(zip(inputs, keys)):
        g = found.get(key)
        if g is None:
            if materialize_grads:
                from msadapter_hook import prims

                zeros = Tensor._make(prims.zeros_like(_recorded(t)))
                results.append(zeros.requires_grad_() if create_graph else zeros)
                continue
            if not allow_unused:
                raise RuntimeError(f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
                                   "allow_unused=True if this is the desired behavior.")
            results.append(None)
        else:
            results.append(laid_out(g, walk.layouts.get(key)))
    return tuple(results)


def _batched(outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads):
    """`is_grads_batched`: one pass per row of the cotangents, stacked."""
    rows = _as_tuple(grad_outputs)
    for i, (r, o) in enumerate(zip(rows, outputs)):
        if r.dim() == 0 or r.shape[1:] != o.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
                "sizes of "
                "the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {r.shape} and output[{i}] has a shape of {o.shape}. If you only want some "
                "tensors in "
                "`grad_output` to be considered batched, consider using vmap.")
    passes = [grad(outputs, inputs, [r[i] for r in rows], True, create_graph, True, allow_unused, False, materialize_grads)
              for i in range(rows[0].shape[0])]
    return tuple([None if column[0] is None else call("stack", list(column)) for column in zip(*passes)])
