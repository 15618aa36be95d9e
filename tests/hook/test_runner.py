"""`python -m msadapter_hook`: a program cannot tell it from Python itself."""

import os
import re
import signal
import sys
import zipfile

import pytest

#: prints what a program can see of the way it was started
PROBE = """
import sys, os
main = sys.modules["__main__"]
assert main.__dict__ is globals()
for name in sorted(vars(main)):
    value = vars(main)[name]
    if name in ("sys", "os", "main", "name", "value"):
        continue
    if name == "__spec__" and value is not None:
        value = value.name, type(value.loader).__name__, value.origin
    if name == "__loader__":
        value = value if isinstance(value, type) else type(value).__name__
    if name == "__builtins__":
        value = type(value).__name__
    print(name, value)
print(sys.argv, repr(sys.path[0]), len(sys.path), os.getcwd())
"""


def both(python, *arguments, **options):
    """The same program under Python and under the command."""
    return python(*arguments, **options), python("-m", "msadapter_hook", *arguments, **options)


def assert_alike(plain, ours):
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)


@pytest.fixture
def elsewhere(tmp_path):
    """A working folder that is not the script's."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_script_in_another_folder_imports_its_sibling(installed, write, elsewhere):
    folder = write({"job/train.py": "import sibling\n" + PROBE, "job/sibling.py": "print('sibling', __name__)\n"})
    plain, ours = both(installed, folder / "job" / "train.py", "a", "--report", "-h", cwd=elsewhere)
    assert plain.returncode == 0 and "sibling sibling" in plain.stdout
    assert_alike(plain, ours)


def test_script_by_relative_path_and_link(installed, write, elsewhere):
    folder = write({"job/train.py": PROBE})
    os.symlink(folder / "job" / "train.py", elsewhere / "link.py")
    for path in ("../job/train.py", "link.py"):
        plain, ours = both(installed, path, cwd=elsewhere)
        assert plain.returncode == 0
        assert_alike(plain, ours)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "pack"],
        ["-m", "pack.inner", "-x", "y"],
        ["-mpack", "z"],
        ["folder", "a"],
        ["archive.zip", "a"],
        ["old.pyc"],
    ],
    ids=" ".join,
)
def test_modules_folders_archives_bytecode(installed, write, arguments):
    folder = write(
        {"pack/__init__.py": "", "pack/__main__.py": PROBE, "pack/inner.py": PROBE, "folder/__main__.py": PROBE}
    )
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", PROBE)
    (folder / "source.py").write_text(PROBE)
    installed.output("-c", "import py_compile; py_compile.compile('source.py', 'old.pyc')", cwd=folder)
    plain, ours = both(installed, *arguments, cwd=folder)
    assert plain.returncode == 0, plain.stderr
    assert_alike(plain, ours)


def test_code_and_standard_input(installed, elsewhere):
    assert_alike(*both(installed, "-c", PROBE, "a", "-m", "b", cwd=elsewhere))
    plain, ours = both(installed, "-", "a", "-c", input=PROBE, cwd=elsewhere)
    assert "['-', 'a', '-c']" in ours.stdout
    assert_alike(plain, ours)


def test_safe_path_keeps_the_folder_off_the_path(installed, write):
    if sys.version_info < (3, 11):
        pytest.skip("python -P came with 3.11")
    folder = write({"train.py": PROBE})
    plain, ours = (
        installed("-P", "train.py", cwd=folder),
        installed("-P", "-m", "msadapter_hook", "train.py", cwd=folder),
    )
    assert_alike(plain, ours)


@pytest.mark.parametrize(
    "end",
    ["sys.exit(7)", "sys.exit('words')", "sys.exit()", "raise SystemExit(None)", "os._exit(5)",
     "import nothing_like_it",
     "raise ExceptionGroup('two', [ValueError(1), TypeError(2)])" if sys.version_info >= (3, 11) else "1/0",
     "sys.excepthook = lambda kind, value, trace: print('mine', kind.__name__, trace.tb_lineno, trace.tb_next)"
     "\nraise ValueError",
     "sys.excepthook = lambda *exception: 1/0\nraise ValueError",
     "import atexit; atexit.register(print, 'at the end'); 1/0",
     "import threading; threading.Thread(target=lambda: 1/0).start()"],
)  # fmt: skip
def test_ends_alike(installed, write, end):
    folder = write({"train.py": f"import sys, os\nprint('begun', flush=True)\n{end}\n"})
    plain, ours = both(installed, "train.py", cwd=folder)
    assert "begun" in plain.stdout

    def without_addresses(text):  # a thread's name and the caret lines stay
        return re.sub(r"0x[0-9a-f]+", "0x", text)

    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    assert without_addresses(ours.stderr) == without_addresses(plain.stderr)


FAILING = """
import helper
def outer():
    try:
        helper.fail()
    except ValueError as error:
        raise RuntimeError("after") from error
