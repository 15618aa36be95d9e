"""Pure MindSpore programs in the same process: the same numbers, types and attributes with and without the hook."""

from pathlib import Path

import pytest

PROGRAMS = [Path(__file__).with_name(name) for name in ("native_program.py", "native_habits.py")]
STARTS = {
    "hook": "import msadapter_hook; msadapter_hook.install()",
    "hook and torch": "import msadapter_hook; msadapter_hook.install(); import torch; torch.ones(2).sum()",
    "uninstalled": "import msadapter_hook; h = msadapter_hook.install(); import torch, mindspore; h.uninstall()",
}


def run(checkout, program, start, cwd):
    code = f"{start}\nimport runpy; runpy.run_path({str(program)!r}, run_name='__main__')"
    # the hook chooses an instruction set, which changes the last digits: the same one for all
    return checkout.output("-c", code, cwd=cwd, timeout=400, ONEDNN_MAX_CPU_ISA="AVX2")


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda path: path.stem)
def alone(request, checkout, tmp_path_factory):
    """A program and what it prints where nothing is installed."""
    return request.param, run(checkout, request.param, "", tmp_path_factory.mktemp("alone"))


@pytest.mark.parametrize("start", STARTS)
def test_the_same_output(checkout, alone, start, tmp_path):
    program, text = alone
    assert len(text.splitlines()) > 25
    assert run(checkout, program, STARTS[start], tmp_path).splitlines() == text.splitlines()


def test_the_hook_alone_loads_nothing_of_ours_with_mindspore(checkout):
    code = (
        "import msadapter_hook, sys; msadapter_hook.install(); import mindspore as ms\n"
        "ms.ops.relu(ms.Tensor([1.0])); ms.nn.Dense(2, 2)(ms.Tensor([[1.0, 2.0]], ms.float32))\n"
        "parts = [n.split('.')[1] for n in sys.modules if n.startswith('msadapter_hook.')]\n"
        "print([part for part in parts if part in ('tensor', 'tape', 'ops', 'backend')])"
    )
    assert checkout.output("-c", code) == "[]\n"


def test_uninstall_takes_every_wrapper_away(checkout):
    code = (
        "import mindspore as ms, wrapt, msadapter_hook\n"
        "def wrapped():\n"
        "    places = [ms, ms.ops, ms.ops.functional, ms.mint, ms.mint.nn.functional, ms.mint.linalg, ms.numpy, ms.amp,\n"
        "              ms.nn.Cell, ms.nn.Optimizer, ms.Parameter, ms.train.Model, ms.ops.Primitive, ms.ops.ReLU]\n"
        "    return sum(isinstance(v, wrapt.FunctionWrapper) for p in places for v in vars(p).values())\n"
        "before = wrapped(); handle = msadapter_hook.install(); during = wrapped(); handle.uninstall()\n"
        "print(before, during > 500, wrapped())"
    )
    assert checkout.output("-c", code) == "0 True 0\n"
