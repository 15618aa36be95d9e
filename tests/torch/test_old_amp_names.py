"""torch.cuda.amp and torch.cpu.amp: the old names of torch.amp, with PyTorch's warnings."""

import importlib
import warnings

import pytest
import torch


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("name", ["autocast", "GradScaler"])
def test_classes_warn_and_are_those_of_torch_amp(device, name):
    cls = getattr(getattr(torch, device).amp, name)
    module = importlib.import_module(f"torch.{device}.amp.{'autocast_mode' if name == 'autocast' else 'grad_scaler'}")
    assert getattr(module, name) is cls and cls.__module__ == module.__name__
    with pytest.warns(FutureWarning) as seen:
        made = cls(enabled=False)
    assert str(seen[0].message) == (f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('{device}', "
                                    "args...)` instead.")
    assert seen[0].filename == __file__ and isinstance(made, getattr(torch.amp, name))


def test_an_accelerator_that_is_not_there():
    with pytest.warns(UserWarning, match="CUDA is not available or torch_xla is imported. Disabling autocast."):
        torch.autocast("cuda")
    assert torch.cuda.amp.common.amp_definitely_not_available() is (not torch.cuda.is_available())


def test_decorators_of_functions():
    with pytest.warns(FutureWarning, match=r"Please use `torch.amp.custom_(fwd|bwd)\(args..., device_type='cuda'\)` instead"):
        class Twice(torch.autograd.Function):
            @staticmethod
            @torch.cuda.amp.custom_fwd
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            @torch.cuda.amp.custom_bwd
            def backward(ctx, grad):
                return grad * 2

    x = torch.ones(2, requires_grad=True)
    Twice.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decorate = torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)
    assert callable(decorate(lambda ctx, x: x))
