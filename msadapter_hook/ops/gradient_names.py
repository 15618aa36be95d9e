"""PyTorch's names of gradient nodes, where they are not the operator's name in camel case with `Backward0`.

Users see them: `print(tensor)` shows `grad_fn=<AddmmBackward0>`. The number counts the derivative formulas of an operator, one or
more an overload; an operator that PyTorch makes of others shows the last of those. Source: observed with PyTorch 2.13.
"""

import functools
import re

from msadapter_hook.tensor import Tensor


@functools.cache
def camel(name):
    """`log_softmax` → `LogSoftmax`; a letter after a digit is large too: `log1p` → `Log1P`."""
    joined = "".join(part[:1].upper() + part[1:] for part in name.strip("_").split("_"))
    return re.sub(r"\d[a-z]", lambda found: found[0].upper(), joined)


def default(name):
    """The name of an operator's own gradient: "special.i1e" → "SpecialI1EBackward0"."""
    namespace, _, short = name.rpartition(".")
    prefix = camel(namespace) if namespace in ("special", "linalg") else ""
    return f"{prefix}{camel(short)}Backward0"


# ------------------------------------------------------------------------------------------------ names that depend on the call
# Such an entry is a function of the result and of `given`, which gives an argument by its name.
def _tensor(parameter, name, yes, no):
    """Formula number `yes` where an argument is a tensor, else `no`."""
    return lambda result, given: f"{name}Backward{yes if isinstance(given(parameter), Tensor) else no}"


def _pow(result, given):
    if not isinstance(given("self"), Tensor):
        return "PowBackward2"
    return "PowBackward1" if isinstance(given("exponent"), Tensor) else "PowBackward0"


def _clamp(result, given):
    return f"ClampBackward{0 if isinstance(given('min'), Tensor) or isinstance(given('max'), Tensor) else 1}"


def _rounded(result, given):
    return "DivBackward0" if given("rounding_mode") is None else "DivBackward2"


def _reduced(each, mean="MeanBackward0"):
    """A loss made of pointwise operators, `each` the last of them, and a reduction."""
    return lambda result, given: {"mean": mean, "sum": "SumBackward0"}.get(given("reduction"), each)


def _unbatched(dims, name):
    """An operator over `dims` dimensions that takes a sample without a batch as a batch of one."""
    return lambda result, given: "SqueezeBackward1" if len(result.shape) == dims + 1 else name


def _matmul(result, given):
    a, b = (len(given(name)._size) for name in ("self", "other"))
    if a <= 2 and b <= 2:
        return {(1, 1): "DotBackward0", (1, 2): "SqueezeBackward4", (2, 1): "MvBackward0", (2, 2): "MmBackward0"}[a, b]
    if a == 2 and given("self").requires_grad:  # computed transposed
        return "CloneBackward0"
    return "UnsafeViewBackward0"


def _linear(result, given):
    rank, bias = len(given("input")._size), given("bias")
    if rank == 2:
        return "MmBackward0" if bias is None else "AddmmBackward0"
    if bias is None:
        return "SqueezeBackward4" if rank == 1 else "UnsafeViewBackward0"
    return "ViewBackward0" if given("input").is_contiguous() else "AddBackward0"


def _einsum(result, given):
    inputs, _, output = given("equation").replace(" ", "").partition("->")
    operands = inputs.split(",")
    if len(operands) == 1:
        return "SumBackward1" if set(inputs) - set(output) or len(set(inputs)) < len(inputs) and output else "PermuteBackward0"
    return "ViewBackward0" if set(inputs) - set(output) - {","} else "MulBackward0"


_INTERPOLATION = {"nearest": "UpsampleNearest", "nearest-exact": "UpsampleNearestExact", "linear": "UpsampleLinear",
                  "bilinear": "UpsampleBilinear", "bicubic": "UpsampleBicubic", "trilinear": "UpsampleTrilinear"}


def _interpolate(result, given):
    return f"{_INTERPOLATION[given('mode')]}{len(result.shape) - 2}D{'Aa' if given('antialias') else ''}Backward0"


def _by_rank(name):
    return lambda result, given: name.format(len(result.shape) - 2)


def _max_unpool(result, given):
    n = len(given("output_size"))
    return "SqueezeBackward1" if n == 1 else f"MaxUnpool{n}DBackward0"


def _adaptive(dims):
    """One number for each image is its mean."""
    return lambda result, given: f"AdaptiveAvgPool{dims}DBackward0" if any(n != 1 for n in result.shape[-dims:]) else "MeanBackward1"


