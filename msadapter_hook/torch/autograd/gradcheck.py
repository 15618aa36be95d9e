"""torch.autograd.gradcheck: analytical gradients against finite differences.

Complex numbers are pairs of real ones here: an input varies along its real and its imaginary axis, an output is looked at part
by part. The gradient of a real part is then `d/dre + i·d/dim`, as backward gives it.
"""

import warnings

import numpy as np

from msadapter_hook.autograd.api import grad as _grad
from msadapter_hook.ops.protocol import elements

from .. import Tensor, complex128, enable_grad, float64, from_numpy, no_grad, randn, zeros_like
from . import forward_ad
from .function import Function

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

_SLOW = (
    "\n\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast mode. See: "
    "https://github.com/pytorch/pytorch/issues/53876 for more background \nabout fast mode. Below, we recompute numerical and "
    "analytical jacobians in slow mode:\n\nNumerical:\n {}\nAnalytical:\n{}\n\nThe max per-element difference (slow mode) is: "
    "{}.\n")
_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
    "although "
    "analytical gradient matches numerical gradient.The tolerance for nondeterminism was {}.\n\nNOTE: If your op relies on "
    "non-deterministic operations i.e., it is listed here:\nhttps://pytorch.org/docs/stable/generated/"
    "torch.use_deterministic_algorithms.html\nthis failure might be expected.\n")
_UNDEFINED = (
    "Expected all input grads to be undefined or zero when all output grads are undefined or zero. Please look at \"Notes about "
    "undefined output gradients\" in \"tools/autograd/derivatives.yaml\"")


class GradcheckError(RuntimeError):
    """A gradient that disagrees. Source: PyTorch, torch.autograd.gradcheck.GradcheckError."""


def _tuple(x):
    return tuple(x) if isinstance(x, (list, tuple)) else (x,)


def _array(tensor):
    return elements(tensor) if tensor._dispatches else tensor.detach().cpu().numpy().copy()


class _Check:
    """One function at one point: how far its gradients are from differences."""

    def __init__(self, func, inputs, eps, atol, rtol):
        self.func, self.inputs = func, inputs
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.chosen = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]

    def outputs(self):
        """What the function gives, as tensors."""
        return [o for o in _tuple(self.func(*self.inputs)) if _is_tensor(o)]

    # ---------------------------------------------------------------------------------------- differences
    def values(self):
        return [_array(o) for o in self.outputs()]

    def difference(self, place, direction):
        """The derivatives of all outputs when input `place` moves along `direction` (an array like it)."""
        given, x = self.inputs, self.inputs[place]
        here = _array(x)
        if x._is_view():  # a view that was written to shows another node of the graph: outputs and it would no longer know each other
            x = x.detach().clone().requires_grad_()
            self.inputs = [x if i == place else t for i, t in enumerate(given)]
        try:
            _put(x, here + self.eps * direction)
            high = self.values()
            _put(x, here - self.eps * direction)
            low = self.values()
        finally:
            _put(x, here)
            self.inputs = given
        for h, l_ in zip(high, low):
            if h.shape != l_.shape:
                raise AssertionError("Expected `fn` to return outputs with the same shape when inputs are perturbed, got:"
                                     f"torch.Size({list(h.shape)}) and torch.Size({list(l_.shape)})")
            if h.dtype != l_.dtype:
                raise AssertionError("Expected `fn` to return outputs with the same dtype when inputs are perturbed, got:"
                                     f"{h.dtype} and {l_.dtype}")
        return [(h.astype(np.result_type(h, np.float64)) - l_) / (2 * self.eps) for h, l_ in zip(high, low)]

    def numerical(self, place):
        """For each output the Jacobian (input elements, output elements), one for each axis of the input."""
        x = self.inputs[place]
        made = []
        for unit in _units(x):
            rows = []
            for i in range(x.numel()):
                direction = np.zeros(x.numel(), _array(x).dtype)
                direction[i] = unit
                rows.append(self.difference(place, direction.reshape(tuple(x.shape))))
            made.append(rows)
        count = len(made[0][0]) if made and made[0] else 0
        return [[np.array([row[k].reshape(-1) for row in rows]) for rows in made] for k in range(count)]

    # ---------------------------------------------------------------------------------------- backward
    def gradient(self, out, cotangent, retain=True):
        """The gradients of an output with respect to the chosen inputs; zeros where there is none."""
        found = _grad([out], [self.inputs[i] for i in self.chosen], [cotangent], retain_graph=retain, allow_unused=True)
        for g, i in zip(found, self.chosen):
            if g is not None and g.shape != self.inputs[i].shape:
                raise GradcheckError("Analytical gradient has incorrect size")
        return found

    def analytical(self, out, unit, dtypes=False):
        """For each chosen input the Jacobian (input elements, output elements) of one part of an output."""
        columns = [[] for _ in self.chosen]
        for m in range(out.numel()):
            v = np.zeros(out.numel(), _array(out).dtype)
            v[m] = unit
            for j, g in enumerate(self.gradient(out, from_numpy(v).reshape(out.shape))):
                x = self.inputs[self.chosen[j]]
                if dtypes and g is not None and g.dtype != x.dtype:
                    raise GradcheckError("Analytical gradient has incorrect type")
                columns[j].append(np.zeros(x.numel(), _array(x).dtype) if g is None else _array(g).reshape(-1))
        return [np.array(c).T if c else np.zeros((self.inputs[i].numel(), 0)) for c, i in zip(columns, self.chosen)]

    def close(self, a, n, atol=None):
        return np.allclose(n, a, rtol=self.rtol, atol=self.atol if atol is None else atol, equal_nan=True)


