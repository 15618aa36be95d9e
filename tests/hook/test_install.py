"""install(), uninstall(), what is served under which name, and what Python is left with."""

from pathlib import Path

import pytest


def test_package_is_inert_and_light(installed):
    code = (
        "import sys, time\nbegin = time.perf_counter()\nimport msadapter_hook\nspent = time.perf_counter() - begin\n"
        "assert not {'numpy', 'mindspore', 'torch', 'wrapt'} & set(sys.modules)\n"
        "assert not msadapter_hook.is_installed()\nprint(spent)"
    )
    assert min(float(installed.output("-c", code)) for _ in range(3)) < 0.05


def test_installing_imports_neither_numpy_nor_mindspore(installed, small_tree):
    code = small_tree() + "print({'numpy', 'mindspore', 'torch', 'wrapt'} & set(sys.modules))"
    assert installed.output("-c", code) == "set()\n"


def test_served_modules_have_the_names_asked_for(installed, small_tree):
    code = small_tree() + (
        "import torch, torch.nn.modules.linear as linear, pickle, copy\n"
        "print(torch.Linear.__module__, linear.__name__, linear.__package__, linear.__spec__.name)\n"
        "print(torch.nn.__path__ == [str(tree.folder / 'nn')])\n"
        "print(linear.__file__ == str(tree.folder / 'nn/modules/linear.py'), linear.__spec__.parent)\n"
        "print(pickle.loads(pickle.dumps(torch.Linear())).__class__ is torch.Linear, pickle.dumps(torch.Linear, 0))\n"
        "print(pickle.loads(pickle.dumps(torch)) is torch, copy.deepcopy(torch) is torch)\n"
        "print(repr(torch))\n"
        "import inspect; print(inspect.getsource(torch.Linear))\n"
    )
    lines = installed.output("-c", code).splitlines()
    assert lines[0] == "torch.nn.modules.linear torch.nn.modules.linear torch.nn.modules torch.nn.modules.linear"
    assert lines[1:3] == ["True", "True torch.nn.modules"]
    lines.pop(0)
    assert lines[2] == "True b'ctorch.nn.modules.linear\\nLinear\\np0\\n.'"
    assert lines[3] == "True True"
    assert lines[4].startswith("<module 'torch' from ") and lines[4].endswith("(small tree)>")
    assert lines[5] == "class Linear: pass"


@pytest.mark.parametrize(
    "name",
    ["torch.nonexistent", "torch.nn.nonexistent", "torch.nonexistent.deeper", "torch.empty", "torch.__pycache__"],
)
def test_unknown_submodule_is_not_found(installed, small_tree, name):
    code = small_tree() + (
        f"import importlib.util\ntry: import {name}\nexcept ModuleNotFoundError as e: print(e.name, '|', e)\n"
        f"try: print(importlib.util.find_spec({name!r}))\nexcept ModuleNotFoundError as e: print(None)"
    )
    first = ".".join(name.split(".")[: 3 if "nn" in name.split(".") else 2])
    assert installed.output("-c", code) == f"{first} | No module named {first!r}\nNone\n"


def test_missing_name_is_an_attribute_error_and_reported(installed, small_tree):
    code = small_tree() + (
        "from msadapter_hook import report\nreport.enable()\n"
        "import torch\n"
        "print(hasattr(torch, 'nothing'), getattr(torch.nn, 'nothing', 3), hasattr(torch, '__wrapped__'))\n"
        "try: torch.nn.Bilinear\nexcept AttributeError as e: print(e)\n"
        "try: from torch import nothing\nexcept ImportError as e: print(type(e).__name__, str(e).split(' (')[0])\n"
        "print(sorted(report.missing_names()))"
    )
    assert installed.output("-c", code).splitlines() == [
        "False 3 False",
        "module 'torch.nn' has no attribute 'Bilinear' (msadapter_hook does not provide it)",
        "ImportError cannot import name 'nothing' from 'torch'",
        "['torch.nn.Bilinear', 'torch.nn.nothing', 'torch.nothing']",
    ]


