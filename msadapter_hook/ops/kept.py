"""What PyTorch keeps for the gradient of an operator: writing to it before backward is an error, and hooks on saved tensors see it.

Said where an operator is declared (`saves=`), or here. A name is that of a parameter, `result` or `result1`, … for one of several
results. `name:other` is kept where `other` requires grad, `name?other` where it is a tensor. Source: observed with PyTorch 2.13.
"""

import weakref

from msadapter_hook.tensor import Tensor

INFERENCE_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by "
    "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
    "instead of `torch.inference_mode()`.")

_PAIR = "self:other other:self"

SAVES = {
    # pointwise
    "pow.Tensor": "self exponent result?exponent", "float_power.Tensor": "result?exponent",
    "clamp_max.Tensor": "self max", "clamp_min.Tensor": "self min", "complex": "real:real imag:imag", "polar": "result",
    "copysign.Tensor": "self:self result", "erfinv": "self", "frexp.Tensor": "result1", "hypot": "self:self other:other result",
    "ldexp.Tensor": "other:self result", "lerp.Tensor": "self:weight end:weight weight", "sgn": "self result",
    "remainder.Tensor": "self:other other:other", "fmod.Tensor": "self:other other:other", "where.self": "condition",
    "special.erfcx": "self result", "special.i0e": "self result", "special.i1": "self result", "special.i1e": "self result",
    "special.log_ndtr": "self result", "special.ndtr": "", "nextafter": "",
    # reductions, order and positions
    "aminmax": "self result result1", "cummax": "self result1", "cummin": "self result1", "kthvalue": "result1", "mode": "result1",
    "median.dim": "result1", "nanmedian.dim": "result1", "sort": "result1", "sort.stable": "result1", "topk": "result1",
    "max.dim": "result1", "min.dim": "result1", "nanmean": "self", "std_mean": "self result", "std_mean.dim": "self result",
    "std_mean.correction": "self result",
    # elements by position
    "gather": "self index", "take": "self index", "masked_select": "self mask", "index_add": "index:source source:source",
    "index_copy": "index source:source", "index_reduce": "self index source result", "scatter_reduce.two": "self index src result",
    "scatter_add": "index:src", "put": "index source:source", "segment_reduce": "data lengths result", "embedding": "indices",
    "_embedding_bags": "weight:per_sample_weights indices offsets per_sample_weights", "_unsafe_masked_index": "mask indices",
    "_unsafe_masked_index_put_accumulate": "mask indices",
    # products
    "_einsum": "operands", "inner": _PAIR, "_tensordot": _PAIR, "outer": "self:vec2 vec2:self",
    "linalg.vecdot": "x:y y:x", "_attention_values": "value",
    **{f"nn.functional.conv{kind}{n}d": "input weight" for kind in ("", "_transpose") for n in (1, 2, 3)}, "convolution": "input weight",
    # linear algebra
    "linalg.cholesky_ex": "result", "linalg.eigh": "result result1", "linalg.eigvalsh": "result", "linalg.inv_ex": "result",
    "linalg.householder_product": "input tau result", "linalg.lstsq": "self B result", "linalg.lu": "result result1 result2",
    "linalg.lu_factor": "result result1", "linalg.lu_factor_ex": "result result1", "linalg.lu_solve": "LU pivots result",
    "lu_solve": "LU_data LU_pivots result", "linalg.slogdet": "A result", "linalg.solve_ex": "A result",
    "linalg.svd": "result result1 result2", "linalg.svdvals": "result", "svd": "result result1 result2", "linalg.tensorinv": "result",
    "linalg.tensorsolve": "result", "ormqr": "self input2 input3 result", "triangular_solve": "self A result",
    # layers
    "native_group_norm": "input weight result1 result2", "native_layer_norm": "input weight bias result1 result2",
    "nn.functional.layer_norm": "input weight bias", "nn.functional.rms_norm": "input:input weight:input",
    "nn.functional.local_response_norm": "input",
    **{name: "self result1" for n in (1, 2, 3) for name in (f"_max_pool{n}d_with_indices", f"_adaptive_max_pool{n}d")},
    "_max_unpool": "indices", "_fractional_max_pool": "self result1",
    # losses
    "nn.functional.binary_cross_entropy": "input target weight", "nn.functional.cross_entropy": "target weight",
    "nn.functional.binary_cross_entropy_with_logits": "input target weight pos_weight", "nn.functional.nll_loss": "input target weight",
    "nn.functional.multi_margin_loss": "input target weight", "nn.functional.multilabel_margin_loss": "input target",
    "nn.functional.cosine_embedding_loss": "input1 input2", "nn.functional.cosine_similarity": "x1:x1 x2:x2",
    "nn.functional.pairwise_distance": "result", "nn.functional.pdist": "input result", "nn.functional.l1_loss": "",
    "_ctc_loss": "log_probs targets",
}


