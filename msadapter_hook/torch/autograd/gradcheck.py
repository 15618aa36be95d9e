"""torch.autograd.gradcheck: analytical gradients against finite differences."""

from msadapter_hook.autograd.api import grad as _grad

from .. import Tensor, complex128, enable_grad, float64, no_grad, zeros, zeros_like

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A gradient that disagrees. Source: PyTorch, torch.autograd.gradcheck.GradcheckError."""


def _tuple(x):
    return tuple(x) if isinstance(x, (list, tuple)) else (x,)


def _differentiable(outputs):
    return [o for o in _tuple(outputs) if isinstance(o, Tensor) and o.requires_grad]


def _numerical(func, inputs, place, eps):
    """Rows: elements of input `place`; for each output a matrix (elements of the input, elements of the output)."""
    x = inputs[place]
    columns = None
    steps = (eps, 1j * eps) if x.is_complex() else (eps,)
    with no_grad():
        flat = x.data.reshape(-1)
        for i in range(x.numel()):
            ds = []
            for step in steps:
                original = flat[i].item()
                _poke(x, i, original + step)
                high = [o.detach().clone() for o in _tuple(func(*inputs)) if isinstance(o, Tensor)]
                _poke(x, i, original - step)
                low = [o.detach().clone() for o in _tuple(func(*inputs)) if isinstance(o, Tensor)]
                _poke(x, i, original)
                ds.append([(h - low_).reshape(-1) / (2 * eps) for h, low_ in zip(high, low)])
            columns = columns or [[] for _ in ds[0]]
            for k in range(len(ds[0])):
                columns[k].append([d[k] for d in ds])
    return columns or []


def _poke(x, i, value):
    with no_grad():
        data = x.data
        flat = data.view(-1) if data.is_contiguous() else None
        if flat is not None:
            flat[i] = value
        else:
            index, rest = [], i
            for n in reversed(x.shape):
                index.append(rest % n)
                rest //= n
            data[tuple(reversed(index))] = value


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
              check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
              check_backward_ad=True, fast_mode=False, masked=None):
    """Whether backward agrees with central differences, for every input that requires grad. Source: PyTorch,
    torch.autograd.gradcheck. GradcheckError where it does not and `raise_exception`."""
    try:
        _check(func, _tuple(inputs), eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs, eps, atol, rtol, nondet_tol):
    chosen = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    if not chosen:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have "
                         "requires_grad=True.")
    for i in chosen:
        if inputs[i].dtype not in (float64, complex128):
            import warnings

            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will "
                          "likely fail if all the inputs are not of double precision floating point or complex. ", stacklevel=3)
        inputs[i].retain_grad()
    with enable_grad():
        every = [o for o in _tuple(func(*inputs)) if isinstance(o, Tensor)]
    if not any(o.requires_grad for o in every):
        for i in chosen:
            for column in _numerical(func, inputs, i, eps):
                if any(bool((d != 0).any()) for row in column for d in row):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    for i in chosen:
        x = inputs[i]
        numerical = _numerical(func, inputs, i, eps)
        for k, out in enumerate(every):
            if not out.requires_grad:
                continue
            analytical = _analytical(out, x)
            for j in range(x.numel()):
                for part, d in enumerate(numerical[k][j]):
                    _compare(analytical, d, j, part, x, out, atol, rtol, i, k)


def _analytical(out, x):
    """For each output element (and real and imaginary cotangent) the gradient with respect to the flat input."""
    rows = []
    flat = out.reshape(-1)
    for m in range(out.numel()):
        pair = []
        for unit in ((1.0, 1j) if out.is_complex() else (1.0,)):
            v = zeros_like(flat)
            v[m] = unit
            g, = _grad(flat, x, v, retain_graph=True, allow_unused=True)
            pair.append(zeros(x.numel(), dtype=x.dtype) if g is None else g.reshape(-1))
        rows.append(pair)
    return rows


def _compare(analytical, difference, j, part, x, out, atol, rtol, i, k):
    """One input element's numerical derivative against the rows of the analytical Jacobian."""
    values = []
    for pair in analytical:
        parts = []
        for g in pair:  # the derivative of Re(conj(v) out) along the real or imaginary direction
            z = g[j].item()
            parts.append((z.real if part == 0 else z.imag) if isinstance(z, complex) else z)
        values.append(complex(*parts) if len(parts) == 2 else parts[0])
    for m, a in enumerate(values):
        n = difference[m].item()
        if not abs(a - n) <= atol + rtol * abs(n):
            raise GradcheckError(f"Jacobian mismatch for output {k} with respect to input {i},\nnumerical:{n}\nanalytical:{a}\n "
                                 f"(element {j} of the input, {m} of the output)")


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
                  raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False,
                  check_batched_grad=False, check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False):
    """gradcheck of the gradient itself. Source: PyTorch, torch.autograd.gradgradcheck."""
    inputs = _tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*inputs))
        from .. import randn

        grad_outputs = tuple([randn(tuple(o.shape), dtype=o.dtype).requires_grad_() for o in outputs])
    else:
        grad_outputs = _tuple(grad_outputs)
    number = len(grad_outputs)

    def gradient(*args):
        given, vectors = args[:-number], args[-number:]
        outputs = _differentiable(func(*given))
        wanted = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
        found = _grad(outputs, wanted, vectors, create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None])

    return gradcheck(gradient, inputs + tuple(grad_outputs), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol)
