"""torch.utils.flop_counter: figures of PyTorch 2.13 for the same programs."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, register_flop_formula


def counts(counter, module="Global"):
    return {str(op).partition(".")[2]: flops for op, flops in counter.get_flop_counts().get(module, {}).items()}


def network():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 10))


def test_forward_and_backward_by_module():
    model, x = network(), torch.randn(2, 3, 8, 8)
    with FlopCounterMode(display=False) as counter:
        model(x)
    assert counter.get_total_flops() == 75776
    assert counts(counter) == {"convolution": 55296, "addmm": 20480}
    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
    assert counts(counter, "Sequential") == {"convolution": 55296, "addmm": 20480, "mm": 40960, "convolution_backward": 55296}
    assert counts(counter, "Sequential.3") == {"addmm": 20480, "mm": 40960}
    with FlopCounterMode(display=False) as counter:
        model(x.requires_grad_()).sum().backward()
    assert counter.get_total_flops() == 227328
    assert torch.ops.aten.addmm in counter.get_flop_counts()["Global"]


def test_table(capsys):
    with FlopCounterMode(depth=1):
        network()(torch.randn(2, 3, 8, 8))
    assert capsys.readouterr().out.splitlines() == [
        "Module                 FLOP    % Total",
        "------------------  -------  ---------",
        "Sequential          75.776K    100.00%",
        "- aten.convolution  55.296K     72.97%",
        "- aten.addmm        20.480K     27.03%",
    ]


def test_products_of_every_kind():
    with FlopCounterMode(display=False) as counter:
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
        torch.ones(3, 4) @ torch.ones(4)
        torch.ones(2, 3, 4) @ torch.ones(4, 5)
        torch.addmm(torch.ones(5), torch.ones(3, 4), torch.ones(4, 5))
        torch.baddbmm(torch.ones(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5))
        torch.einsum("ij,jk->ik", torch.ones(3, 4), torch.ones(4, 5))
        nn.functional.conv_transpose2d(torch.ones(1, 2, 4, 4), torch.ones(2, 3, 3, 3))
    assert counts(counter) == {"bmm": 360, "mm": 240, "addmm": 120, "baddbmm": 240, "convolution": 1728}


def test_formulas_of_the_programs_own():
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.exp: lambda shape, out_shape: 10 * shape[0]}) as counter:
        torch.ones(3).exp()
    assert counts(counter) == {"exp": 30}

    @register_flop_formula(torch.ops.aten.atan)
    def atan_flop(shape, out_shape=None):
        return 7 * shape.numel()

    with FlopCounterMode(display=False) as counter:
        torch.ones(2, 3).atan()
    assert counter.get_total_flops() == 42


def test_totals_of_an_encoder_layer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    with FlopCounterMode(display=False) as counter:
        layer(torch.ones(2, 3, 8)).sum().backward()
    assert counter.get_total_flops() == 17856
    assert sum(counts(counter, "TransformerEncoderLayer.self_attn").values()) == 8640
