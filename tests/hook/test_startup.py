"""ENABLE_BACKWARD=1 and MSADAPTER_HOOK=1/0: the start-up files of an installed package, children, shadowed files."""

import shutil

import pytest

STATE = "import sys, msadapter_hook, os; print(msadapter_hook.is_installed(), os.environ.get('ENABLE_BACKWARD'))"
TAPE = "import msadapter_hook.settings as s, msadapter_hook as m; print(m.is_installed(), s.current().enable_backward)"


@pytest.mark.parametrize(
    "variables, expected",
    [
        ({}, "False False"),
        ({"ENABLE_BACKWARD": 1}, "True True"),
        ({"ENABLE_BACKWARD": 0}, "False False"),
        ({"ENABLE_BACKWARD": ""}, "False False"),
        ({"MSADAPTER_HOOK": 1}, "True False"),
        ({"MSADAPTER_HOOK": 1, "ENABLE_BACKWARD": 0}, "True False"),
        ({"MSADAPTER_HOOK": "true", "ENABLE_BACKWARD": "yes"}, "True True"),
        ({"MSADAPTER_HOOK": 0, "ENABLE_BACKWARD": 1}, "False True"),
    ],
    ids=str,
)
def test_variables_switch_it_on(installed, tmp_path, variables, expected):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "train.py").write_text(TAPE)
    assert installed.output(tmp_path / "job" / "train.py", cwd=tmp_path, **variables).strip() == expected


def test_a_meaningless_value_is_one_line_and_python_goes_on(installed):
    done = installed("-c", STATE, ENABLE_BACKWARD="perhaps")
    assert done.returncode == 0 and done.stdout == "False perhaps\n"
    assert done.stderr == "msadapter_hook: the hook is off: ENABLE_BACKWARD='perhaps': expected 1 or 0\n"


def test_without_the_variable_nothing_of_the_package_is_imported(installed):
    unwanted = "msadapter", "numpy", "mindspore", "importlib.util"
    code = f"import sys; print([n for n in sys.modules if n.startswith({unwanted})])"
    assert installed.output("-c", code) == "[]\n"