def _is_tensor(o):
    if not isinstance(o, Tensor):
        raise AttributeError(f"'{type(o).__name__}' object has no attribute 'requires_grad'")  # what PyTorch stumbles over
    return True


def _put(x, array):
    with no_grad():
        x.data.copy_(from_numpy(np.array(array, order="C")))


def _units(x):
    return (1.0, 1j) if x.is_complex() else (1.0,)


def _part(unit, numerical, complex_input):
    """The Jacobian of the real or imaginary part of an output, as a gradient: `d/dre + i·d/dim`."""
    parts = [n.imag if unit == 1j else n.real for n in numerical]
    return parts[0] + 1j * parts[1] if complex_input else parts[0]


def _differentiable(outputs):
    return [(k, o) for k, o in enumerate(outputs) if o.requires_grad and (o.is_floating_point() or o.is_complex())]


def _prefix(out, unit):
    if not out.is_complex():
        return ""
    return f"While considering the {'imaginary' if unit == 1j else 'real'} part of complex outputs only, "


def _mismatch(k, i, n, a, prefix="", mode=""):
    start = f"Jacobian {mode}mismatch for output {k} with respect to input {i},\n"
    shown = [from_numpy(np.asarray(v)) if np.ndim(v) else v for v in (n, a)]
    return f"{prefix}{start}numerical:{shown[0]}\nanalytical:{shown[1]}\n"


# ------------------------------------------------------------------------------------------------ the checks
def _backward_slow(check, outputs, nondet_tol, dtypes):
    numerical = {i: check.numerical(i) for i in check.chosen}
    for k, out in _differentiable(outputs):
        for unit in _units(out):
            first, second = check.analytical(out, unit, dtypes), check.analytical(out, unit)
            for i, a, b in zip(check.chosen, first, second):
                x = check.inputs[i]
                if not x.numel() or not out.numel():
                    continue
                n = _part(unit, numerical[i][k], x.is_complex())
                if not check.close(a, n):
                    raise GradcheckError(_mismatch(k, i, n, a, _prefix(out, unit)))
                if not np.allclose(a, b, rtol=0, atol=nondet_tol, equal_nan=True):
                    raise GradcheckError(_prefix(out, unit) + _NOT_REENTRANT.format(nondet_tol))


def _direction(shape, complex_):
    """A random direction of length one."""
    rng = np.random.default_rng(0)
    v = rng.random(shape) + 0.1
    if complex_:
        v = v + 1j * (rng.random(shape) + 0.1)
    return v / max(np.linalg.norm(v.reshape(-1)), 1e-30)


