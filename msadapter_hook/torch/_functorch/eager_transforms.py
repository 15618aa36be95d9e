"""Transforms by differentiation: grad, vjp, jvp, Jacobians and Hessians of functions of nested arguments."""

import functools

from msadapter_hook.autograd.transforms import ForwardLevel, Level

from .. import Tensor, cat, eye, stack, zeros
from ..utils._pytree import tree_flatten, tree_map, tree_map_only, tree_unflatten
from .vmap import vmap

__all__ = ["functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


# ------------------------------------------------------------------------------------------------ arguments
def _chosen(argnums, args):
    """Check `argnums` and give the positions they name."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    if not positions:
        raise RuntimeError("argnums must be non-empty")
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    for n in positions:
        if not isinstance(n, int):
            raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    return [n % len(args) for n in positions]


def _pick(args, argnums):
    positions = _chosen(argnums, args)
    return tuple([args[n] for n in positions]) if isinstance(argnums, tuple) else args[positions[0]]


def _put(args, argnums, values):
    positions = _chosen(argnums, args)
    args = list(args)
    for n, v in zip(positions, values if isinstance(argnums, tuple) else (values,)):
        args[n] = v
    return args


def _enter(level, tree):
    """The tree with stand-ins for its tensors, which are given as a list too."""
    leaves, spec = tree_flatten(tree)
    for x in leaves:
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    leaves = [level.enter(x) for x in leaves]
    return tree_unflatten(leaves, spec), leaves, spec


def _others(level, args, argnums):
    """The arguments, with stand-ins for the tensors that are not differentiated."""
    chosen = set(_chosen(argnums, args))
    return [a if n in chosen else tree_map_only(Tensor, level.borrow, a) for n, a in enumerate(args)]


def _split_aux(output, has_aux, api):
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def _leave_aux(level, aux):
    def leave(x):
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        return level.leave(x)

    return tree_map(leave, aux)


def _tensors(output, api):
    leaves, spec = tree_flatten(output)
    if not leaves or leaves == [None]:
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got unsupported type {type(x)}")
    return leaves, spec


def _shown(spec):
    """The shape of a tree, such as `(*, *)`."""
    shown = tree_unflatten(["*"] * spec.num_leaves, spec)
    return str(shown).replace("'", "")


def _wraps(function):
    return functools.wraps(function, updated=())


# ------------------------------------------------------------------------------------------------ reverse mode
def grad_and_value(func, argnums=0, has_aux=False):
    """The function that gives the gradient of `func`, which returns a scalar, and its value. Source: PyTorch,
    torch.func.grad_and_value."""

    @_wraps(func)
    def gradient_and_value(*args, **kwargs):
        api = "grad_and_value(f)(*args)"
        chosen = _pick(args, argnums)
        with Level() as level:
            inner, leaves, spec = _enter(level, chosen)
            kwargs = tree_map_only(Tensor, level.borrow, kwargs)
            out, aux = _split_aux(func(*_put(_others(level, args, argnums), argnums, inner), **kwargs), has_aux, api)
            if not isinstance(out, Tensor):
                raise RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(out)}")
            if out.dim() != 0:
                raise RuntimeError(f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with {out.dim()} dims. Maybe "
                                   "you "
                                   "wanted to use the vjp or jacrev APIs instead?")
            found = [level.leave(g) for g in level.gradients([out], leaves)]
            grads = tree_unflatten(found, spec)
            value = level.leave(out)
            aux = _leave_aux(level, aux) if has_aux else None
        return (grads, (value, aux)) if has_aux else (grads, value)

    return gradient_and_value


def grad(func, argnums=0, has_aux=False):
    """The function that gives the gradient of `func`, which returns a scalar. Source: PyTorch, torch.func.grad."""
    both = grad_and_value(func, argnums, has_aux)

    @_wraps(func)
    def gradient(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return gradient


def vjp(func, *primals, has_aux=False):
    """The value of `func(*primals)`, and a function that multiplies cotangents with the Jacobian. Source: PyTorch,
    torch.func.vjp."""
    return _vjp(func, primals, None, has_aux)


def _vjp(func, primals, argnums, has_aux):
    api = "vjp(f, *primals)"
    with Level() as level:
        if argnums is None:
            inner, leaves, spec = _enter(level, primals)
            output = func(*inner)
        else:
            inner, leaves, spec = _enter(level, _pick(primals, argnums))
            output = func(*_put(_others(level, primals, argnums), argnums, inner))
        output, aux = _split_aux(output, has_aux, api)
        outs, out_spec = _tensors(output, api)
        result = tree_unflatten([level.leave(o) for o in outs], out_spec)
        aux = _leave_aux(level, aux) if has_aux else None

    def pull(cotangents, retain_graph=True, create_graph=None):
        given, given_spec = tree_flatten(cotangents)
        if given_spec != out_spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                               f"function. cotangents: {_shown(given_spec)}, primal output: {_shown(out_spec)}")
        found = level.gradients(outs, leaves, given)
        return tree_unflatten([level.leave(g) for g in found], spec)

    return (result, pull, aux) if has_aux else (result, pull)


def _basis(outs):
    """(output number, one cotangent per output) for each element of each output."""
    for k, out in enumerate(outs):
        for i in range(out.numel()):
            unit = zeros(out.numel(), dtype=out.dtype)
            unit[i] = 1
            yield k, i, unit.reshape(out.shape)


def _jacobian(rows, shape, like):
    """Rows as one tensor of `shape`."""
    return stack(rows).reshape(shape) if rows else like.new_zeros(shape)


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """The function that gives the Jacobian of `func`, row by row, by reverse mode. Source: PyTorch, torch.func.jacrev."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @_wraps(func)
    def jacobian(*args):
        made = _vjp(func, args, argnums, has_aux)
        output, pull = made[:2]
        outs, out_spec = tree_flatten(output)
        inputs, in_spec = tree_flatten(_pick(args, argnums))
        rows = [[[] for _ in inputs] for _ in outs]
        for k, _, unit in _basis(outs):
            given = [unit if j == k else _zeros_like(o) for j, o in enumerate(outs)]
            for j, g in enumerate(tree_flatten(pull(tree_unflatten(given, out_spec)))[0]):
                rows[k][j].append(g)
        result = tree_unflatten([
            tree_unflatten([_jacobian(rows[k][j], tuple(o.shape) + tuple(x.shape), x) for j, x in enumerate(inputs)], in_spec)
            for k, o in enumerate(outs)], out_spec)
        return (result, made[2]) if has_aux else result

    return jacobian


def _zeros_like(x):
    return zeros(tuple(x.shape), dtype=x.dtype)


# ------------------------------------------------------------------------------------------------ forward mode
def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The value of `func(*primals)`, and the product of the Jacobian with `tangents`. Source: PyTorch, torch.func.jvp."""
    return _jvp(func, primals, tangents, None, strict, has_aux)


def _jvp(func, primals, tangents, argnums, strict=False, has_aux=False):
    api = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{api}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    chosen = primals if argnums is None else _pick(primals, argnums)
    flat, spec = tree_flatten(chosen)
    given, given_spec = tree_flatten(tangents)
    if spec != given_spec:
        raise RuntimeError(f"{api}: Expected primals and tangents to have the same python structure. For example, if primals is a "
                           f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with "
                           f"structure {given_spec}")
    for xs, what in ((flat, "primals"), (given, "tangents")):
        if not xs:
            raise RuntimeError(f"{api}: Expected {what} to contain at least one Tensor.")
        for x in xs:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{api}: Expected {what} to only contain Tensors, got {type(x)}")
    with ForwardLevel() as level:
        inner = tree_unflatten([level.enter(x, t) for x, t in zip(flat, given)], spec)
        output = func(*(inner if argnums is None else _put(primals, argnums, inner)))
        output, aux = _split_aux(output, has_aux, api)
        outs, out_spec = _tensors(output, api)
        if strict and any(not level.depends(o) for o in outs):
            raise RuntimeError(f"{api[:-1]}, strict=True): The output of f is independent of the inputs. This is not allowed with "
                               "strict=True.")
        pushed = tree_unflatten([level.tangent(o) for o in outs], out_spec)
        if has_aux:
            _leave_aux(_Nothing, aux)
    return (output, pushed, aux) if has_aux else (output, pushed)


class _Nothing:
    """A level that results leave unchanged."""

    @staticmethod
    def leave(x):
        return x


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """The function that gives the Jacobian of `func`, column by column, by forward mode. Source: PyTorch, torch.func.jacfwd."""

    @_wraps(func)
    def jacobian(*args):
        chosen = _pick(args, argnums)
        inputs, in_spec = tree_flatten(chosen)
        for x in inputs:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"jvp(f, primals, tangents): Expected primals to only contain Tensors, got {type(x)}")
        bases = [_units(inputs, j) for j in range(len(inputs))]
        stacked = [cat([b[j] for b in bases]) for j in range(len(inputs))]
        kept = []

        def push(*units):
            made = _jvp(func, args, tree_unflatten(list(units), in_spec), argnums, False, has_aux)
            kept[:] = [made]
            return made[1]

        columns = vmap(push, randomness=randomness)(*stacked)
        output = kept[0][0]
        flat_columns, out_spec = tree_flatten(columns)
        outs = tree_flatten(output)[0]
        sizes = [x.numel() for x in inputs]
        result = []
        for o, c in zip(outs, flat_columns):
            row = []
            for x, part in zip(inputs, c.split(sizes) if len(sizes) > 1 else (c,)):
                row.append(part.movedim(0, -1).reshape(tuple(o.shape) + tuple(x.shape)))
            result.append(tree_unflatten(row, in_spec))
        result = tree_unflatten(result, out_spec)
        return (result, kept[0][2]) if has_aux else result

    return jacobian


def _units(inputs, j):
    """The unit tangents of input `j` beside zeros for the others, one per row."""
    n = inputs[j].numel()
    return [eye(n, dtype=x.dtype).reshape((n,) + tuple(x.shape)) if i == j else zeros((n,) + tuple(x.shape), dtype=x.dtype)
            for i, x in enumerate(inputs)]


def hessian(func, argnums=0):
    """The function that gives the Hessian of `func`: forward mode over reverse mode. Source: PyTorch, torch.func.hessian."""
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func, *primals):
    """The value of `func(*primals)`, and the linear function that multiplies tangents with the Jacobian there. Source: PyTorch,
    torch.func.linearize."""
    output, pull = vjp(func, *primals)
    outs, out_spec = _tensors(output, "linearize(f, *primals)")
    flat, spec = tree_flatten(primals)

    def push(*tangents):
        given, given_spec = tree_flatten(tangents)
        if given_spec != spec:
            raise RuntimeError("Expected the tangents to have the same structure as the primals, got "
                               f"{given_spec} and {spec}")
        for x, t in zip(flat, given):
            if x.shape != t.shape:
                raise RuntimeError(f"Expected each tangent to have the shape of its primal, got {tuple(t.shape)} and "
                                   f"{tuple(x.shape)}")

        def transpose(*cotangents):
            return tree_flatten(pull(tree_unflatten(list(cotangents), out_spec)))[0]

        # the vjp is linear in its cotangents: its own vjp is the product with the Jacobian
        _, again = vjp(transpose, *[_zeros_like(o) for o in outs])
        return tree_unflatten(list(again(list(given))), out_spec)

    return output, push


def functionalize(func, *, remove="mutations"):
    """`func` without writes to its arguments' views. Operations here are functional underneath, so `func` itself is that
    function. Source: PyTorch, torch.func.functionalize."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize(f, remove='mutations'): Valid options for inner argument 'remove' are: 'mutations' or "
                           f"'mutations_and_views', got {remove}")

    @_wraps(func)
    def wrapped(*args, **kwargs):
        return func(*args, **kwargs)

    return wrapped
