"""PyTorch's side of benchmarks.kernels: reads descriptions of kernels from stdin, writes microseconds of the same operators.

Run by the interpreter that has PyTorch, as a file: of this project it imports how a call is timed.
"""

import json
import sys

import torch
import torch.nn.functional as F
from timing import best


def swapped(a, swap):
    return a.transpose(-1, -2) if swap else a


def product(t, k):
    return swapped(t[0], k["transpose_a"]) @ swapped(t[1], k["transpose_b"])


def normalized(t, k):
    return F.batch_norm(t[0], t[3].detach(), t[4].detach() + 1, t[1], t[2], True, 0.1, k["epsilon"])


def with_bias(t, k):
    return t[0] + t[1].view(-1, *[1] * (t[0].dim() - 2))


def recurrent(t, k):
    layer = torch.nn.LSTM(k["input_size"], k["hidden_size"])
    return lambda: layer(t[0], (t[1], t[2]))[0], [t[0], *layer.parameters()]


#: kernel -> the same from its arguments and attributes
OPERATORS = {
    "MatMul": product, "BatchMatMul": product, "BiasAdd": with_bias, "BatchNorm": normalized,
    "Conv2D": lambda t, k: F.conv2d(t[0], t[1], None, k["stride"][-2:], k["pad"][::2], k["dilation"][-2:], k["group"]),
    "AvgPool": lambda t, k: F.avg_pool2d(t[0], k["kernel_size"], k["strides"]),
    "MaxPool": lambda t, k: F.max_pool2d(t[0], k["kernel_size"], k["strides"]),
    "LayerNorm": lambda t, k: F.layer_norm(t[0], t[1].shape, t[1], t[2], k["epsilon"]),
    "Gather": lambda t, k: F.embedding(t[1], t[0]),
    "Transpose": lambda t, k: t[0].permute(t[1]).contiguous(),
    "ReduceMean": lambda t, k: t[0].mean(t[1], k["keep_dims"]), "ReduceSum": lambda t, k: t[0].sum(t[1], k["keep_dims"]),
    "SparseSoftmaxCrossEntropyWithLogits": lambda t, k: F.cross_entropy(t[0], t[1].long()),
    "LogSoftmax": lambda t, k: F.log_softmax(t[0], k["axis"]),
    "Concat": lambda t, k: torch.cat(t[0], k["axis"]),
    "RealDiv": lambda t, k: t[0] / t[1], "BroadcastTo": lambda t, k: t[0].expand(k["shape"]).contiguous(),
    "Add": lambda t, k: t[0] + t[1], "Sub": lambda t, k: t[0] - t[1], "Mul": lambda t, k: t[0] * t[1],
    "Equal": lambda t, k: t[0] == t[1], "Select": lambda t, k: torch.where(*t),
    "Neg": lambda t, k: -t[0], "Exp": lambda t, k: t[0].exp(), "Erf": lambda t, k: t[0].erf(), "ReLU": lambda t, k: t[0].relu(),
}


def build(described, below):
    if isinstance(described, dict):
        return tuple([build(d, below) for d in described["tuple"]]) if "tuple" in described else described["value"]
    dtype, shape = described
    if dtype == "bool":
        return torch.rand(shape) > 0.5
    if dtype.startswith("int"):
        return torch.randint(0, below, shape)
    return (torch.randn(shape) / 4).requires_grad_(bool(shape))


def measure(case):
    name, attributes, first = case["name"], case["attributes"], case["arguments"][0]
    below = first[1][{"Gather": 0}.get(name, -1)] if isinstance(first, list) and first[1] else 2
    args = [build(a, below) for a in case["arguments"]]
    if name == "LSTM":
        call, inputs = recurrent(args, attributes)
    else:
        if name not in OPERATORS:
            sys.exit(f"{name}: say in OPERATORS what PyTorch calls it")
        operator = OPERATORS[name]
        inputs = [a for arg in args for a in (arg if isinstance(arg, tuple) else (arg,))
                  if isinstance(a, torch.Tensor) and a.requires_grad]
        if name == "BatchNorm":
            inputs = inputs[:3]

        def call():
            return operator(args, attributes)
    with torch.no_grad():
        forward = best(call)
    out = call()
    if not out.requires_grad:
        return forward, None
    cotangent = torch.ones_like(out)
    return forward, best(lambda: torch.autograd.grad(call(), inputs, cotangent))


if __name__ == "__main__":
    torch.set_num_threads(2)
    json.dump([measure(case) for case in json.load(sys.stdin)], sys.stdout)
