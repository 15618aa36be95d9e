"""The real served tree by every way in: a small training step, metadata, children, the report."""

import re

import pytest

TRAIN = """
import sys
import torch
w = torch.ones(3, requires_grad=True)
(w * w).sum().backward()
print("GRAD", w.grad.tolist(), __name__, torch.__version__)
"""
GRAD = "GRAD [2.0, 2.0, 2.0] __main__ 2.13.0+mindspore2.10\n"


@pytest.mark.parametrize(
    "arguments, variables",
    [
        (["-m", "msadapter_hook", "train.py"], {}),
        (["-m", "msadapter_hook", "-m", "train"], {}),
        (["-m", "msadapter_hook", "-c", TRAIN], {}),
        (["-m", "msadapter_hook", "-"], {}),
        (["train.py"], {"ENABLE_BACKWARD": 1}),
        (["-c", TRAIN], {"ENABLE_BACKWARD": 1, "MSADAPTER_HOOK": 1}),
    ],
    ids=["script", "module", "code", "stdin", "ENABLE_BACKWARD", "both variables"],
)
def test_backward_by_every_way_in(installed, write, arguments, variables):
    folder = write({"train.py": TRAIN})
    assert installed.output(*arguments, cwd=folder, input=TRAIN if arguments[-1] == "-" else None, **variables) == GRAD


@pytest.mark.parametrize("way", ["variable", "command", "install"])
def test_backward_without_the_tape_names_the_variable(installed, write, way):
    install = "import msadapter_hook; msadapter_hook.install()\n" if way == "install" else ""
    folder = write({"train.py": install + TRAIN})
    command = ["-m", "msadapter_hook"] if way == "command" else []
    variables = {"variable": {"MSADAPTER_HOOK": 1}, "command": {"ENABLE_BACKWARD": 0}, "install": {}}[way]
    done = installed(*command, "train.py", cwd=folder, **variables)
    assert done.returncode == 1 and re.search(r"RuntimeError: .*ENABLE_BACKWARD=1", done.stderr)


def test_what_a_program_can_ask_about_torch(installed, write):
    code = (
        "import importlib.metadata as metadata, importlib.util, sys\n"
        "from packaging.version import Version\n"
        "print(importlib.util.find_spec('torch') is not None, 'torch' in sys.modules, metadata.version('torch'))\n"
        "import torch, torch.nn.functional, torch.utils.data, torch.optim\n"
        "print(Version(torch.__version__).release, metadata.packages_distributions()['torch'])\n"
        "print('MindSpore' in repr(torch), torch.nn.Linear.__module__, torch.nn.modules.linear.__spec__.name)\n"
        "try: import torch.nonexistent\nexcept ModuleNotFoundError as e: print(e)\n"
        "print(hasattr(torch, 'nonexistent'), hasattr(torch.nn, 'Nonexistent'))\n"
        "try: import torchvision_like\nexcept ModuleNotFoundError as e: print(e)\n"
    )
    assert installed.output("-m", "msadapter_hook", "-c", code).splitlines() == [
        "True False 2.13.0+mindspore2.10",
        "(2, 13, 0) ['torch']",
        "True torch.nn.modules.linear torch.nn.modules.linear",
        "No module named 'torch.nonexistent'",
        "False False",
        "No module named 'torchvision_like'",
    ]


def test_two_threads_import_torch_at_once(installed):
    code = (
        "import threading\nbarrier, seen = threading.Barrier(2), []\n"
        "def work():\n    barrier.wait()\n    import torch.nn as nn, torch\n"
        "    seen.append((id(torch), id(nn.Linear)))\n"
        "threads = [threading.Thread(target=work) for _ in range(2)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]; print(len(seen), len(set(seen)))"
    )
    assert installed.output("-m", "msadapter_hook", "-c", code) == "2 1\n"


def test_uninstall_takes_torch_away(installed):
    code = (
        "import sys, msadapter_hook\nbefore = list(sys.meta_path)\n"
        "with msadapter_hook.install() as handle:\n    import torch\n    first = torch\n"
        "print([n for n in sys.modules if n == 'torch' or n.startswith('torch.')])\n"
        "ours = [f for f in sys.meta_path if type(f).__module__.startswith('msadapter_hook')]\n"
        "print(ours, [f for f in sys.meta_path if f in before] == before)\n"  # MindSpore's libraries add finders
        "try: import torch\nexcept ModuleNotFoundError as e: print(e)\n"
        "with msadapter_hook.install():\n    import torch\n    print(torch is first, torch.ones(2).tolist())\n"
    )
    assert installed.output("-c", code).splitlines() == ["[]", "[] True", "No module named 'torch'", "True [1.0, 1.0]"]


def test_spawned_child_trains(installed, write):
    code = (
        "import multiprocessing, torch\n"
        "def work(queue):\n    w = torch.ones(2, requires_grad=True)\n    (3 * w).sum().backward()\n"
        "    queue.put(w.grad.tolist())\n"
        "if __name__ == '__main__':\n    context = multiprocessing.get_context('spawn')\n    queue = context.Queue()\n"
        "    process = context.Process(target=work, args=(queue,)); process.start()\n"
        "    print(queue.get(timeout=100)); process.join(); print(process.exitcode)\n"
    )
    folder = write({"train.py": code})
    assert installed.output("-m", "msadapter_hook", "train.py", cwd=folder) == "[3.0, 3.0]\n0\n"


def test_error_of_an_operator_shows_the_users_line_and_no_frame_of_the_runner(installed, write):
    folder = write({"train.py": "import torch\n\ndef step():\n    torch.ones(2, 3) @ torch.ones(2, 3)\n\nstep()\n"})
    done = installed("-m", "msadapter_hook", "train.py", cwd=folder)
    assert done.returncode == 1 and "line 4, in step" in done.stderr and "RuntimeError: " in done.stderr
    assert "runner.py" not in done.stderr and "runpy" not in done.stderr


def test_report_lists_names_paths_times_and_what_was_missing(installed, write):
    folder = write({"train.py": TRAIN + "hasattr(torch, 'nonexistent')\n"})
    done = installed("-m", "msadapter_hook", "--report", "train.py", cwd=folder)
    assert done.stdout == GRAD
    assert re.search(r"torch\.\w*mul\w* +(primitive|composition|host) +\d+ +\d+\.\d\d", done.stderr), done.stderr
    assert re.search(r"torch\.sum +(primitive|composition|host)", done.stderr)
    assert "torch.nonexistent" in done.stderr.partition("missing")[2]


def test_pytest_serves_conftest_and_tests(installed, write):
    folder = write(
        {
            "pytest.ini": "[pytest]\nmsadapter = true\naddopts = -p no:cacheprovider\n",
            "conftest.py": "import torch\n\n"
            "def pytest_report_header():\n    return 'conftest has ' + torch.__version__\n",
            "test_it.py": "import torch\n\ndef test_backward():\n    w = torch.ones(2, requires_grad=True)\n"
            "    (w * 2).sum().backward()\n    assert w.grad.tolist() == [2.0, 2.0]\n",
        }
    )
    out = installed.output("-m", "pytest", cwd=folder)
    assert "conftest has 2.13.0+mindspore2.10" in out and "1 passed" in out
