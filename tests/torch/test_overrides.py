"""torch.overrides: function modes, and the small modules that programs look at (torch.cpu, flags of backends, quantized dtypes)."""

import pytest
import torch
from torch.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    resolve_name,
    wrap_torch_function,
)


class Count(TorchFunctionMode):
    def __init__(self, replace=None):
        self.seen, self.replace = [], replace

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        if func.__name__ == self.replace:
            return "replaced"
        return func(*args, **(kwargs or {}))


def test_function_mode_sees_functions_methods_inplace_and_out():
    x = torch.ones(2)
    with Count() as mode:
        x.add_(1)
        torch.add(x, 1, out=torch.nn.functional.relu(x))
        torch.zeros(2)
    assert mode.seen == ["add_", "relu", "add", "zeros"]
    torch.zeros(2)
    assert len(mode.seen) == 4


def test_function_modes_nest_innermost_first_and_may_replace_the_result():
    outer, inner = Count(), Count(replace="mul")
    with outer, inner:
        assert torch.mul(torch.ones(1), 2) == "replaced"
        torch.exp(torch.zeros(1))
    assert outer.seen == ["exp"] or outer.seen == ["ones", "zeros", "exp"]
    assert inner.seen[-1] == "exp"


def test_function_mode_is_left_after_an_error():
    with pytest.raises(RuntimeError), Count():
        torch.ones(2) @ torch.ones(3, 3)
    assert not has_torch_function((torch.ones(1),))


def test_wrap_torch_function_asks_a_class_of_its_own():
    class Box:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types

    @wrap_torch_function(lambda x: (x,))
    def double(x):
        return x * 2

    assert double(torch.ones(1)).item() == 2
    assert double(Box()) == ("double", (Box,))
    assert handle_torch_function(double, (Box(),), Box()) == ("double", (Box,))
    assert is_tensor_like(Box()) and is_tensor_like(torch.ones(1)) and not is_tensor_like(3)


def test_resolve_name():
    assert resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert resolve_name(torch.add) == "torch.add"
    assert resolve_name(len) is None


def test_flags_of_backends_are_kept_and_given_back():
    with torch.backends.cudnn.flags(enabled=False, deterministic=True):
        assert not torch.backends.cudnn.enabled and torch.backends.cudnn.deterministic
    assert torch.backends.cudnn.enabled and not torch.backends.cudnn.deterministic
    with torch.backends.mkldnn.flags(enabled=False):
        assert not torch.backends.mkldnn.enabled
    assert torch.backends.mkldnn.enabled


def test_quantized_dtypes_have_names_and_no_tensors():
    assert repr(torch.quint8) == "torch.quint8" and torch.qint32.itemsize == 4
    assert not torch.quint8.is_floating_point
    with pytest.raises(NotImplementedError, match="quint8"):
        torch.zeros(2, dtype=torch.quint8)
    with pytest.raises(NotImplementedError, match="quint8"):
        torch.ones(2).to(torch.quint8)


def test_the_torch_function_of_parameters_is_not_bound_to_a_class():
    disabled = torch._C._disabled_torch_function_impl
    assert torch.nn.Parameter.__torch_function__ is disabled
    assert disabled(torch.add, (), (torch.ones(1), 2), {}).tolist() == [3]

    class Plain(torch.Tensor):
        __torch_function__ = disabled

    class Asking(Plain):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    assert [type(torch.ones(2).as_subclass(c) + 1) for c in (Plain, Asking)] == [torch.Tensor, torch.Tensor]
    layer = torch.nn.LazyLinear(3).to("cpu").to(torch.float64)
    assert layer.weight.dtype == torch.float64 and layer(torch.ones(2, 4, dtype=torch.float64)).shape == (2, 3)


def test_gradients_of_convolutions_are_in_the_functional_namespace():
    assert torch.nn.functional.grad is torch.nn.grad


def test_cpu_as_an_accelerator():
    assert torch.cpu.device_count() == 1 and torch.cpu.current_device() == "cpu"
    stream = torch.cpu.Stream()
    with torch.cpu.stream(stream):
        assert torch.cpu.current_stream() is stream
    assert torch.cpu.current_stream() is not stream
    torch.cpu.synchronize()
