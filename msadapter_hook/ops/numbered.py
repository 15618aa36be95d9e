"""The root's own forms of losses, bags and recurrent layers: reductions and modes as numbers, weights as lists."""

from msadapter_hook.tape import no_grad
from msadapter_hook.tensor import Tensor

from .registry import plain
from .tables import METHODS, call

_REDUCTIONS = ("none", "mean", "sum")


def _words(reduction):
    """A reduction given as PyTorch's number (or already as a word).

    The root's functions reduce nothing by default, whatever their documentation says.
    """
    return reduction if isinstance(reduction, str) else _REDUCTIONS[reduction]


# ------------------------------------------------------------------------------------------------ losses
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    """As nn.functional, with the reduction as a number. Source: PyTorch, torch.binary_cross_entropy_with_logits."""
    return call("nn.functional.binary_cross_entropy_with_logits", input, target, weight, reduction=_words(reduction),
                pos_weight=pos_weight)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    """As nn.functional, with the reduction as a number. Source: PyTorch, torch.cosine_embedding_loss."""
    return call("nn.functional.cosine_embedding_loss", input1, input2, target, margin, reduction=_words(reduction))


def hinge_embedding_loss(input, target, margin=1.0, reduction=0):
    """As nn.functional, with the reduction as a number. Source: PyTorch, torch.hinge_embedding_loss."""
    return call("nn.functional.hinge_embedding_loss", input, target, margin, reduction=_words(reduction))


def kl_div(input, target, reduction=0, *, log_target=False):
    """As nn.functional, with the reduction as a number. Source: PyTorch, torch.kl_div."""
    made = call("nn.functional.kl_div", input, target, reduction="none", log_target=log_target)
    words = _words(reduction)
    return made if words == "none" else made.mean() if words == "mean" else made.sum()


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    """As nn.functional, with the reduction as a number. Source: PyTorch, torch.margin_ranking_loss."""
    return call("nn.functional.margin_ranking_loss", input1, input2, target, margin, reduction=_words(reduction))


def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """As nn.functional, with the reduction as a number. Source: PyTorch, torch.poisson_nll_loss."""
    return call("nn.functional.poisson_nll_loss", input, target, log_input, full, eps=eps, reduction=_words(reduction))


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction=0):
    """As nn.functional, with the reduction as a number. Source: PyTorch, torch.triplet_margin_loss."""
    return call("nn.functional.triplet_margin_loss", anchor, positive, negative, margin, p, eps, swap,
                reduction=_words(reduction))


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    """As nn.functional, with the reduction as a number. Source: PyTorch, torch.ctc_loss."""
    return call("nn.functional.ctc_loss", log_probs, targets, input_lengths, target_lengths, blank, _words(reduction),
                zero_infinity)


# ------------------------------------------------------------------------------------------------ tables
def embedding_renorm_(input, indices, max_norm, norm_type):
    """Shorten the rows in use to `max_norm`, in place. Source: PyTorch, torch.embedding_renorm_."""
    from .embedding import _renormalize

    with no_grad():
        _renormalize(input, indices, max_norm, norm_type)
    return input


def _adaptive_avg_pool2d(input, output_size):
    """As nn.functional.adaptive_avg_pool2d. Source: PyTorch, torch._adaptive_avg_pool2d."""
    return call("nn.functional.adaptive_avg_pool2d", input, output_size)


def _adaptive_avg_pool3d(input, output_size):
    """As nn.functional.adaptive_avg_pool3d. Source: PyTorch, torch._adaptive_avg_pool3d."""
    return call("nn.functional.adaptive_avg_pool3d", input, output_size)


# ------------------------------------------------------------------------------------------------ recurrent layers
def _recurrent(name, input, states, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """Layers in both directions over `input`: the output and the last states, stacked by layer and direction."""
    directions, per = 2 if bidirectional else 1, 4 if has_biases else 2
    if len(params) != num_layers * directions * per:
        raise NotImplementedError(f"torch.{name}: projections (proj_size) are not supported here; use torch.nn.LSTM(proj_size=…)")
    x = input.transpose(0, 1) if batch_first else input
    last = [[] for _ in states]
    for layer in range(num_layers):
        if layer and dropout and train:
            x = call("nn.functional.dropout", x, dropout, True)
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            w = list(params[k * per:(k + 1) * per]) + [None] * (4 - per)
            run = x.flip(0) if direction else x
            first = [s[k] for s in states]
            if name == "lstm":
                made = call("_lstm_layer", run, *first, *w)
            elif name == "gru":
                made = call("_gru_layer", run, *first, *w)
            else:
                made = call("_rnn_layer", run, *first, *w, name[4:])
            outputs.append(made[0].flip(0) if direction else made[0])
            for kept, s in zip(last, made[1:]):
                kept.append(s)
        x = call("cat", outputs, -1) if bidirectional else outputs[0]
    return (x.transpose(0, 1) if batch_first else x, *[call("stack", s) for s in last])


def _declare(name):
    def layer(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first=None):
        if batch_first is None or isinstance(hx, Tensor) and isinstance(params, Tensor):
            raise NotImplementedError(f"torch.{name} with packed data is not supported here; use torch.nn.utils.rnn with "
                                      "torch.nn modules")
        states = hx if name == "lstm" else (hx,)
        return _recurrent(name, input, states, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)

    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = f"Recurrent layers with their weights as a list. Source: PyTorch, torch.{name}."
    plain(layer)


for _name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
    _declare(_name)


# ------------------------------------------------------------------------------------------------ names that are gone
def _removed(name, instead, method):
    def gone(*args, **kwargs):
        raise RuntimeError("This function was deprecated since version 1.9 and is now removed. "
                           f"Use {instead} instead of torch.{name}.")

    gone.__name__ = gone.__qualname__ = name
    gone.__doc__ = f"Removed; use {instead}."
    plain(gone)
    if method:
        METHODS[name] = gone


for _name, _instead, _method in (
        ("solve", "torch.linalg.solve(A, B)", True), ("lstsq", "torch.linalg.lstsq(A, B)", True),
        ("eig", "torch.linalg.eig", True), ("symeig", "torch.linalg.eigh", True),
        ("matrix_rank", "torch.linalg.matrix_rank", False)):
    _removed(_name, _instead, _method)

for _f in (binary_cross_entropy_with_logits, cosine_embedding_loss, hinge_embedding_loss, kl_div, margin_ranking_loss,
           poisson_nll_loss, triplet_margin_loss, ctc_loss, embedding_renorm_, _adaptive_avg_pool2d, _adaptive_avg_pool3d):
    plain(_f)