def _backward_fast(check, outputs, nondet_tol):
    """Jacobians are looked at between one direction of the input and one of the output."""
    for i in check.chosen:
        x = check.inputs[i]
        if not x.numel():
            continue
        u = _direction(tuple(x.shape), False)
        moves = [check.difference(i, u)] + ([check.difference(i, 1j * u)] if x.is_complex() else [])
        for k, out in _differentiable(outputs):
            v = _direction(tuple(out.shape), False)
            for unit in _units(out):
                cotangent = from_numpy(np.asarray(v * unit).astype(_array(out).dtype))
                g, again = [check.gradient(out, cotangent)[check.chosen.index(i)] for _ in range(2)]
                g, again = [np.zeros(tuple(x.shape)) if t is None else _array(t) for t in (g, again)]
                a = (g * u).sum()
                n = _part(unit, [np.sum(m[k] * v) for m in moves], x.is_complex())
                if not check.close(a, n, check.atol * u.sum() * v.sum()):
                    slow = _part(unit, check.numerical(i)[k], x.is_complex())
                    full = check.analytical(out, unit)[check.chosen.index(i)]
                    raise GradcheckError(_mismatch(k, i, n, a, _prefix(out, unit)).rstrip("\n") + _SLOW.format(
                        from_numpy(slow), from_numpy(full), np.abs(slow - full).max()))
                if not np.allclose(g, again, rtol=0, atol=nondet_tol, equal_nan=True):
                    raise GradcheckError(_prefix(out, unit) + _NOT_REENTRANT.format(nondet_tol))


def _pushed(check, place, direction):
    """The tangents of all outputs (None where there is none) for a tangent of one input."""
    with forward_ad.dual_level():
        inputs = list(check.inputs)
        inputs[place] = forward_ad.make_dual(inputs[place], from_numpy(direction))
        outputs = [o for o in _tuple(check.func(*inputs)) if _is_tensor(o)]
        return [None if t is None else _array(t) for t in (forward_ad.unpack_dual(o).tangent for o in outputs)]


def _forward(check, outputs, fast):
    mode = "computed with forward mode "
    for i in check.chosen:
        x = check.inputs[i]
        if not x.numel():
            continue
        dtype = _array(x).dtype
        for unit in _units(x):
            steps = [_direction(tuple(x.shape), False) * unit] if fast else [
                np.eye(1, x.numel(), j).reshape(tuple(x.shape)) * unit for j in range(x.numel())]
            moved = [check.difference(i, d.astype(dtype)) for d in steps]
            found = [_pushed(check, i, np.array(d, dtype, order="C")) for d in steps]
            for k, out in enumerate(outputs):
                if not (out.is_floating_point() or out.is_complex()) or not out.numel():
                    continue
                n = np.array([m[k].reshape(-1) for m in moved])
                a = np.array([np.zeros(out.numel()) if f[k] is None else f[k].reshape(-1) for f in found])
                if not check.close(a, n):
                    prefix = f"While considering the {'imaginary' if unit == 1j else 'real'} part of complex inputs only, " \
                        if x.is_complex() else ""
                    text = _mismatch(k, i, n[0] if fast else n, a[0] if fast else a, prefix, mode)
                    raise GradcheckError(text if not fast else text.rstrip("\n") + _SLOW.format(n, a, np.abs(n - a).max()))