outer()
"""


@pytest.mark.parametrize("arguments", [["train.py"], ["-m", "train"], ["-c", "import train"], ["folder"]], ids=" ".join)
def test_traceback_shows_the_users_frames_only(installed, write, arguments):
    helper = "def fail():\n    raise ValueError('first')\n"
    folder = write(
        {"train.py": FAILING, "helper.py": helper, "folder/__main__.py": FAILING, "folder/helper.py": helper}
    )
    plain, ours = both(installed, *arguments, cwd=folder)
    assert plain.returncode == 1 and "ValueError: first" in plain.stderr and "in outer" in plain.stderr
    assert_alike(plain, ours)


def test_traceback_of_a_syntax_error(installed, write):
    assert_alike(*both(installed, "train.py", cwd=write({"train.py": "x = 1\nprint(x\ny = = 2\n"})))


def test_coding_line_and_byte_order_mark(installed, tmp_path):
    (tmp_path / "latin.py").write_bytes("# -*- coding: latin-1 -*-\nprint(ascii('é'))\n".encode("latin-1"))
    (tmp_path / "mark.py").write_bytes(b"\xef\xbb\xbfprint('marked')\n")
    for name in ("latin.py", "mark.py"):
        assert_alike(*both(installed, name, cwd=tmp_path))


@pytest.mark.parametrize(
    "arguments", [["missing.py"], ["-m", "missing_module"], ["empty"], ["-m", "xml"]], ids=" ".join
)
def test_missing_program_gets_pythons_own_message(installed, write, arguments):
    folder = write({"empty/notes.txt": ""})
    plain, ours = both(installed, *arguments, cwd=folder)
    assert plain.returncode == (2 if arguments == ["missing.py"] else 1)
    assert_alike(plain, ours)


@pytest.mark.parametrize("arguments", [["--nonsense", "x.py"], ["-q"], [], ["-m"], ["-c"], ["--report"]], ids=" ".join)
def test_unknown_option_prints_usage(installed, arguments):
    done = installed("-m", "msadapter_hook", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert "usage: python -m msadapter_hook" in done.stderr


def test_interrupt_ends_by_the_signal(installed, write):
    folder = write({"train.py": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"})
    plain, ours = both(installed, "train.py", cwd=folder)
    assert plain.returncode == -signal.SIGINT
    assert_alike(plain, ours)


def test_script_that_replaces_main_pickles_its_classes(installed, write):
    code = "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A, A.__module__)\n"
    assert_alike(*both(installed, "train.py", cwd=write({"train.py": code})))


def test_help_version_info(installed):
    assert "usage: python -m msadapter_hook" in installed.output("-m", "msadapter_hook", "-h")
    assert "2.13.0+mindspore2.10" in installed.output("-m", "msadapter_hook", "--version")
    info = installed.output("-m", "msadapter_hook", "--host-kernels", "--info", MSADAPTER_THREADS=2)
    assert re.search(r"MSADAPTER_THREADS +2 +environment", info)
    assert re.search(r"MSADAPTER_KERNELS +host +command line", info)
    assert re.search(r"MSADAPTER_DEVICE +auto +default", info)
    assert re.search(r"mindspore +\d", info) and re.search(r"numpy +\d", info)


def test_options_set_the_variables(installed):
    code = "import os; print([os.environ.get(n) for n in ('MSADAPTER_KERNELS', 'MSADAPTER_EAGER', 'ENABLE_BACKWARD')])"
    assert installed.output("-m", "msadapter_hook", "-c", code) == "[None, None, '1']\n"
    assert installed.output("-m", "msadapter_hook", "--host-kernels", "--eager", "-c", code) == "['host', '1', '1']\n"
    assert installed.output("-m", "msadapter_hook", "-c", code, ENABLE_BACKWARD=0) == "[None, None, '0']\n"


def test_wrong_setting_is_named(installed):
    done = installed("-m", "msadapter_hook", "-c", "print('ran')", MSADAPTER_KERNELS="fast")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == "msadapter_hook: MSADAPTER_KERNELS='fast': expected one of mindspore, host\n"


def test_report_is_printed_at_the_very_end(installed):
    code = (
        "import atexit\natexit.register(print, 'last words', flush=True)\n"
        "from msadapter_hook import report\n"
        "assert report.enabled\nreport.count('torch.add', 'primitive', 0.002)\n"
        "report.count('torch.add', 'primitive', 0.001)\n"
        "report.missing('torch.nothing')\n"
    )
    done = installed("-m", "msadapter_hook", "--report", "-c", code)
    assert done.stdout == "last words\n"
    assert re.search(r"torch.add +primitive +2 +3.00", done.stderr)
    assert re.search(r"torch.nothing +1x", done.stderr)


def test_console_script(installed, python_type, write):
    folder = write({"job/train.py": "import sys; print(sys.path[0], sys.argv)\n"})
    command = os.path.join(os.path.dirname(installed.executable), "msadapter-hook")
    done = python_type(command)("job/train.py", "x", cwd=folder)
    assert done.stdout == installed.output("job/train.py", "x", cwd=folder)


def test_switched_off_the_program_runs_without_the_hook(installed):
    code = "import msadapter_hook; print(msadapter_hook.is_installed())"
    assert installed.output("-m", "msadapter_hook", "-c", code) == "True\n"
    assert installed.output("-m", "msadapter_hook", "-c", code, MSADAPTER_HOOK=0) == "False\n"
