"""torch.autograd.functional: Jacobians, Hessians and their products with vectors."""

from msadapter_hook.autograd.api import grad as _grad

from .. import Tensor, enable_grad, ones_like, stack, zeros_like

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(x, what, function):
    if isinstance(x, tuple):
        single = False
    else:
        single, x = True, (x,)
    for i, t in enumerate(x):
        if not isinstance(t, Tensor):
            if single:
                raise TypeError(f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the given {what} "
                                f"has type {type(t)}.")
            raise TypeError(f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the value at index "
                            f"{i} has type {type(t)}.")
    return single, x


def _prepare(inputs, create_graph):
    return tuple([t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_() for t in inputs])


def _grads(outputs, inputs, vectors, create_graph, strict, what):
    outputs_kept = [(o, v) for o, v in zip(outputs, vectors) if o.requires_grad]
    if not outputs_kept:
        if strict:
            raise RuntimeError(f"Output 0 of the user-provided function does not require gradients. The outputs must be computed "
                               f"in a differentiable manner from the input when running in strict mode in {what}.")
        return [None] * len(inputs)
    return list(_grad([o for o, _ in outputs_kept], list(inputs), [v for _, v in outputs_kept], create_graph=create_graph,
                      retain_graph=True, allow_unused=True))


def _filled(grads, like, strict, what, create_graph):
    made = []
    for i, (g, t) in enumerate(zip(grads, like)):
        if g is None:
            if strict:
                raise RuntimeError(f"The output of the user-provided function is independent of input {i}. This is not allowed in "
                                   f"strict mode in {what}.")
            g = zeros_like(t)
        made.append(g)
    return tuple(made)


def _result(values, single, create_graph):
    values = values if create_graph else tuple([v.detach() for v in values])
    return values[0] if single else values


