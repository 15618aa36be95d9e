"""What cannot be had says so, by name, when it is used; importing it works."""

import pytest
import torch


@pytest.mark.parametrize("use, name", [
    (lambda: torch.onnx.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),), "f.onnx"), "torch.onnx.export"),
    (lambda: torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)), "torch.export.export"),
    (lambda: torch.ao.quantization.quantize_dynamic(torch.nn.Linear(2, 2)), "torch.ao.quantization.quantize_dynamic"),
    (lambda: torch.ao.quantization.prepare_qat(torch.nn.Linear(2, 2)), "torch.ao.quantization.prepare_qat"),
    (lambda: torch.quantization.convert(torch.nn.Linear(2, 2)), "torch.ao.quantization.convert"),
    (lambda: torch.fx.experimental.proxy_tensor.make_fx(lambda x: x), "torch.fx.experimental.proxy_tensor.make_fx"),
])
def test_refused(use, name):
    import torch.fx.experimental.proxy_tensor  # noqa: F401

    with pytest.raises(NotImplementedError, match=name.replace(".", r"\.")) as caught:
        use()
    assert len(str(caught.value)) > len(name) + 20  # it says what to do


def test_models_written_for_quantization_run_in_floating_point():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
            self.skip = torch.ao.nn.quantized.FloatFunctional()

        def forward(self, x):
            x = self.quant(x)
            return self.dequant(self.skip.add(x, x))

    assert Model()(torch.ones(2)).tolist() == [2.0, 2.0]
    assert torch.backends.quantized.engine == "none"
    with pytest.raises(RuntimeError, match="quantized engine"):
        torch.backends.quantized.engine = "fbgemm"


def test_questions_before_an_export():
    from torch.onnx.symbolic_helper import parse_args

    assert torch.onnx.is_in_onnx_export() is False and not torch.compiler.is_exporting()
    assert parse_args("v")(lambda g, x: x)(None, 3) == 3