def _fractional(result, given):
    return f"FractionalMaxPool{len(given('output_size'))}DBackward0"


def _fft(complex_name, real_name):
    """A transform to complex numbers; PyTorch takes real input by another way."""
    return lambda result, given: complex_name if given("self")._dtype.is_complex else real_name


def _nll(result, given):
    return "NllLossBackward0" if len(given("input")._size) <= 2 else "NllLoss2DBackward0"


def _cross_entropy(result, given):
    target, soft = given("target"), given("target")._dtype.is_floating_point
    if soft:
        return {"mean": "DivBackward1", "sum": "NegBackward0"}.get(given("reduction"), "NegBackward0")
    if given("label_smoothing"):
        return "AddBackward0"
    return _nll(result, given) if target is not None else ""


def _kl(result, given):
    return {"mean": "MeanBackward0", "sum": "SumBackward0", "batchmean": "DivBackward0"}.get(
        given("reduction"), "MulBackward0" if given("log_target") else "SubBackward0")


def _inner(result, given):
    return "ViewBackward0" if given("self").ndim and given("other").ndim else "MulBackward0"


def _vector_norm(result, given):
    order, dim = given("ord"), given("dim")
    if order is None and (dim is None or isinstance(dim, int) or len(dim) < 3) or order is not None and isinstance(dim, int):
        return "LinalgVectorNormBackward0"
    return _matrix_norm(result, given)


def _matrix_norm(result, given):
    order = given("ord")
    if order in ("fro", None):
        return "LinalgVectorNormBackward0"
    if order == "nuc":
        return "SumBackward1"
    return "AmaxBackward0" if order > 0 else "AminBackward0"