def test_similar_names_are_not_ours(installed, small_tree):
    code = (
        small_tree() + "import torchvision, torch_like; print(torchvision.name, torch_like.name, torchvision.__file__)"
    )
    code = "import torchvision as before\n" + code
    code += "\nhandle.uninstall(); print('torchvision' in sys.modules, torchvision is before, 'torch' in sys.modules)"
    lines = installed.output("-c", code, PYTHONPATH=small_tree.other).splitlines()
    assert lines[0].startswith("torchvision torch_like " + small_tree.other) and lines[1] == "True True False"


def test_distribution_and_specs(installed, small_tree):
    code = small_tree() + (
        "import importlib.metadata as metadata, importlib.util, importlib.resources\n"
        "from packaging.version import Version\n"
        "print(metadata.version('torch'), metadata.version('Torch'), metadata.requires('torch'))\n"
        "print(metadata.packages_distributions()['torch'])\n"
        "print([d.metadata['Name'] for d in metadata.distributions() if d.metadata['Name'] == 'torch'])\n"
        "print(importlib.util.find_spec('torch').origin == str(tree.folder / '__init__.py'), 'torch' in sys.modules)\n"
        "print(importlib.util.find_spec('torch.nn').name, metadata.version('msadapter_hook'))\n"
        "import torch; v = Version(torch.__version__); print(v.release, v.local, v >= Version('2.13'))\n"
        "print(importlib.resources.files('torch').joinpath('lazy.py').is_file())\n"
        "import pkgutil; print([m.name for m in pkgutil.iter_modules(torch.__path__)])\n"
        "print(list(metadata.distributions(name='torch', path=['/nowhere'])))\n"
        "try: metadata.version('torchvision')\nexcept metadata.PackageNotFoundError: print('no torchvision')\n"
    )
    assert installed.output("-c", code).splitlines() == [
        "2.13.0+mindspore2.10 2.13.0+mindspore2.10 ['msadapter-hook']",
        "['torch']",
        "['torch']",
        "True False",
        "torch.nn 0.1.0",
        "(2, 13, 0) mindspore2.10 True",
        "True",
        "['broken', 'lazy', 'nn']",
        "[]",
        "no torchvision",
    ]


def test_uninstall_leaves_python_as_it_was(installed, small_tree):
    code = (
        "import sys, os, builtins, importlib, importlib.util, importlib.metadata, msadapter_hook\n"
        "import msadapter_hook.hook.session\n"
        "def state():\n"
        "    watched = builtins.__import__, importlib.util.find_spec, importlib._bootstrap._gcd_import\n"
        "    return list(sys.meta_path), set(sys.modules), list(sys.path), dict(os.environ), watched\n"
        "before = state()\n"
    ) + small_tree() + (
        "import torch, torch.lazy\nassert torch.lazy.version() and state() != before\n"
        "first = torch; handle.uninstall(); handle.uninstall(); msadapter_hook.uninstall()\n"
        "new = state(); assert new[1] - before[1] <= {'msadapter_hook.hook.distribution'}, new[1] - before[1]\n"
        "assert new[0] == before[0] and new[2:] == before[2:], (new, before)\n"
        "try: import torch\nexcept ModuleNotFoundError: print('gone')\n"
        "try: importlib.metadata.version('torch')\nexcept importlib.metadata.PackageNotFoundError: print('gone too')\n"
        "with msadapter_hook.install(roots=[tree], block={'x'}): pass\n"
        "assert state()[0] == before[0] and state()[2:] == before[2:]\n"
        "with msadapter_hook.install(roots=[tree]):\n"
        "    import torch\n    print(torch is first)\n"
    )  # fmt: skip
    assert installed.output("-c", code).splitlines() == ["gone", "gone too", "True"]


def test_handles_undo_what_they_did(installed, small_tree):
    code = small_tree() + (
        "on = msadapter_hook.is_installed\n"
        "with msadapter_hook.install() as inner: assert on()\n"
        "assert on(); inner.uninstall(); assert on()\n"
        "assert sys.meta_path.count(sys.meta_path[0]) == 1\n"
        "with handle: assert on()\n"
        "assert not on()\n"
        "with msadapter_hook.install(roots=[tree]): assert on()\n"
        "assert not on()\n"
        "old = msadapter_hook.install(roots=[tree]); msadapter_hook.uninstall()\n"
        "new = msadapter_hook.install(roots=[tree]); old.uninstall(); assert on()\n"
        "try: msadapter_hook.install(roots=[])\nexcept msadapter_hook.errors.HookError as e: print(e)\n"
    )
    assert installed.output("-c", code) == "the hook is on and serves other roots; uninstall it first\n"


