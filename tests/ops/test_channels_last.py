"""Results whose channels are innermost because the input's are: strides as PyTorch gives them, values as from a plain input."""

import pytest
import torch
import torch.nn.functional as F


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(2, 4, 8, 6)


W = torch.linspace(-1, 1, 8 * 4 * 9).view(8, 4, 3, 3)
B = torch.ones(4)

CASES = {  # name: (function, strides under PyTorch for an input (2, 4, 8, 6) with channels innermost)
    "conv2d": (lambda x: F.conv2d(x, W), (192, 1, 32, 8)),
    "conv_transpose2d": (lambda x: F.conv_transpose2d(x, W.transpose(0, 1).contiguous()), (640, 1, 64, 8)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (48, 1, 12, 4)),
    "max_pool2d_indices": (lambda x: F.max_pool2d(x, 2, return_indices=True)[1], (48, 1, 12, 4)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (48, 1, 12, 4)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 3), (36, 1, 12, 4)),
    "adaptive_avg_pool2d_one": (lambda x: F.adaptive_avg_pool2d(x, 1), (4, 1, 4, 4)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 3), (36, 1, 12, 4)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, B, B, True), (192, 1, 24, 4)),
    "group_norm": (lambda x: F.group_norm(x, 2), (192, 1, 24, 4)),
    "instance_norm": (lambda x: F.instance_norm(x), (192, 48, 6, 1)),
    "layer_norm": (lambda x: F.layer_norm(x, (6,)), (192, 48, 6, 1)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), (768, 1, 48, 4)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), (192, 1, 48, 16)),
    "pad": (lambda x: F.pad(x, (1, 1)), (256, 1, 32, 4)),
    "pad_replicate": (lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"), (320, 1, 32, 4)),
    "cat": (lambda x: torch.cat([x, x], 1), (384, 1, 48, 8)),
    "cat_mixed": (lambda x: torch.cat([x, x.contiguous()], 1), (384, 48, 6, 1)),
    "prelu": (lambda x: F.prelu(x, B * 0.5), (192, 1, 24, 4)),
    "glu": (lambda x: F.glu(x, 1), (96, 1, 12, 2)),
    "local_response_norm": (lambda x: F.local_response_norm(x, 2), (192, 1, 24, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_channels_stay_innermost(name, x):
    function, stride = CASES[name]
    found = function(x.to(memory_format=torch.channels_last))
    assert found.stride() == stride
    torch.testing.assert_close(found, function(x))


def test_a_weight_with_channels_innermost_is_enough(x):
    assert F.conv2d(x, W.to(memory_format=torch.channels_last)).stride() == (192, 1, 32, 8)


def test_a_training_step_on_channels_innermost_has_the_same_gradients(x):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(4, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                              torch.nn.Flatten(), torch.nn.Linear(18, 2))
    grads = []
    for given in (x, x.to(memory_format=torch.channels_last)):
        net.zero_grad()
        net(given).square().sum().backward()
        grads.append([p.grad.clone() for p in net.parameters()])
    torch.testing.assert_close(grads[0], grads[1])


def test_plain_inputs_give_plain_results(x):
    for function, _ in CASES.values():
        assert function(x).is_contiguous()