def _check_vector(v, like, what):
    for a, b in zip(v, like):
        if a.size() != b.size():
            raise RuntimeError(f"v has invalid size: should be {tuple(b.size())} but got {tuple(a.size())}.")


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """Outputs, and the product of `v` with the Jacobian. Source: PyTorch, torch.autograd.functional.vjp."""
    with enable_grad():
        single_in, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _prepare(inputs, create_graph)
        single_out, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", "vjp")
        if v is None:
            if len(outputs) != 1 or outputs[0].nelement() != 1:
                raise RuntimeError("The vector v can only be None if the user-provided function returns a single Tensor with a "
                                   "single element.")
            v = (ones_like(outputs[0]),)
        else:
            _, v = _as_tuple(v, "v", "vjp")
            _check_vector(v, outputs, "vjp")
        grads = _filled(_grads(outputs, inputs, v, create_graph, strict, "vjp"), inputs, strict, "vjp", create_graph)
    return _result(outputs, single_out, create_graph), _result(grads, single_in, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """Outputs, and the product of the Jacobian with `v` (by differentiating a vjp). Source: PyTorch,
    torch.autograd.functional.jvp."""
    with enable_grad():
        _, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _prepare(inputs, create_graph)
        if v is None:
            if len(inputs) != 1 or inputs[0].nelement() != 1:
                raise RuntimeError("The vector v can only be None if the input to the user-provided function is a single Tensor "
                                   "with a single element.")
            v = (ones_like(inputs[0]),)
        else:
            _, v = _as_tuple(v, "v", "jvp")
            _check_vector(v, inputs, "jvp")
        single_out, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", "jvp")
        dummies = tuple([zeros_like(o, requires_grad=True) for o in outputs])
        back = _filled(_grads(outputs, inputs, dummies, True, strict, "jvp"), inputs, False, "jvp", True)
        grads = _filled(_grads(back, dummies, v, create_graph, False, "jvp"), outputs, False, "jvp", create_graph)
    return _result(outputs, single_out, create_graph), _result(grads, single_out, create_graph)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian, `output.shape + input.shape` for each pair. Source: PyTorch, torch.autograd.functional.jacobian."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError("torch.autograd.functional.jacobian: `create_graph=True` and `strategy=\"forward-mode\"` are not "
                                  "supported together (yet). Please either set `create_graph=False` or "
                                  "`strategy=\"reverse-mode\"`.")
    with enable_grad():
        single_in, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _prepare(inputs, create_graph)
        single_out, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", "jacobian")
        rows = []
        for i, out in enumerate(outputs):
            flat = out.reshape(-1)
            columns = [[] for _ in inputs]
            for j in range(out.nelement()):
                if not flat.requires_grad:
                    if strict:
                        raise RuntimeError(f"Output {i} of the user-provided function does not require gradients. The outputs must "
                                           "be computed in a differentiable manner from the input when running in strict mode in "
                                           "jacobian.")
                    found = [None] * len(inputs)
                else:
                    found = _grad((flat[j],), inputs, retain_graph=True, create_graph=create_graph, allow_unused=True)
                for k, (g, t) in enumerate(zip(found, inputs)):
                    if g is None and strict:
                        raise RuntimeError(f"Output {i} of the user-provided function is independent of input {k}. This is not "
                                           "allowed in strict mode.")
                    columns[k].append(zeros_like(t) if g is None else g)
            rows.append(tuple([
                stack(c).reshape(tuple(out.size()) + tuple(t.size())) if c else
                zeros_like(t).new_zeros(tuple(out.size()) + tuple(t.size())) for c, t in zip(columns, inputs)]))
        if not create_graph:
            rows = [tuple([g.detach() for g in r]) for r in rows]
    rows = tuple([r[0] if single_in else r for r in rows])
    return rows[0] if single_out else rows


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a scalar function. Source: PyTorch, torch.autograd.functional.hessian."""
    single_in, inputs = _as_tuple(inputs, "inputs", "hessian")

    def scalar(*args):
        out = func(*args)
        if not isinstance(out, Tensor) and not isinstance(out, tuple):
            raise TypeError(f"The outputs of the user-provided function given to hessian must be either a Tensor or a tuple of "
                            f"Tensors but the given outputs of the user-provided function has type {type(out)}.")
        if isinstance(out, tuple):
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if out.nelement() != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return out.squeeze()

    def gradient(*args):
        found = jacobian(scalar, args[0] if single_in else args, create_graph=True, strict=strict)
        return found

    found = jacobian(gradient, inputs[0] if single_in else inputs, create_graph=create_graph, strict=strict)
    return found


def _second(func, inputs, v, create_graph, strict, name):
    single_in, inputs = _as_tuple(inputs, "inputs", name)
    inputs = _prepare(inputs, create_graph)
    if v is None:
        if len(inputs) != 1 or inputs[0].nelement() != 1:
            raise RuntimeError("The vector v can only be None if the input to the user-provided function is a single Tensor with a "
                               "single element.")
        v = (ones_like(inputs[0]),)
    else:
        _, v = _as_tuple(v, "v", name)
        _check_vector(v, inputs, name)
    single_out, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", name)
    if not single_out:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].nelement() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return single_in, inputs, v, outputs


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """Output, and the product of `v` with the Hessian. Source: PyTorch, torch.autograd.functional.vhp."""
    with enable_grad():
        single_in, inputs, v, outputs = _second(func, inputs, v, create_graph, strict, "vhp")
        back = _filled(_grads(outputs, inputs, (ones_like(outputs[0]),), True, strict, "vhp"), inputs, strict, "vhp", True)
        grads = _filled(_grads(back, inputs, v, create_graph, False, "vhp"), inputs, False, "vhp", create_graph)
    return _result(outputs, True, create_graph), _result(grads, single_in, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """Output, and the product of the Hessian with `v`. Source: PyTorch, torch.autograd.functional.hvp."""
    with enable_grad():
        single_in, inputs, v, outputs = _second(func, inputs, v, create_graph, strict, "hvp")
        back = _filled(_grads(outputs, inputs, (ones_like(outputs[0]),), True, strict, "hvp"), inputs, strict, "hvp", True)
        dummies = tuple([zeros_like(t, requires_grad=True) for t in inputs])
        double = _filled(_grads(back, inputs, dummies, True, False, "hvp"), inputs, False, "hvp", True)
        grads = _filled(_grads(double, dummies, v, create_graph, False, "hvp"), inputs, False, "hvp", create_graph)
    return _result(outputs, True, create_graph), _result(grads, single_in, create_graph)