def test_another_torch_is_refused_and_nothing_changed(installed, small_tree):
    code = (
        "import sys, os, torch, msadapter_hook\nfrom msadapter_hook.errors import HookError\n"
        "before = list(sys.meta_path), dict(os.environ), torch\n"
        "try: msadapter_hook.install()\nexcept HookError as error: print(error)\n"
        "assert before == (list(sys.meta_path), dict(os.environ), sys.modules['torch'])\n"
        "assert not msadapter_hook.is_installed() and torch.nn.other\n"
    )
    out = installed.output("-c", code, PYTHONPATH=small_tree.other)
    assert out.startswith(f"another torch 1.0 is already imported (from {small_tree.other}/torch/__init__.py); ")
    assert "before the first `import torch`" in out and out.count("\n") == 1


def test_submodule_without_its_root_is_refused_too(installed):
    code = (
        "import sys, types; sys.modules['torch.nn'] = types.ModuleType('torch.nn')\nimport msadapter_hook\n"
        "try: msadapter_hook.install()\nexcept RuntimeError as error: print('refused')"
    )
    assert installed.output("-c", code) == "refused\n"


def test_two_threads_import_at_once(installed, small_tree, write):
    write({"served/slow.py": "import time\ntime.sleep(0.2)\ndone = True\n"})
    code = small_tree() + (
        "import threading\nseen = []\nbarrier = threading.Barrier(8)\n"
        "def work():\n    barrier.wait()\n    import torch.slow\n"
        "    seen.append((id(torch), id(torch.slow), torch.slow.done))\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]; print(len(seen), len(set(seen)))"
    )
    assert installed.output("-c", code) == "8 1\n"


def test_failing_module_shows_its_own_frames_only(installed, small_tree):
    done = installed("-c", small_tree() + "import torch.broken")
    assert done.returncode == 1 and "RuntimeError: inside" in done.stderr
    assert "msadapter_hook" not in done.stderr and "importlib" not in done.stderr


def test_any_root_name_can_be_served(installed, small_tree, write):
    write({"above/__init__.py": ""})
    code = (
        f"import sys; sys.path.insert(0, {str(small_tree.folder)!r})\n"
        "import pathlib, msadapter_hook\nfrom msadapter_hook.hook.finder import Root\n"
        f"folder = pathlib.Path({str(small_tree.folder / 'served')!r})\n"
        "with msadapter_hook.install(roots=[Root('above.pytorch', folder), Root('second', folder)]):\n"
        "    import above.pytorch as one, second as two\n    from above.pytorch.nn.modules import linear\n"
        "    print(linear.__name__, one.Linear is linear.Linear, two.Linear.__module__, one.Linear is two.Linear)\n"
    )
    assert installed.output("-c", code) == "above.pytorch.nn.modules.linear True second.nn.modules.linear False\n"


def test_switched_off_by_the_environment_nothing_is_installed(installed, small_tree):
    code = (
        small_tree() + "print(msadapter_hook.is_installed(), sys.meta_path[0].__class__.__name__, handle.uninstall())"
    )
    assert installed.output("-c", code, MSADAPTER_HOOK=0, ENABLE_BACKWARD=1) == "False type None\n"


def test_torchrun_is_there(installed, tmp_path):
    """The console script starts programs without the package's source at hand, with the hook for them."""
    torchrun = Path(installed.executable).with_name("torchrun")
    (tmp_path / "train.py").write_text(
        "import os, sys\nfrom importlib.metadata import version\n"
        "sys.stdout.write(f\"{os.environ['RANK']} of {os.environ['WORLD_SIZE']} {version('torch')[:4]} {sys.argv[1:]}\\n\")\n"
    )
    told = installed.output(torchrun, "--nproc-per-node", "2", tmp_path / "train.py", "--lr", "1", cwd=tmp_path)
    assert sorted(told.splitlines()) == ["0 of 2 2.13 ['--lr', '1']", "1 of 2 2.13 ['--lr', '1']"]
