"""torch.autograd.functional: Jacobians, Hessians and their products with vectors."""

from msadapter_hook.autograd.api import grad as _grad

from .. import Tensor, enable_grad, ones_like, stack, zeros_like

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_STRICT = " This is not allowed in strict mode"
#: what lacks a gradient, by stage: first and second order, and the transposes that replace forward mode
_INDEPENDENT = {
    "first": "The output of the user-provided function is independent of input {}." + _STRICT + ".",
    "first transposed": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the "
                        "double "
                        "backward trick to compute forward mode gradients." + _STRICT + ".",
    "second": "The jacobian of the user-provided function is independent of input {}." + _STRICT + ".",
    "second transposed": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian." + _STRICT
                         + " as it prevents from using the double backward trick to replace forward mode AD.",
}
#: what cannot be differentiated once more
_CONSTANT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
               "differentiable "
               "manner from the input when running in strict mode.",
    "gradient": "The gradient with respect to input {} is independent of the inputs of the user-provided function." + _STRICT + ".",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
                "independent of the input." + _STRICT + ". You should ensure that your function is twice differentiable and that "
                                                        "the "
                "jacobian depends on the inputs (this would be violated by a linear function for example).",
    "hessian": "The hessian of the user-provided function with respect to input {} is independent of the input." + _STRICT + ". "
                                                                                                                             "You "
               "should ensure that your function is thrice differentiable and that the hessian depends on the inputs.",
}
_OUTPUTS = "outputs of the user-provided function"


