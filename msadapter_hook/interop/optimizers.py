"""Served optimizers where MindSpore wants one of its own: in Model, TrainOneStepCell, build_train_network."""

import weakref

import mindspore
from mindspore import nn

from . import crossing, parameters
from .references import served_class


class ServedOptimizer(nn.Optimizer):
    """A torch.optim optimizer as MindSpore's; `optimizer` is itself. Its parameters are MindSpore's, over the same memory."""

    def __init__(self, optimizer):
        nn.Cell.__init__(self, auto_prefix=False)  # the optimizer base class would make a state of its own
        self.__dict__["_adapter_mixed"] = True
        self.__dict__["optimizer"] = optimizer
        self.parameters = mindspore.ParameterTuple(parameters.native_tree(list(optimizer.parameters)))

    def construct(self, gradients):
        """One step with these gradients, of either side."""
        self.optimizer(crossing.cast_to_adapter_tensor(gradients))
        return mindspore.Tensor(True)

    def get_lr(self):
        """The learning rate, one per group where there are several."""
        rates = [mindspore.Tensor(float(group["lr"]), mindspore.float32) for group in self.optimizer.param_groups]
        return rates[0] if len(rates) == 1 else tuple(rates)


_made = weakref.WeakKeyDictionary()  # optimizer -> its Cell


def is_optimizer(x):
    """Whether `x` is an optimizer of the served tree."""
    return hasattr(type(x), "add_param_group") and hasattr(type(x), "zero_grad") and served_class(type(x))


def as_optimizer(optimizer):
    """The ServedOptimizer of an optimizer, the same one each time."""
    found = _made.get(optimizer)
    if found is None:
        found = _made[optimizer] = ServedOptimizer(optimizer)
    return found
