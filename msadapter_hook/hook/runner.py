"""`python -m msadapter_hook [options] program`: runs a program as Python itself would, with the hook on.

What Python does for a script, -m, -c, standard input, a folder or a zip file is done here in the same order and with
the same words; the frames of this package are cut out of what is printed.
"""

import builtins
import io
import os
import platform
import sys
import traceback
import types
from functools import partial
from importlib import util
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader

from msadapter_hook import settings
from msadapter_hook.errors import HookError, SettingsError
from msadapter_hook.hook import session, startup
from msadapter_hook.version import TORCH_VERSION, __version__

USAGE = """\
usage: python -m msadapter_hook [options] program [arguments]
       python -m msadapter_hook [options] --info
       python -m msadapter_hook convert in.pth out.ckpt (and back; --help tells more)

program, as for python itself:
  script.py          a script; also a folder or a zip file with a __main__.py
  -m module          a module or package
  -c code            code
  -                  code from standard input

options:
  --report           print at the end which torch names were used, by which path, and what was missing
  --host-kernels     operators by NumPy kernels where there are such (MSADAPTER_KERNELS=host)
  --eager            compute every value at once, never late (MSADAPTER_EAGER=1)
  --nproc N          run the program in N processes that torch.distributed joins, as torchrun does
  --info             print settings and versions; a program is not needed
  -V, --version      print the version
  -h, --help         print this

ENABLE_BACKWARD=1 is set unless the environment has it. MSADAPTER_HOOK=0 runs the program without the hook.
"""

#: options that stand for a variable
VARIABLES = {
    "--host-kernels": {"MSADAPTER_KERNELS": "host"},
    "--eager": {"MSADAPTER_EAGER": "1"},
}

#: modules of PyTorch that start a program in several processes, and how
LAUNCHERS = {"torch.distributed.run": {}, "torch.distributed.launch": {"launch": True}}

_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


class UsageError(Exception):
    """The command line makes no sense."""