# ------------------------------------------------------------------------------------------------ arguments and results
def _as_tuple(x, what, function):
    """(whether it is a single tensor, the tensors). TypeError where something else is among them."""
    if isinstance(x, tuple):
        single = False
    else:
        single, x = True, (x,)
    for i, t in enumerate(x):
        if not isinstance(t, Tensor):
            place = f"the given {what} has type {type(t)}" if single else f"the value at index {i} has type {type(t)}"
            raise TypeError(f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but {place}.")
    return single, x


def _prepare(inputs, create_graph):
    """Stand-ins for the inputs that require grad; with the history of the inputs where a graph is made."""
    return tuple([t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_()
                  for t in inputs])


def _vector(v, like, single, name):
    """The tensors of `v`, checked against those whose shapes they must have. RuntimeError in PyTorch's words."""
    _, v = _as_tuple(v, "v", name)
    if len(v) != len(like):
        if single:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
    for i, (a, b) in enumerate(zip(v, like)):
        if a.size() != b.size():
            place = "" if single else f"Entry {i} in "
            raise RuntimeError(f"{place}v has invalid size: should be {b.size()} but got {a.size()}.")
    return v


def _unit_vector(like, message):
    if len(like) != 1 or like[0].nelement() != 1:
        raise RuntimeError(f"The vector v can only be None if {message} a single Tensor with a single element.")
    return (ones_like(like[0]),)


def _require(tensors, what, strict):
    """In strict mode: RuntimeError for a tensor that is missing or cannot be differentiated."""
    for i, t in enumerate(tensors if strict else ()):
        if t is None:
            raise RuntimeError(_INDEPENDENT["first"].format(i))
        if not t.requires_grad:
            raise RuntimeError(_CONSTANT[what].format(i))


def _grads(outputs, inputs, vectors, create_graph):
    """Gradients, None where there is none."""
    kept = [(o, v) for o, v in zip(outputs, vectors) if o is not None and o.requires_grad]
    if not kept:
        return [None] * len(inputs)
    return _grad([o for o, _ in kept], list(inputs), [v for _, v in kept], create_graph=create_graph, retain_graph=True,
                 allow_unused=True)


def _filled(grads, like, stage, strict, create_graph):
    """Zeros for missing gradients; in strict mode RuntimeError instead, and for those that depend on nothing."""
    made = []
    for i, (g, t) in enumerate(zip(grads, like)):
        if g is None:
            if strict:
                raise RuntimeError(_INDEPENDENT[stage].format(i))
            g = zeros_like(t)
        elif strict and create_graph and not g.requires_grad:
            name = "hessian" if stage.startswith("second") else "jacobian"
            raise RuntimeError(f"The {name} of the user-provided function is independent of input {i}.{_STRICT} when "
                               "create_graph=True.")
        made.append(g)
    return tuple(made)


def _result(values, single, create_graph):
    values = values if create_graph else tuple([v.detach() for v in values])
    return values[0] if single else tuple(values)


# ------------------------------------------------------------------------------------------------ products
def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """Outputs, and the product of `v` with the Jacobian. Source: PyTorch, torch.autograd.functional.vjp."""
    with enable_grad():
        single_in, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _prepare(inputs, create_graph)
        single_out, outputs = _as_tuple(func(*inputs), _OUTPUTS, "vjp")
        _require(outputs, "outputs", strict)
        if v is None:
            v = _unit_vector(outputs, "the user-provided function returns")
        else:
            v = _vector(v, outputs, single_out, "vjp")
        grads = _filled(_grads(outputs, inputs, v, create_graph), inputs, "first", strict, create_graph)
    return _result(outputs, single_out, create_graph), _result(grads, single_in, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """Outputs, and the product of the Jacobian with `v` (by differentiating a vjp). Source: PyTorch,
    torch.autograd.functional.jvp."""
    with enable_grad():
        single_in, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _prepare(inputs, create_graph)
        if v is None:
            v = _unit_vector(inputs, "the input to the user-provided function is")
        else:
            v = _vector(v, inputs, single_in, "jvp")
        single_out, outputs = _as_tuple(func(*inputs), _OUTPUTS, "jvp")
        _require(outputs, "outputs", strict)
        dummies = tuple([zeros_like(o, requires_grad=True) for o in outputs])
        back = _grads(outputs, inputs, dummies, True)
        _require(back, "gradient", strict)
        back = _filled(back, inputs, "first", False, False)
        grads = _filled(_grads(back, dummies, v, create_graph), outputs, "first transposed", strict, create_graph)
    return _result(outputs, single_out, create_graph), _result(grads, single_out, create_graph)


def _scalar(func, inputs, name):
    single, outputs = _as_tuple(func(*inputs), _OUTPUTS, name)
    if not single:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].nelement() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return outputs


def _gradient(func, inputs, v, create_graph, strict, name):
    """What vhp and hvp begin with: (single input, stand-ins, v, outputs, the gradient as a graph)."""
    single_in, inputs = _as_tuple(inputs, "inputs", name)
    inputs = _prepare(inputs, create_graph)
    if v is None:
        v = _unit_vector(inputs, "the input to the user-provided function is")
    else:
        v = _vector(v, inputs, single_in, name)
    outputs = _scalar(func, inputs, name)
    _require(outputs, "outputs", strict)
    back = _grads(outputs, inputs, (ones_like(outputs[0]),), True)
    _require(back, "jacobian", strict)
    return single_in, inputs, v, outputs, _filled(back, inputs, "first", strict, True)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """Output, and the product of `v` with the Hessian. Source: PyTorch, torch.autograd.functional.vhp."""
    with enable_grad():
        single_in, inputs, v, outputs, back = _gradient(func, inputs, v, create_graph, strict, "vhp")
        grads = _filled(_grads(back, inputs, v, create_graph), inputs, "second", strict, create_graph)
    return _result(outputs, True, create_graph), _result(grads, single_in, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """Output, and the product of the Hessian with `v`. Source: PyTorch, torch.autograd.functional.hvp."""
    with enable_grad():
        single_in, inputs, v, outputs, back = _gradient(func, inputs, v, create_graph, strict, "hvp")
        dummies = tuple([zeros_like(t, requires_grad=True) for t in inputs])
        double = _grads(back, inputs, dummies, True)
        _require(double, "hessian", strict and create_graph)
        double = _filled(double, inputs, "second", False, False)
        grads = _filled(_grads(double, dummies, v, create_graph), inputs, "second transposed", strict, create_graph)
    return _result(outputs, True, create_graph), _result(grads, single_in, create_graph)


# ------------------------------------------------------------------------------------------------ matrices
_FORWARD_ALONE = (
    'torch.autograd.functional.jacobian: `{}` and `strategy="forward-mode"` are not supported together (yet). Please either set '
    '`{}` or `strategy="reverse-mode"`.')


def _construct_standard_basis_for(tensors, tensor_numels):
    """For each tensor the rows of an identity that belong to it: (all elements, its elements), of its dtype and device."""
    total, at, made = sum(tensor_numels), 0, []
    for tensor, n in zip(tensors, tensor_numels):
        chunk = tensor.new_zeros((total, n))
        chunk.diagonal(-at).fill_(1)
        made.append(chunk)
        at += n
    return tuple(made)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian, `output.shape + input.shape` for each pair. Source: PyTorch, torch.autograd.functional.jacobian."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more '
                             'outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
                             '"reverse-mode".')
    if strategy == "forward-mode":
        return _jacobian_forward(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        single_in, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _prepare(inputs, create_graph)
        single_out, outputs = _as_tuple(func(*inputs), _OUTPUTS, "jacobian")
        _require(outputs, "outputs", strict)
        if strict and vectorize:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
                               "together. "
                               "Please either set `strict=False` or `vectorize=False`.")
        rows = [_rows(out, i, inputs, create_graph, strict) for i, out in enumerate(outputs)]
    rows = [tuple(r) if create_graph else tuple([g.detach() for g in r]) for r in rows]
    rows = tuple([r[0] if single_in else r for r in rows])
    return rows[0] if single_out else rows


def _rows(out, i, inputs, create_graph, strict):
    """The Jacobians of output `i` with respect to each input."""
    columns = [[] for _ in inputs]
    flat = out.reshape(-1)
    for j in range(out.nelement()):
        found = _grads((flat[j],), inputs, (ones_like(flat[j]),), create_graph)
        for k, (g, t) in enumerate(zip(found, inputs)):
            if g is None and strict:
                raise RuntimeError(f"Output {i} of the user-provided function is independent of input {k}.{_STRICT}.")
            if g is not None and strict and create_graph and not g.requires_grad:
                raise RuntimeError(f"The jacobian of the user-provided function is independent of input {k}.{_STRICT} when "
                                   "create_graph=True.")
            columns[k].append(zeros_like(t) if g is None else g)
    return [stack(c).reshape(tuple(out.size()) + tuple(t.size())) if c else t.new_zeros(tuple(out.size()) + tuple(t.size()))
            for c, t in zip(columns, inputs)]


def _jacobian_forward(func, inputs, create_graph, strict, vectorize):
    """The Jacobian by forward mode, column by column."""
    if strict:
        raise RuntimeError(_FORWARD_ALONE.format("strict=True", "strict=False"))
    if create_graph:
        raise NotImplementedError(_FORWARD_ALONE.format("create_graph=True", "create_graph=False"))
    if not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
                                  "`vectorize=True`.")
    from .._functorch.eager_transforms import jacfwd

    single_in, inputs = _as_tuple(inputs, "inputs", "jacobian")
    single_out = []

    def checked(*args):
        single, outputs = _as_tuple(func(*args), _OUTPUTS, "jacobian")
        single_out[:] = [single]
        return outputs

    found = jacfwd(checked, tuple(range(len(inputs))), randomness="different")(*inputs)
    rows = [r[0] if single_in else list(r) for r in found]
    return rows[0] if single_out[0] else rows


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a scalar function. Source: PyTorch, torch.autograd.functional.hessian."""
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    single_in, inputs = _as_tuple(inputs, "inputs", "hessian")

    def scalar(*args):
        out, = _scalar(func, args, "hessian")
        if strict and not out.requires_grad:
            raise RuntimeError(_CONSTANT["outputs"].format(0))
        return out.squeeze()

    if outer_jacobian_strategy == "forward-mode" and vectorize and not strict and not create_graph:
        from .._functorch.eager_transforms import jacrev

        gradient = jacrev(scalar, tuple(range(len(inputs))))
        inner = (lambda *args: gradient(*args)[0]) if single_in else gradient
    else:
        def inner(*args):
            outputs = (scalar(*args),)
            found = _filled(_grads(outputs, args, (ones_like(outputs[0]),), True), args, "first", False, False)
            _require(found, "jacobian", strict)
            return found[0] if single_in else found

    return jacobian(inner, inputs[0] if single_in else inputs, create_graph=create_graph, strict=strict, vectorize=vectorize,
                    strategy=outer_jacobian_strategy)
