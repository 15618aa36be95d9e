"""only, block, paused: who sees the hook."""

import pytest

OURS, OTHER = "2.13.0+mindspore2.10", "1.0"


def asked(installed, small_tree, lines, path=True, **arguments):
    options = {"PYTHONPATH": small_tree.other} if path else {}
    return installed.output("-c", small_tree(**arguments) + lines, **options).splitlines()


@pytest.mark.parametrize("first", ["asking", "asking_too"])
@pytest.mark.parametrize("question", ["statement", "function"])
def test_blocked_importer_gets_the_normal_import_system(installed, small_tree, question, first):
    lines = (
        f"import asking, asking_too\nfor _ in range(2):\n"
        f"    for m in sorted((asking, asking_too), key=lambda m: m.__name__ != {first!r}):\n"
        f"        print(m.__name__, m.{question}())\n"
        "import torch; print(torch.__version__, sys.modules['torch'] is torch, hasattr(torch.nn, 'other'))\n"
    )
    out = asked(installed, small_tree, lines, block={"asking"})
    assert sorted(out[:-1]) == sorted([f"asking {OTHER}", f"asking_too {OURS}"] * 2)
    assert out[-1] == f"{OURS} True False"


def test_only_the_named_importers_see_it(installed, small_tree):
    lines = (
        "import asking, asking_too\nprint(asking.statement(), asking_too.statement(), asking_too.submodule())\n"
        "import torch; print(torch.__version__)"
    )
    assert asked(installed, small_tree, lines, only={"asking"}) == [f"{OURS} {OTHER} ('{OTHER}', True)", OTHER]
    assert asked(installed, small_tree, lines, only={"asking", "__main__"})[-1] == OURS


def test_blocked_importer_finds_no_torch_where_there_is_none(installed, small_tree):
    lines = (
        f"sys.path.append({small_tree.other + '/..'!r})\nfrom other import asking\nimport torch\n"
        "for question in (asking.statement, asking.submodule, asking.function):\n"
        "    try: print(question())\n    except ModuleNotFoundError as e: print(e)\n"
        "import importlib.util, other.asking as a\nprint(torch.__version__, a.importlib.util is importlib.util)\n"
    )
    expected = ["No module named 'torch'"] * 3 + [f"{OURS} True"]
    assert asked(installed, small_tree, lines, path=False, block={"other"}) == expected


def test_probes_answer_like_imports(installed, small_tree):
    lines = (
        "import asking, asking_too\n"
        "for _ in range(2):\n    print('served' in asking.spec(), 'served' in asking_too.spec())\n    import torch\n"
        "import importlib.metadata\n"
        "exec('def version(): return importlib.metadata.version(\"torch\")', vars(asking))\n"
        "try: print(asking.version())\nexcept importlib.metadata.PackageNotFoundError: print('no distribution')\n"
        "print(importlib.metadata.version('torch'))\n"
    )
    out = asked(installed, small_tree, lines, block={"asking"})
    assert out == ["False True", "False True", "no distribution", OURS]


def test_served_modules_keep_to_their_own_tree(installed, small_tree):
    lines = (
        "import asking, torch.lazy as lazy\n"
        "print(asking.statement(), lazy.version())\n"
        "with msadapter_hook.paused(): print(lazy.version(), asking.statement())\n"
    )
    expected = [f"{OTHER} ('{OURS}', '{OURS}')", f"('{OURS}', '{OURS}') {OTHER}"]
    assert asked(installed, small_tree, lines, block={"asking"}) == expected


def test_paused(installed, small_tree):
    lines = (
        "import builtins; plain = builtins.__import__\nimport torch as ours, asking, threading\n"
        "with msadapter_hook.paused():\n"
        "    import torch; print(torch.__version__, asking.function(), asking.submodule())\n"
        "    seen = []; t = threading.Thread(target=lambda: seen.append(asking.statement()))\n"
        "    t.start(); t.join(); print(seen)\n"
        "    with msadapter_hook.paused(): print(asking.statement())\n"
        "import torch; print(torch is ours, asking.statement(), builtins.__import__ is plain)\n"
        "handle.uninstall()\n"
        "with msadapter_hook.paused(): import torch\n"
        "print(torch.__version__)\n"
    )
    assert asked(installed, small_tree, lines) == [
        f"{OTHER} {OTHER} ('{OTHER}', True)",
        f"['{OURS}']",
        OTHER,
        f"True {OURS} True",
        OTHER,
    ]


def test_filter_can_be_changed_and_comes_back(installed, small_tree):
    lines = (
        "import asking\nprint(asking.statement())\n"
        "with msadapter_hook.install(block={'asking'}): print(asking.statement())\n"
        "print(asking.statement())\n"
        "for arguments in ({'only': 'asking'}, {'only': {'a'}, 'block': {'b'}}):\n"
        "    try: msadapter_hook.install(**arguments)\n"
        "    except (TypeError, ValueError) as e: print(type(e).__name__)\n"
        "print(asking.statement())\n"
    )
    assert asked(installed, small_tree, lines) == [OURS, OTHER, OURS, "TypeError", "ValueError", OURS]


def test_threads_on_both_sides(installed, small_tree):
    lines = (
        "import asking, asking_too, threading\nsys.setswitchinterval(1e-6)\nwrong = []\n"
        "def work(module, right):\n"
        "    for _ in range(300):\n        if module.statement() != right: wrong.append(module)\n"
        f"pairs = [(asking, {OTHER!r}), (asking_too, {OURS!r})] * 3\n"
        "threads = [threading.Thread(target=work, args=pair) for pair in pairs]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]; print(len(wrong))\n"
    )
    assert asked(installed, small_tree, lines, block={"asking"}) == ["0"]


def test_modules_of_another_torch_keep_to_theirs(installed, small_tree):
    lines = (
        "import asking\nasking.statement()\nimport torch as ours\n"
        "with msadapter_hook.paused(): import torch\n"
        "print(torch.late(), torch.__version__, sys.modules['torch'] is ours, 'torch.later' in sys.modules)\n"
    )
    assert asked(installed, small_tree, lines, block={"asking"}) == [f"(True, True) {OTHER} True False"]


def test_an_import_on_one_side_waits_for_the_other(installed, small_tree):
    lines = (
        "import asking, threading, time\nimport torch\nright = torch\nseen = []\n"
        "exec('def slow(): import torch.slow; return torch.slow.other, torch.__version__', vars(asking))\n"
        "slow = threading.Thread(target=lambda: seen.append(asking.slow())); slow.start()\n"
        "wrong = 0\n"
        "while slow.is_alive():\n    import torch, torch.nn\n"
        "    wrong += torch is not right or hasattr(torch.nn, 'other')\n"
        "print(seen, wrong, sys.modules['torch'] is right, 'torch.slow' in sys.modules)\n"
    )
    assert asked(installed, small_tree, lines, block={"asking"}) == [f"[(True, '{OTHER}')] 0 True False"]


def test_traceback_through_a_watched_import_has_none_of_our_frames(installed, small_tree, write):
    write({"program.py": small_tree(block={"nobody"}) + "import torch.broken\n"})
    done = installed("-m", "msadapter_hook", "program.py", cwd=small_tree.folder, MSADAPTER_HOOK=0)
    assert done.returncode == 1 and "hook/visibility" not in done.stderr
    code = small_tree(block={"nobody"}) + "from msadapter_hook.hook.runner import execute\n"
    code += "def run():\n    import torch.broken\nsys.exit(execute(run))\n"
    done = installed("-c", code)
    assert done.returncode == 1 and "RuntimeError: inside" in done.stderr and "msadapter_hook" not in done.stderr
