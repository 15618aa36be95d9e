# Batch normalization over 1, 2 and 3 dimensions, lazy forms, and SyncBatchNorm.
from ... import empty, no_grad, ones, tensor, zeros
from ... import long as _long
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from ._sync_batchnorm import sync_batch_norm
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d", "LazyBatchNorm1d", "BatchNorm2d", "LazyBatchNorm2d", "BatchNorm3d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """Parameters, running statistics and state shared by batch and instance normalization."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = Parameter(empty(num_features, **kind))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(empty(num_features, **kind))
        else:
            self.register_parameter("bias", None)
        if track_running_stats:
            self.register_buffer("running_mean", zeros(num_features, **kind))
            self.register_buffer("running_var", ones(num_features, **kind))
            self.register_buffer("num_batches_tracked", tensor(0, dtype=_long, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Forget the statistics: mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError(f"{type(self).__name__} does not define _check_input_dim")

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        # Before version 2 the number of batches was not kept.
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                tracked = self.num_batches_tracked
                known = tracked is not None and tracked.device.type != "meta"
                state_dict[key] = tracked if known else tensor(0, dtype=_long)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input):
        self._check_input_dim(input)
        factor = self._factor()
        use_batch_statistics = self.training or (self.running_mean is None and self.running_var is None)
        return F.batch_norm(input, *self._moving(), self.weight, self.bias, use_batch_statistics, factor, self.eps)

    def _factor(self):
        """How far the running statistics move with this batch, which is counted."""
        # momentum None: the cumulative average, whose factor depends on the number of batches.
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        return factor

    def _moving(self):
        """The running mean and variance, where they are used or updated."""
        keep = not self.training or self.track_running_stats
        return (self.running_mean, self.running_var) if keep else (None, None)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ):
        kind = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **kind)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**kind)
            if bias:
                self.bias = UninitializedParameter(**kind)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**kind)
            self.running_var = UninitializedBuffer(**kind)
            self.num_batches_tracked = tensor(0, dtype=_long, device=device)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        with no_grad():
            for param in (self.weight, self.bias) if self.affine else ():
                if param is not None:
                    param.materialize((self.num_features,))
            if self.track_running_stats:
                self.running_mean.materialize((self.num_features,))
                self.running_var.materialize((self.num_features,))
        self.reset_parameters()


def _expects(*dimensions):
    # A _check_input_dim for inputs of the given numbers of dimensions.
    expected = " or ".join(f"{d}D" for d in dimensions)

    def _check_input_dim(self, input):
        if input.dim() not in dimensions:
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    return _check_input_dim


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L). Source: PyTorch, torch.nn.BatchNorm1d."""

    _check_input_dim = _expects(2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of (N, C, H, W). Source: PyTorch, torch.nn.BatchNorm2d."""

    _check_input_dim = _expects(4)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of (N, C, D, H, W). Source: PyTorch, torch.nn.BatchNorm3d."""

    _check_input_dim = _expects(5)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """BatchNorm1d with num_features from its first input. Source: PyTorch, torch.nn.LazyBatchNorm1d."""

    cls_to_become = BatchNorm1d
    _check_input_dim = _expects(2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """BatchNorm2d with num_features from its first input. Source: PyTorch, torch.nn.LazyBatchNorm2d."""

    cls_to_become = BatchNorm2d
    _check_input_dim = _expects(4)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """BatchNorm3d with num_features from its first input. Source: PyTorch, torch.nn.LazyBatchNorm3d."""

    cls_to_become = BatchNorm3d
    _check_input_dim = _expects(5)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization whose statistics span all processes of a group. Source: PyTorch, torch.nn.SyncBatchNorm.

    In evaluation, and in training with a single process, it computes what BatchNorm computes; on every device, where PyTorch
    wants one that is no CPU. Process group: `process_group`, or the default one.
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        if self.training and input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")
        if not (self.training and _world_size(self.process_group) > 1):
            return super().forward(input)
        return sync_batch_norm(input, self.weight, self.bias, *self._moving(), self.eps, self._factor(), self.process_group)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """`module` with every BatchNorm1d/2d/3d in it replaced by a SyncBatchNorm with the same state."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            if module.affine:
                with no_grad():
                    converted.weight = module.weight
                    converted.bias = module.bias
            converted.running_mean = module.running_mean
            converted.running_var = module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


def _world_size(group):
    # torch.distributed is asked only if the program uses it.
    import sys

    distributed = sys.modules.get(__name__.rpartition(".nn.")[0] + ".distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return distributed.get_world_size(group)