class _Undefined(Function):
    """Passes values on, and no gradient back."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return None


def _undefined(check):
    """Where no gradient comes in, none or zeros must come out."""
    count = len(_differentiable(check.outputs()))
    cases = [set(range(count))] + ([{k} for k in range(count)] if count > 1 else [])
    for case in cases:
        outs = [o for _, o in _differentiable(check.outputs())]
        outs = [_Undefined.apply(o) if k in case else o for k, o in enumerate(outs)]
        inputs = [check.inputs[i] for i in check.chosen]
        try:
            found = _grad(outs, inputs, [zeros_like(o) for o in outs], allow_unused=True)
        except RuntimeError as error:
            _warn_undefined()
            raise GradcheckError(_UNDEFINED) from error
        if any(g is not None and bool((g != 0).any()) for g in found):
            _warn_undefined()
            raise GradcheckError(_UNDEFINED)


def _warn_undefined():
    warnings.warn("Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
                  "break "
                  "existing callers of this function. If this is true for you, you can call this function with "
                  "\"check_undefined_grad=False\" to disable the feature", stacklevel=5)


def _multiplied(check, outputs):
    """Zero cotangents must give zero gradients."""
    outs = [o for _, o in _differentiable(outputs)]
    found = _grad(outs, [check.inputs[i] for i in check.chosen], [zeros_like(o) for o in outs], retain_graph=True,
                  allow_unused=True)
    for g, i in zip(found, check.chosen):
        if g is None:
            continue
        if bool((g != 0).any()):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != check.inputs[i].dtype:
            raise GradcheckError("grad is incorrect type")
        if g.shape != check.inputs[i].shape:
            raise GradcheckError("grad is incorrect size")


def _batched(check, outputs):
    """Gradients of several cotangents at once are those of one after the other."""
    for k, out in _differentiable(outputs):
        rows = from_numpy(np.stack([_direction(tuple(out.shape), out.is_complex()), np.ones(tuple(out.shape))])).to(out.dtype)
        inputs = [check.inputs[i] for i in check.chosen]
        together = _grad([out], inputs, [rows], retain_graph=True, allow_unused=True, is_grads_batched=True)
        apart = [_grad([out], inputs, [r], retain_graph=True, allow_unused=True) for r in rows]
        for j, t in enumerate(together):
            if t is not None and not np.allclose(_array(t), np.stack([_array(one[j]) for one in apart]), equal_nan=True):
                raise GradcheckError(f"For output {k} and input {j}:\nbatched gradients differ from those computed one by one.")


def _validate(check):
    if not check.chosen:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have "
                         "requires_grad=True.")
    for i in check.chosen:
        x = check.inputs[i]
        if x.dtype not in (float64, complex128):
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will "
                          "likely fail if all the inputs are not of double precision floating point or complex. ", stacklevel=5)
        if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
            raise RuntimeError(f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                               "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                               ".contiguous "
                               "on the input before passing it to gradcheck.")
        x.retain_grad()


def _run(func, inputs, eps, atol, rtol, nondet_tol, undefined, dtypes, batched, forward, backward, fast):
    check = _Check(func, inputs, eps, atol, rtol)
    _validate(check)
    with enable_grad():
        outputs = check.outputs()
    if not outputs:
        return
    if any(getattr(o, "_compound", False) for o in outputs):
        raise ValueError("Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for "
                         "gradcheck.")
    if not any(o.requires_grad for o in outputs):
        for i in check.chosen:
            if any(bool((n != 0).any()) for o, per_output in zip(outputs, check.numerical(i)) for n in per_output
                   if o.is_floating_point() or o.is_complex()):
                raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    if backward and _differentiable(outputs):
        _backward_fast(check, outputs, nondet_tol) if fast else _backward_slow(check, outputs, nondet_tol, dtypes)
        if batched:
            _batched(check, outputs)
        _multiplied(check, outputs)
        if undefined:
            _undefined(check)
    if forward:
        _forward(check, outputs, fast)


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
              check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
              check_backward_ad=True, fast_mode=False, masked=None):
    """Whether backward (and forward mode) agree with central differences, for every input that requires grad.

    `fast_mode`: along one direction instead of all. GradcheckError where they disagree and `raise_exception`. Source: PyTorch,
    torch.autograd.gradcheck.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = _tuple(inputs)
    if any(getattr(x, "_compound", False) for x in inputs):
        from ..sparse._gradcheck import dense_form

        func, inputs = dense_form(func, inputs, bool(masked), False)
    try:
        _run(func, inputs, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad,
             check_forward_ad, check_backward_ad, fast_mode)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
                  raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False,
                  check_batched_grad=False, check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False):
    """gradcheck of the gradient itself, with random cotangents unless given. Source: PyTorch, torch.autograd.gradgradcheck."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    inputs = _tuple(inputs)
    if grad_outputs is None:
        outputs = [o for o in _tuple(func(*inputs)) if isinstance(o, Tensor) and o.requires_grad]
        grad_outputs = []
        for o in outputs:
            dtype = o.dtype if o.dtype in (float64, complex128) else (complex128 if o.is_complex() else float64)
            g = randn(tuple(o.shape), dtype=dtype)
            if gen_non_contig_grad_outputs and g.dim():
                g = g.unsqueeze(-1).expand(*g.shape, 2).clone().select(-1, 0)
            grad_outputs.append(g.detach().requires_grad_())
    grad_outputs = _tuple(grad_outputs)
    number = len(grad_outputs)

    def gradient(*args):
        given, vectors = args[: len(args) - number], args[len(args) - number:]
        outputs = [o for o in _tuple(func(*given)) if isinstance(o, Tensor) and o.requires_grad]
        wanted = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
        found = _grad(outputs, wanted, vectors, create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None])

    return gradcheck(gradient, inputs + grad_outputs, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
                     check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
                     check_backward_ad=check_rev_over_rev, fast_mode=fast_mode)