def parse(key, declared):
    """((name, condition or None), ...) of an operator: what is said here, else what was declared with it."""
    made = []
    for part in (SAVES.get(key, declared) or "").split():
        mark = next((m for m in ":?" if m in part), None)
        name, _, other = part.partition(mark) if mark else (part, None, None)
        made.append((name, (mark, other) if mark else None))
    return tuple(made)


def place_of(name):
    """The number of a result; None for a parameter."""
    return int(name[len("result"):] or 0) if name.startswith("result") else None


def holds(overload, condition, bound):
    """Whether something is kept under its condition."""
    if condition is None:
        return True
    mark, name = condition
    other = bound[overload.positions[name]]
    return isinstance(other, Tensor) and (mark == "?" or other.requires_grad)


def arguments(overload, bound):
    """(place among the arguments, tensor) of the single tensors that are kept."""
    for name, condition in overload.saves:
        if place_of(name) is None and holds(overload, condition, bound):
            place = overload.positions[name]
            if isinstance(bound[place], Tensor):
                yield place, bound[place]


def results(overload, bound, made):
    """(number, tensor) of the results that are kept."""
    places = [place_of(name) for name, condition in overload.saves if place_of(name) is not None and holds(overload, condition, bound)]
    return [(k, made[k]) for k in places if k < len(made) and isinstance(made[k], Tensor)]


def _of_list(tensors):
    """Of several factors each is kept where another one requires grad."""
    return [t for t in tensors if isinstance(t, Tensor) and any(o is not t and isinstance(o, Tensor) and o.requires_grad for o in tensors)]


def versions(overload, bound, made, inplace=False):
    """(counter, version, shape, dtype, whose, name) of each tensor that PyTorch keeps for the gradient of a call with the results `made`.

    The in-place form keeps a copy of `self`, and the result only as it is after the write: see `version_of`.
    """
    found = []
    for name, condition in overload.saves:
        place = place_of(name)
        if place is not None or not holds(overload, condition, bound):
            continue
        place = overload.positions[name]
        if inplace and not place:
            continue
        value = bound[place]
        for one in _of_list(value) if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, Tensor):
                if one._history.storage.inference:
                    raise RuntimeError(INFERENCE_SAVED)
                found.append(version_of(one, name))
    if not inplace:
        found += results_of(overload, bound, made)
    return tuple(found)


def versions_of(key):
    """What `versions` gives, of the index tensors in a key."""
    tensors = [t for t in (key if isinstance(key, (tuple, list)) else (key,)) if isinstance(t, Tensor)]
    if any(t._history.storage.inference for t in tensors):
        raise RuntimeError(INFERENCE_SAVED)
    return tuple([version_of(t, "indices") for t in tensors])


def results_of(overload, bound, made):
    """What `versions` gives, of the results that are kept; under the names that the schema has for them."""
    names = overload.schema.returns
    return [version_of(one, names[k] or ("result" if len(names) < 2 else f"result{k}"), k if one.requires_grad else None)
            for k, one in results(overload, bound, made)]


def version_of(tensor, name, number=None):
    """`number`: that of a result of the very node; of other tensors a weak reference is kept, for the error that names their makers."""
    version = tensor._history.version
    return (version, version.count, tensor._size, tensor._dtype, weakref.ref(tensor) if number is None else number, name)
