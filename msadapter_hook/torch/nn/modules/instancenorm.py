# Instance normalization over 1, 2 and 3 dimensions and its lazy forms.
import warnings

from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self):
        raise NotImplementedError(f"{type(self).__name__} does not define _get_no_batch_dim")

    def _apply_instance_norm(self, input):
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        # Before version 2 instance normalization kept statistics it does not keep any more.
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            stale = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if stale:
                names = " and ".join(f'"{key}"' for key in stale)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be expected "
                    f"because {type(self).__name__} does not track running stats by default since 0.4.0. Please remove "
                    "these keys from state_dict. If the running stats are actually needed, instead set "
                    f"track_running_stats=True in {type(self).__name__} to enable them. See the documentation of "
                    f"{type(self).__name__} for details."
                )
                for key in stale:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input):
        self._check_input_dim(input)
        no_batch_dim = self._get_no_batch_dim()
        feature_dim = input.dim() - no_batch_dim
        if input.size(feature_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={feature_dim} to match num_features ({self.num_features}), but got: "
                    f"{input.size(feature_dim)}."
                )
            warnings.warn(
                f"input's size at dim={feature_dim} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == no_batch_dim:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)


def _over(spatial):
    # The two methods that say what input a class over `spatial` dimensions takes.
    unbatched, batched = spatial + 1, spatial + 2

    def _get_no_batch_dim(self):
        return unbatched

    def _check_input_dim(self, input):
        if input.dim() not in (unbatched, batched):
            raise ValueError(f"expected {unbatched}D or {batched}D input (got {input.dim()}D input)")

    return _get_no_batch_dim, _check_input_dim


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of each sample of (N, C, L) or (C, L). Source: PyTorch, torch.nn.InstanceNorm1d."""

    _get_no_batch_dim, _check_input_dim = _over(1)


class InstanceNorm2d(_InstanceNorm):
    """Normalizes each channel of each sample of (N, C, H, W). Source: PyTorch, torch.nn.InstanceNorm2d."""

    _get_no_batch_dim, _check_input_dim = _over(2)


class InstanceNorm3d(_InstanceNorm):
    """Normalizes each channel of each sample of (N, C, D, H, W). Source: PyTorch, torch.nn.InstanceNorm3d."""

    _get_no_batch_dim, _check_input_dim = _over(3)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm1d with num_features from its first input. Source: PyTorch, torch.nn.LazyInstanceNorm1d."""

    cls_to_become = InstanceNorm1d
    _get_no_batch_dim, _check_input_dim = _over(1)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm2d with num_features from its first input. Source: PyTorch, torch.nn.LazyInstanceNorm2d."""

    cls_to_become = InstanceNorm2d
    _get_no_batch_dim, _check_input_dim = _over(2)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm3d with num_features from its first input. Source: PyTorch, torch.nn.LazyInstanceNorm3d."""

    cls_to_become = InstanceNorm3d
    _get_no_batch_dim, _check_input_dim = _over(3)