# ------------------------------------------------------------------------------------------------ the table
NAMES = {
    # the formula of another overload
    "clamp.Tensor": _clamp,
    "clamp": _clamp,
    "clamp_max.Tensor": _tensor("max", "ClampMax", 1, 0),
    "clamp_min.Tensor": _tensor("min", "ClampMin", 1, 0),
    "copysign.Tensor": _tensor("other", "Copysign", 0, 1),
    "div.Tensor": _rounded,
    "fmod.Tensor": _tensor("other", "Fmod", 1, 0),
    "index_fill.int_Tensor": "IndexFillBackward1",
    "lerp.Tensor": _tensor("weight", "Lerp", 1, 0),
    "masked_fill.Tensor": "MaskedFillBackward1",
    "median.dim": "MedianBackward1",
    "nanmedian.dim": "NanmedianBackward1",
    "pow.Tensor": _pow,
    "float_power.Tensor": _pow,
    "remainder.Tensor": _tensor("other", "Remainder", 1, 0),
    "round": lambda result, given: f"RoundBackward{1 if given('decimals') else 0}",
    "rsub.Tensor": _tensor("other", "Rsub", 0, 1),
    "scatter.value": "ScatterBackward1",
    "sort": "SortBackward0",
    "sort.stable": lambda result, given: f"SortBackward{0 if given('stable') is None else 1}",
    # products
    "matmul": _matmul,
    "nn.functional.linear": _linear,
    "nn.functional.bilinear": lambda result, given: "ViewBackward0" if given("bias") is None else "AddBackward0",
    "inner": _inner,
    "nn.functional.grouped_mm": "GroupedMmBackward0",
    "kron": "UnsafeViewBackward0",
    "_einsum": _einsum,
    "_tensordot": "ViewBackward0",
    "linalg.multi_dot": "ViewBackward0",
    "linalg.vecdot": lambda result, given: "SumBackward1" if given("x").ndim > 1 else "VdotBackward0",
    "linalg.matrix_power": lambda result, given: "LinalgInvExBackward0" if given("n") == -1 else (
        "UnsafeViewBackward0" if given("self").ndim > 2 else "MmBackward0"),
    "cross": "LinalgCrossBackward0",
    # norms
    "dist": "DistBackward0",
    "linalg.norm": _vector_norm,
    "linalg.norm.ord_str": _matrix_norm,
    "linalg.matrix_norm": _matrix_norm,
    "linalg.matrix_norm.str_ord": _matrix_norm,
    "linalg.cond": "SqueezeBackward1",
    "logdet": "WhereBackward0",
    "nn.functional.cosine_similarity": "SumBackward1",
    "nn.functional.pairwise_distance": "NormBackward1",
    "nn.functional.rms_norm": "MulBackward0",
    "nn.functional.local_response_norm": "DivBackward0",
    "nanmean": "DivBackward0",
    # convolution and pooling
    "nn.functional.conv1d": _unbatched(1, "ConvolutionBackward0"),
    "nn.functional.conv2d": _unbatched(2, "ConvolutionBackward0"),
    "nn.functional.conv3d": _unbatched(3, "ConvolutionBackward0"),
    "nn.functional.conv_transpose1d": _unbatched(1, "ConvolutionBackward0"),
    "nn.functional.conv_transpose2d": _unbatched(2, "ConvolutionBackward0"),
    "nn.functional.conv_transpose3d": _unbatched(3, "ConvolutionBackward0"),
    "nn.functional.adaptive_avg_pool1d": "SqueezeBackward1",
    "nn.functional.adaptive_avg_pool2d": _adaptive(2),
    "nn.functional.adaptive_avg_pool3d": _adaptive(3),
    "_max_unpool": _max_unpool,
    "_fractional_max_pool": _fractional,
    "_interpolate": _interpolate,
    "_grid_sample": _by_rank("GridSampler{}DBackward0"),
    "nn.functional.adaptive_max_pool1d": "SqueezeBackward1",
    # transforms
    "fft.fft": _fft("FftC2CBackward0", "FftR2CBackward0"),
    "fft.ifft": _fft("FftC2CBackward0", "ConjBackward0"),
    # losses
    "nn.functional.cross_entropy": _cross_entropy,
    "nn.functional.nll_loss": _nll,
    "nn.functional.kl_div": _kl,
    "nn.functional.l1_loss": _reduced("AbsBackward0"),
    "nn.functional.margin_ranking_loss": _reduced("ClampMinBackward0"),
    "nn.functional.multilabel_soft_margin_loss": _reduced("DivBackward0"),
    "nn.functional.cosine_embedding_loss": _reduced("AddBackward0"),
    "nn.functional.hinge_embedding_loss": _reduced("AddBackward0"),
    "nn.functional.gaussian_nll_loss": _reduced("AddBackward0"),
    "nn.functional.poisson_nll_loss": _reduced("SubBackward0"),
    "_ctc_loss": _reduced("WhereBackward0"),
    # made of others
    "square": "PowBackward0",
    "fliplr": "FlipBackward0",
    "flipud": "FlipBackward0",
    "special.ndtr": "MulBackward1",
    # composites here that have a formula of their own there
    "_block_diag": "BlockDiagBackward0",
    "_hinge": _reduced("ClampMinBackward0"),
    "quantile": "SqueezeBackward4",
    "nanquantile": "SqueezeBackward4",
    "combinations": "StackBackward0",
    "diag_embed": "DiagEmbedBackward0",
    "rot90": "Rot90Backward0",
    "select_scatter": "SelectScatterBackward0",
    "sum_to_size": "SumBackward1",
    "trace": "TraceBackward0",
    "pixel_shuffle": "PixelShuffleBackward0",
    "pixel_unshuffle": "PixelUnshuffleBackward0",
    "channel_shuffle": "ChannelShuffleBackward0",
    "trapezoid.dx": "MulBackward1",
    "trapezoid.x": "DivBackward1",
    "cumulative_trapezoid.x": "DivBackward1",
    "diag": lambda result, given: "DiagEmbedBackward0" if given("self").ndim == 1 else "DiagonalBackward0_copy",
    "diagflat": "DiagEmbedBackward0",
    "slice_scatter": "SliceScatterBackward0",
    "vander": lambda result, given: "CopySlices" if given("increasing") else "FlipBackward0",
    "linalg.vander": "CatBackward0",
    "normal.Tensor_float": "NormalBackward1",
    "normal.float_Tensor": "NormalBackward2",
    "normal.Tensor_Tensor": "NormalBackward3",
    "nn.functional.affine_grid": "AffineGridGeneratorBackward0",
    "unsafe_split": "UnsafeSplitBackward0",
    "unsafe_chunk": "UnsafeSplitBackward0",
    "narrow_copy": "NarrowCopyBackward0",
    "squeeze_copy.dim": "SqueezeBackward1_copy",
    "squeeze_copy": "SqueezeBackward0_copy",
    "fill.Scalar": "FillBackward0",
    "fill.Tensor": "FillBackward1",
} | {f"{name}_copy": f"{camel(name)}Backward0_copy" for name in (
    "view", "permute", "transpose", "t", "select", "unsqueeze", "as_strided", "diagonal", "unfold", "detach", "view_as_real",
    "view_as_complex", "expand", "alias", "slice", "unbind", "split_with_sizes")}
