"""The names of earlier adapters: the modules of `import torch` with the hook on, a tree of their own with it off."""

import pytest

IMPORTS = """
import mindtorch.torch as torch
import mindtorch.torch.nn as nn
from mindtorch.torch.cuda.amp import GradScaler
import ms_adapter.pytorch, ms_adapter.pytorch.nn as nn2, msadapter.pytorch
from ms_adapter.pytorch.utils.data import DataLoader
same = [ms_adapter.pytorch is torch, msadapter.pytorch is torch, nn2 is nn, torch.nn is nn]
same += [torch.utils.data.DataLoader is DataLoader]
"""


@pytest.fixture
def torchvision(tmp_path):
    """A folder with a torchvision and a torch of somebody else."""
    for name in ("torchvision/__init__.py", "torchvision/transforms/__init__.py", "torch/__init__.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("__version__ = 'somebody else'\n")
    return tmp_path


def test_hook_on(checkout, torchvision):
    code = IMPORTS + (
        "import torch as other\n"
        "from ms_adapter.torchvision import transforms\n"
        "import mindtorch.torchvision, torchvision\n"
        "print(same, other is torch, nn.Linear.__module__, nn.__spec__.name, transforms.__name__)\n"
        "print(mindtorch.torchvision is torchvision)\n"
        "print(type(torch.ones(2)).__module__)"
    )
    text = checkout.output("-m", "msadapter_hook", "-c", code, cwd=torchvision)
    assert text == f"{[True] * 5} True torch.nn.modules.linear torch.nn torchvision.transforms\nTrue\ntorch\n"


def test_hook_off_beside_another_torch(checkout, torchvision):
    code = IMPORTS + (
        "import torch as other, mindspore as ms\n"
        "print(same, other.__version__, torch.__version__.split('+')[0], nn.Linear.__module__, repr(torch)[:30])\n"
        "net = nn.Linear(2, 1); optimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
        "loss, grads = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)(torch.ones(3, 2))\n"
        "optimizer(grads); print([g.tolist() for g in grads])\n"
        "torch.save(net.state_dict(), 'net.pth'); print(torch.equal(torch.load('net.pth')['weight'], net.weight))\n"
        "import zipfile; print(b'mindtorch' in zipfile.ZipFile('net.pth').read('net/data.pkl'))"
    )
    lines = checkout.output("-c", code, cwd=torchvision).splitlines()
    assert lines[0] == f"{[True] * 5} somebody else 2.13.0 mindtorch.torch.nn.modules.linear <module 'mindtorch.torch' from"
    assert lines[1:] == ["[[[3.0, 3.0]], [3.0]]", "True", "False"]


@pytest.mark.parametrize("start", ["import msadapter_hook; msadapter_hook.install()", ""], ids=["on", "off"])
def test_what_is_not_there_is_not_found(checkout, start, tmp_path):
    code = (
        f"{start}\n"
        "for name in ('mindtorch.torch.nothing', 'ms_adapter.torchvision', 'mindtorch.nothing', 'msadapter.pytorch.nn.nothing'):\n"
        "    try: __import__(name)\n"
        "    except ModuleNotFoundError as error: print(error)\n"
    )
    assert checkout.output("-c", code, cwd=tmp_path).splitlines() == [
        "No module named 'mindtorch.torch.nothing'", "No module named 'ms_adapter.torchvision'",
        "No module named 'mindtorch.nothing'", "No module named 'msadapter.pytorch.nn.nothing'"]
