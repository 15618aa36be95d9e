"""torch.ao.quantization: models prepared for quantization run in floating point; preparing and converting is refused."""

from collections import namedtuple as _namedtuple

from ... import nn as _nn
from ..._refusal import refuse_all as _refuse_all
from ..._refusal import refused as _refused

ADVICE = ("quantized operators are not provided; keep the model in floating point, use float16 or bfloat16 (torch.autocast), or "
          "quantize "
          "the checkpoint with PyTorch")

_refuse_all(globals(), "torch.ao.quantization",
            "quantize quantize_dynamic quantize_qat prepare prepare_qat convert fuse_modules fuse_modules_qat get_default_qconfig "
            "get_default_qat_qconfig get_default_qconfig_mapping get_default_qat_qconfig_mapping propagate_qconfig_ "
            "add_quant_dequant "
            "swap_module prepare_fx prepare_qat_fx convert_fx fuse_fx", ADVICE)

QConfig = _namedtuple("QConfig", ("activation", "weight"))
QConfig.__doc__ = "What would observe activations and weights. Source: PyTorch, torch.ao.quantization.QConfig."


class QuantStub(_nn.Module):
    """Where a model would be quantized: the identity until it is converted, which is refused. Source: PyTorch,
    torch.ao.quantization.QuantStub."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig is not None:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class DeQuantStub(QuantStub):
    """Where a model would leave quantization: see QuantStub. Source: PyTorch, torch.ao.quantization.DeQuantStub."""


class QuantWrapper(_nn.Module):
    """A module between QuantStub and DeQuantStub. Source: PyTorch, torch.ao.quantization.QuantWrapper."""

    def __init__(self, module):
        super().__init__()
        self.add_module("quant", QuantStub())
        self.add_module("dequant", DeQuantStub())
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, x):
        return self.dequant(self.module(self.quant(x)))


def disable_observer(mod):
    """There are no observers."""


enable_observer = enable_fake_quant = disable_fake_quant = disable_observer


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _refused(f"torch.ao.quantization.{name}", ADVICE)