def main(arguments=None):
    """Run the command line (by default `sys.argv[1:]`); gives the exit status where the program does not end itself."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        options, run = parse(arguments)
        exports = [VARIABLES[option] for option in options if option in VARIABLES]
        for variables in exports:
            settings.export("command line", **variables)
        if "--help" in options:
            print(USAGE, end="")
            return 0
        if "--version" in options:
            print(f"msadapter_hook {__version__} (torch {TORCH_VERSION})")
            return 0
        if "--nproc" in options:
            from msadapter_hook import launch

            return launch.in_processes(options["--nproc"], arguments)
        prepare(report="--report" in options)
    except UsageError as error:
        print(f"msadapter_hook: {error}\n{USAGE}", file=sys.stderr, end="")
        return 2
    except (HookError, SettingsError) as error:
        print(f"msadapter_hook: {error}", file=sys.stderr)
        return 1
    if "--info" in options:
        print(info())
        if run is None:
            return 0
    return execute(run)


def parse(arguments):
    """Split the command line; gives the long options (with --nproc's number) and a function that runs the program (or None)."""
    long = {"-h": "--help", "-V": "--version"}
    known = {"--report", "--info", "--help", "--version", *VARIABLES}
    options = {}
    rest = list(arguments)
    while rest:
        word = rest[0]
        kind = next((letter for letter in ("-m", "-c") if word.startswith(letter)), None)
        if kind:
            operand = [word[2:]] if len(word) > 2 else rest[1:2]
            if not operand:
                raise UsageError(f"argument expected for the {kind} option")
            program_arguments = rest[1:] if len(word) > 2 else rest[2:]
            return options, partial({"-m": run_module, "-c": run_code}[kind], operand[0], program_arguments)
        if word == "convert" and not os.path.exists(word):
            return options, partial(run_convert, rest[1:])
        if word == "-":
            if options.get("--nproc", 1) > 1:
                raise UsageError("--nproc wants a program that each process can read, not standard input")
            return options, partial(run_stdin, rest[1:])
        if not word.startswith("-"):
            return options, partial(run_path, word, rest[1:])
        option = long.get(word, word)
        if option.partition("=")[0] == "--nproc":
            number = option.partition("=")[2] if "=" in option else "".join(rest[1:2])
            if not number.isdigit() or int(number) < 1:
                raise UsageError(f"--nproc wants a number of processes, not {number!r}")
            options["--nproc"] = int(number)
            del rest[: 1 if "=" in option else 2]
            continue
        if option not in known:
            raise UsageError(f"unknown option {word}")
        options[option] = True
        rest.pop(0)
    if not options.keys() & {"--info", "--help", "--version"}:
        raise UsageError("no program given")
    return options, None


def prepare(report=False):
    """Set the variables, install the hook, and let children inherit both. Raises HookError, SettingsError."""
    if not settings.is_set("ENABLE_BACKWARD"):
        settings.export("command line", ENABLE_BACKWARD="1")
    session.install()
    if report or settings.current().report:
        startup.report_at_exit()


def info():
    """The settings, where each comes from, and the versions, as text."""
    from importlib.metadata import PackageNotFoundError, version

    def found(name):
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    rows = [tuple("-" if cell is None else str(cell) for cell in row) for row in settings.table()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"msadapter_hook {__version__}, hook {'on' if session.is_installed() else 'off'}"]
    lines += [
        f"  {name:<11} {text}"
        for name, text in [
            ("torch", f"{TORCH_VERSION} (served)"),
            ("mindspore", found("mindspore")),
            ("numpy", found("numpy")),
            ("python", f"{platform.python_version()} ({sys.executable})"),
            ("platform", platform.platform()),
            ("processors", str(os.cpu_count())),
            *_host_kernels(),
        ]
    ]
    lines.append("settings (variable, value, from, meaning)")
    for name, value, origin, meaning in rows:
        lines.append(f"  {name:<{widths[0]}}  {value:<{widths[1]}}  {origin:<{widths[2]}}  {meaning}")
    return "\n".join(lines)


def _host_kernels():
    """The line on oneDNN, where host kernels are asked for."""
    if settings.current().kernels != "host":
        return []
    from importlib import import_module

    return [("onednn", import_module("msadapter_hook.prims.kernels").status())]


# ---------------------------------------------------------------- the five kinds of program


def run_path(path, arguments):
    """A script, or a folder or zip file with a `__main__`."""
    sys.argv[:] = [path, *arguments]
    full = os.path.join(os.getcwd(), path)  # not normalized, as Python does
    if _is_container(full):
        sys.path[:] = [full, *_path_without_ours()]
        _new_main()
        _as_main("__main__", alter_argv=False)
        return
    try:
        code, loader = _read_program(full)
    except OSError as error:
        print(f"{sys.orig_argv[0]}: can't open file {full!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        raise SystemExit(2)
    _set_first_path(os.path.dirname(os.path.realpath(path)))
    _run(code, __file__=full, __loader__=loader("__main__", full), __cached__=None)


def run_module(name, arguments):
    """A module or package, as `python -m`. PyTorch's launchers run here at once: they need nothing of torch itself."""
    if name in LAUNCHERS:
        from msadapter_hook import launch

        sys.exit(launch.main(arguments, **LAUNCHERS[name]))
    sys.argv[:] = ["-m", *arguments]
    _set_first_path(os.getcwd())
    _new_main()
    _as_main(name, alter_argv=True)


def run_convert(arguments):
    """The command that converts checkpoints between the two libraries."""
    from importlib import import_module

    raise SystemExit(import_module("msadapter_hook.interop.checkpoints").main(arguments))


def run_code(text, arguments):
    """Code from the command line."""
    sys.argv[:] = ["-c", *arguments]
    _set_first_path("")
    _run(_compile(text, "<string>"))


def run_stdin(arguments):
    """Code from standard input."""
    sys.argv[:] = ["-", *arguments]
    _set_first_path("")
    _run(_compile(sys.stdin.buffer.read(), "<stdin>"), __file__="<stdin>", __cached__=None)


def _compile(source, name):
    return compile(source, name, "exec", dont_inherit=True)


def _is_container(path):
    import pkgutil

    return os.path.exists(path) and pkgutil.get_importer(path) is not None


def _read_program(path):
    with io.open_code(path) as file:
        content = file.read()
    if path.endswith(".pyc") or content[:4] == util.MAGIC_NUMBER:
        return SourcelessFileLoader("__main__", path).get_code("__main__"), SourcelessFileLoader
    return _compile(content, path), SourceFileLoader


def _path_without_ours():
    return sys.path if getattr(sys.flags, "safe_path", False) else sys.path[1:]


def _set_first_path(folder):
    # Python put a first entry for our own command there, unless it was told not to (-P): the program's takes its place
    if not getattr(sys.flags, "safe_path", False):
        sys.path[:1] = [folder]


def _new_main():
    module = types.ModuleType("__main__")
    module.__builtins__ = builtins
    module.__annotations__ = {}
    module.__loader__ = BuiltinImporter
    sys.modules["__main__"] = module
    return module


def _run(code, **names):
    module = _new_main()
    vars(module).update(names)
    exec(code, vars(module))


def _as_main(name, alter_argv):
    import runpy

    runpy._run_module_as_main(name, alter_argv)  # what Python itself calls for -m, folders and zip files


# ---------------------------------------------------------------- the end of a program


def execute(run):
    """Run a program to its end. An uncaught exception is printed as Python prints it, without our frames: status 1."""
    before = sys.modules["__main__"]  # kept alive: its globals are those of the frames above
    try:
        run()
        return 0
    except SystemExit as ending:
        if ending.code not in (None, 0) and "torch.distributed" in sys.modules:  # the other processes are not waited for
            from msadapter_hook import launch

            launch.failed = True
        raise
    except BaseException as error:
        uncaught = error
    show(uncaught)  # not while it is handled: an excepthook would see its own errors chained to it
    if isinstance(uncaught, KeyboardInterrupt):
        # Python ends by the signal itself, after its own clean-up; the traceback is printed already
        sys.excepthook = lambda *exception: None
        raise uncaught
    del before
    return 1


def show(error):
    """Hand an uncaught exception to `sys.excepthook`, which may be the program's own."""
    without_our_frames(error)
    kind, trace = type(error), error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    sys.stdout.flush()
    try:
        sys.excepthook(kind, error, trace)
    except SystemExit:
        raise
    except BaseException as second:
        print("Error in sys.excepthook:", file=sys.stderr)
        traceback.print_exception(_trimmed(second))
        print("\nOriginal exception was:", file=sys.stderr)
        traceback.print_exception(error)


def without_our_frames(error):
    """Cut this package's frames, and what lies above them, out of the tracebacks of an exception and its causes."""
    seen = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        _trimmed(one)
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def _trimmed(error):
    entries = []
    trace = error.__traceback__
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    kept = [entry for entry in entries if not _is_ours(entry)]
    for entry, following in zip(kept, [*kept[1:], None]):
        entry.tb_next = following
    error.__traceback__ = kept[0] if kept else None
    return error


def _is_ours(trace):
    return os.path.abspath(trace.tb_frame.f_code.co_filename).startswith(_FOLDER)