def test_users_own_sitecustomize_still_runs(installed, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.users_own = __file__, __name__, __spec__.origin\n")
    code = "import sys, sitecustomize as s; print(sys.users_own[:2], s.__file__); " + STATE
    for variables in ({}, {"MSADAPTER_HOOK": 1}):
        # before ours on the path (as Debian's is), so that the .pth file must do; and after ours, where ours runs it
        before = installed.output("-c", code, PYTHONPATH=tmp_path, **variables)
        after = installed.output("-c", code, cwd=tmp_path, PYTHONPATH=f"{bootstrap(installed)}:{tmp_path}", **variables)
        expected = f"('{tmp_path}/sitecustomize.py', 'sitecustomize') {tmp_path}/sitecustomize.py\n"
        assert before == after == expected + f"{bool(variables)} None\n"


def bootstrap(installed):
    """The folder that is put on the path of children."""
    return installed.output("-c", "import msadapter_hook.hook.session as s; print(s.BOOTSTRAP)").strip()


def test_error_in_a_shadowed_sitecustomize_is_reported_as_pythons(installed, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('mine')\n")
    path = f"{bootstrap(installed)}:{tmp_path}"
    plain = installed("-c", "print('ran')", PYTHONPATH=tmp_path)
    ours = installed("-c", "print('ran')", PYTHONPATH=path)
    assert ours.stdout == "ran\n" and (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)


def test_both_start_up_files_activate_once(installed):
    code = "import sys; print([type(f).__name__ for f in sys.meta_path].count('ServedFinder'))"
    assert installed.output("-c", code, ENABLE_BACKWARD=1) == "1\n"


def test_sitecustomize_alone_is_enough(make_environment, tmp_path):
    made = make_environment(tmp_path / "env", ".")
    next((tmp_path / "env").glob("lib/python*/site-packages/msadapter_hook_startup.pth")).unlink()
    assert made.output("-c", STATE, ENABLE_BACKWARD=1) == "True 1\n"


def test_start_up_files_left_behind_do_no_harm(make_environment, tmp_path):
    made = make_environment(tmp_path / "env", ".")
    shutil.rmtree(next((tmp_path / "env").glob("lib/python*/site-packages/msadapter_hook")))
    done = made("-c", "import os; print('ran')", ENABLE_BACKWARD=1)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def test_editable_install_works_alike(make_environment, tmp_path, project_root):
    made = make_environment(tmp_path / "env", "-e", ".")
    assert made.output("-c", STATE, cwd=tmp_path, ENABLE_BACKWARD=1) == "True 1\n"
    assert made.output("-c", STATE, cwd=tmp_path) == "False None\n"
    where = made.output("-m", "msadapter_hook", "-c", "import msadapter_hook as m; print(m.__file__)", cwd=tmp_path)
    assert where == f"{project_root}/msadapter_hook/__init__.py\n"


CHILDREN = """
import multiprocessing, subprocess, sys, os
CODE = "import msadapter_hook as m, msadapter_hook.settings as s; print(m.is_installed(), s.current().enable_backward)"
def state(queue):
    import msadapter_hook.settings as s
    import msadapter_hook as m
    queue.put((m.is_installed(), s.current().enable_backward))
if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=state, args=(queue,))
        process.start()
        print(method, *queue.get(timeout=60))
        process.join()
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, cwd="/")
    print("subprocess", done.stdout.strip())
"""
INHERITED = [f"{kind} True {{tape}}" for kind in ("spawn", "forkserver", "fork", "subprocess")]


@pytest.mark.parametrize("python", ["installed", "checkout"])
@pytest.mark.parametrize("tape", [True, False])
def test_children_inherit_from_the_command(request, write, python, tape):
    run = request.getfixturevalue(python)
    folder = write({"train.py": CHILDREN})
    variables = {} if tape else {"ENABLE_BACKWARD": 0}
    out = run.output("-m", "msadapter_hook", "train.py", cwd=folder, **variables)
    assert out.splitlines() == [line.format(tape=tape) for line in INHERITED]


def test_children_inherit_from_install(checkout, write, project_root):
    folder = write({"train.py": f"import sys; sys.path.append({str(project_root)!r})\n"
                                "import msadapter_hook; msadapter_hook.install()\n" + CHILDREN})  # fmt: skip
    assert checkout.output("train.py", cwd=folder).splitlines() == [line.format(tape=False) for line in INHERITED]


def test_bootstrap_puts_nothing_before_the_childs_own_modules(checkout, tmp_path):
    child = "import sys, msadapter_hook; folders = [p for p in sys.path if p and p != sys.argv[1]]; "
    child += "print(folders.index(sys.argv[2]), len(sys.path))"
    code = (
        "import msadapter_hook.hook.session as s, subprocess, sys, os\n"
        "os.environ['PYTHONPATH'] = str(s.BOOTSTRAP)\n"  # without the checkout, which this test's interpreter got by it
        f"subprocess.run([sys.executable, '-c', {child!r}, str(s.BOOTSTRAP), str(s.PACKAGE.parent)])\n"
    )
    place, length = map(int, checkout.output("-m", "msadapter_hook", "-c", code, cwd=tmp_path).split())
    assert place == length - 3  # last but for the empty entry of -c and the bootstrap folder


def test_start_up_costs_less_than_a_millisecond(installed):
    code = (
        "import time, sys\n"
        "path = next(p for p in sys.path if p.endswith('site-packages')) + '/sitecustomize.py'\n"
        "import sitecustomize; assert sitecustomize.__file__ == path, sitecustomize.__file__\n"
        "source = open(path).read(); code = compile(source, path, 'exec')\n"
        "lines = [l for l in open(path.replace('sitecustomize.py', 'msadapter_hook_startup.pth'))]\n"
        "begin = time.perf_counter()\nexec(code, {'__file__': path, '__name__': 'sitecustomize'})\n"
        "for line in lines: exec(line)\nprint((time.perf_counter() - begin) * 1e3)"
    )
    assert min(float(installed.output("-c", code)) for _ in range(5)) < 1.0  # noise only adds
