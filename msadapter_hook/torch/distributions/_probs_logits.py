# What the distributions share that are given by probabilities or by logits, of which the other one is computed.
from numbers import Number

from .. import tensor
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def one_of(probs, logits):
    """ValueError unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def take(self, probs, logits, *others):
    """Sets `probs` or `logits` on a distribution, broadcast with other parameters, which are returned."""
    one_of(probs, logits)
    name, value = ("probs", probs) if probs is not None else ("logits", logits)
    *others, value = broadcast_all(*others, value)
    setattr(self, name, value)
    self._param = value
    return others


def expand_given(self, new, shape):
    """Expands whichever of the two exist onto a new instance."""
    for name in ("probs", "logits"):
        if name in self.__dict__:
            value = self.__dict__[name].expand(shape)
            new.__dict__[name] = value
            new._param = value


class Binary:
    """A distribution over trials that succeed or fail: `probs` and `logits` are a number a trial, in `_param` the one given."""

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self):
        return self._param.size()

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)


__all__ = ["Binary", "Number", "expand_given", "one_of", "take", "tensor"]
