"""The variables of the environment: name, default and meaning of each, in one dataclass.

This module is the only one that reads `os.environ`, and the only one that writes it.
"""

import os
import sys
import zlib
from dataclasses import dataclass, field, fields

from msadapter_hook.errors import SettingsError

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


def _switch(name, text):
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise SettingsError(f"{name}={text!r}: expected 1 or 0")


def _count(name, text):
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise SettingsError(f"{name}={text!r}: expected a positive number")
    return number


def _choice(*words):
    def parse(name, text):
        for word in words:
            if text.strip().lower() == word.lower():
                return word
        raise SettingsError(f"{name}={text!r}: expected one of {', '.join(words)}")

    return parse


def _asked(name, text):
    """PyTorch's own switches are on for these words and off for any other."""
    return text.strip().lower() in ("1", "y", "yes", "true")


def _text(name, text):
    return text


def _variable(name, default, parse, meaning):
    return field(default=default, metadata={"variable": name, "parse": parse, "meaning": meaning})


@dataclass(frozen=True)
class Settings:
    """One reading of the environment. Field by field: the variable, its default, how it is read, what it means."""

    hook: bool | None = _variable(
        "MSADAPTER_HOOK",
        None,
        _switch,
        "1: serve `import torch`; 0: never, whatever else asks; unset: ENABLE_BACKWARD decides",
    )
    enable_backward: bool = _variable(
        "ENABLE_BACKWARD", False, _switch, "1: the hook with the tape, so that Tensor.backward() works"
    )
    eager: bool = _variable("MSADAPTER_EAGER", False, _switch, "1: compute every value at once, never late")
    jit: str = _variable(
        "MSADAPTER_JIT",
        "auto",
        _choice("auto", "on", "off"),
        "replay of recorded programs compiled by mindspore.jit; auto: where it pays for itself",
    )
    cache: str | None = _variable(
        "MSADAPTER_CACHE", None, _text, "folder of compiled programs' sources; unset: msadapter_hook in the user's cache folder"
    )
    kernels: str = _variable(
        "MSADAPTER_KERNELS",
        "mindspore",
        _choice("mindspore", "host"),
        "mindspore: primitives; host: NumPy kernels with own gradients",
    )
    device: str = _variable(
        "MSADAPTER_DEVICE",
        "auto",
        _choice("auto", "CPU", "GPU", "Ascend"),
        "device of MindSpore; auto: the one it chooses",
    )
    synchronous: bool = _variable(
        "MSADAPTER_SYNC",
        True,
        _switch,
        "1: each primitive is finished when its call returns; 0: MindSpore's asynchronous mode, slower on few processors",
    )
    threads: int | None = _variable(
        "MSADAPTER_THREADS", None, _count, "threads of a CPU kernel; unset: one per processor"
    )
    log: str = _variable(
        "MSADAPTER_LOG",
        "error",
        _choice("debug", "info", "warning", "error", "critical"),
        "lowest level of MindSpore's log messages that is shown",
    )
    report: bool = _variable(
        "MSADAPTER_REPORT", False, _switch, "1: print at exit which torch names were used, and how"
    )
    glog_v: str | None = _variable("GLOG_v", None, _text, "MindSpore's own log level 0-4; unset: from MSADAPTER_LOG")
    onednn_max_cpu_isa: str | None = _variable(
        "ONEDNN_MAX_CPU_ISA",
        None,
        _text,
        "instruction set of oneDNN. MindSpore's own Conv2D is 30 to 100 times as fast with AVX2 where the processor has AVX-512; "
        "unset: AVX2 in asynchronous mode",
    )
    force_weights_only: bool = _variable(
        "TORCH_FORCE_WEIGHTS_ONLY_LOAD", False, _asked, "1: torch.load is weights_only=True, whatever the call says"
    )
    force_no_weights_only: bool = _variable(
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", False, _asked,
        "1: torch.load is weights_only=False where the call does not say (a file can then execute code)"
    )
    openblas_coretype: str | None = _variable(
        "OPENBLAS_CORETYPE", None, _text, "kernels of NumPy's products; unset: from the processor's flags"
    )

    @property
    def hook_wanted(self):
        """True where the environment asks for the hook."""
        return self.enable_backward if self.hook is None else self.hook


#: MSADAPTER_LOG -> GLOG_v
_LOG_LEVELS = {"debug": "0", "info": "1", "warning": "2", "error": "3", "critical": "4"}

_current = None
_origins = {}  # variable -> who set it, where that was not the user's environment


def cache_folder():
    """Where sources of compiled programs are kept (a pathlib.Path)."""
    from pathlib import Path

    chosen = current().cache
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(base) / "msadapter_hook"


def current():
    """The settings as read last (at the first call: now). Raises SettingsError for a value that means nothing."""
    return _current or reload()


def reload():
    """Read the environment again and give the settings."""
    global _current
    values = {}
    for item in fields(Settings):
        name = item.metadata["variable"]
        if is_set(name):
            values[item.name] = item.metadata["parse"](name, os.environ[name])
    _current = Settings(**values)
    return _current


def table():
    """Rows (variable, value, where it comes from, meaning), in the order of the fields."""
    now, rows = current(), []
    for item in fields(Settings):
        name = item.metadata["variable"]
        origin = _origins.get(name, "environment") if is_set(name) else "default"
        rows.append((name, getattr(now, item.name), origin, item.metadata["meaning"]))
    return rows


def is_set(name):
    """True where the environment gives the variable a value (an empty one is none)."""
    return bool(os.environ.get(name, "").strip())


def variable(name, default=None):
    """A variable that launchers of several processes set (RANK, MASTER_ADDR …), as text; `default` where it is not set."""
    return os.environ[name] if is_set(name) else default


def for_child(**variables):
    """The environment of a child process: this one's, with these variables (None: without it)."""
    made = {**os.environ, **variables}
    return {name: text for name, text in made.items() if text is not None}


def export(origin="msadapter_hook", **variables):
    """Set variables for this process and its children; gives what `restore` needs to undo it.

    origin: who sets them, as `table` tells it.
    """
    before = [(name, os.environ.get(name), _origins.get(name), text) for name, text in variables.items()]
    for name, text in variables.items():
        os.environ[name] = text
        _origins[name] = origin
    reload()
    return before


def restore(before):
    """Undo an `export`. A variable that somebody else has changed since is left alone."""
    for name, text, origin, exported in reversed(before):
        if os.environ.get(name) != exported:
            continue
        _put(os.environ, name, text)
        _put(_origins, name, origin)
    reload()


def _put(mapping, key, value):
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def prepend_path(name, folder):
    """Put `folder` first in a path variable such as PYTHONPATH, once; gives what `restore` needs."""
    parts = [part for part in os.environ.get(name, "").split(os.pathsep) if part]
    if folder in parts:
        return []
    return export(**{name: os.pathsep.join([folder, *parts])})


def prepare_process():
    """Set what has to be set before NumPy and MindSpore load, where the user has not; gives what `restore` needs.

    Where NumPy is loaded already this comes too late for this process, but not for its children.
    """
    flags = _processor_flags()
    chosen = {
        "GLOG_v": _LOG_LEVELS[current().log],
        # Beyond AVX2 the primitive Conv2D falls to oneDNN's reference code, 30 to 100 times slower. Convolutions on the memory of tensors
        # ask oneDNN for layouts that it has code for.
        "ONEDNN_MAX_CPU_ISA": "AVX2" if "avx512f" in flags and current().kernels != "host" and not current().synchronous else None,
        # The OpenBLAS of NumPy 1.26 does not know newer processors and takes SSE3 kernels for them.
        "OPENBLAS_CORETYPE": "SkylakeX" if "avx512bw" in flags else "Haswell" if "avx2" in flags else None,
    }
    before = export("processor", **{name: text for name, text in chosen.items() if text and not is_set(name)})
    named = {} if is_set("RANK") else _as_pytorch_names()
    return before + export("launcher", **{name: str(text) for name, text in named.items() if text is not None and not is_set(name)})


def _as_pytorch_names():
    """What `msrun` or `mpirun` tells this process, under the names that torchrun gives it and PyTorch programs read."""
    if is_set("MS_ROLE"):
        address, port = variable("MS_SCHED_HOST", "127.0.0.1"), variable("MS_SCHED_PORT")
        return {
            "RANK": variable("RANK_ID", variable("MS_NODE_ID")), "WORLD_SIZE": variable("MS_WORKER_NUM"),
            "LOCAL_RANK": variable("DEVICE_ID", "0"), "MASTER_ADDR": address,
            "MASTER_PORT": int(port) + 1 if port else None,  # the port itself is that of MindSpore's scheduler
        }
    for prefix, local in (("OMPI_COMM_WORLD_", "OMPI_COMM_WORLD_LOCAL_"), ("PMI_", "MPI_LOCAL")):
        if is_set(prefix + "RANK") and is_set(prefix + "SIZE"):
            rank, size = variable(prefix + "RANK"), variable(prefix + "SIZE")
            local_rank = variable(local + "RANK", variable("MPI_LOCALRANKID", rank))
            local_size = variable(local + "SIZE", variable("MPI_LOCALNRANKS", size))
            named = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": local_size}
            if local_size == size:  # one machine: an address that all processes find by themselves
                job = variable("PMIX_NAMESPACE", variable("PMI_JOBID", str(os.getppid())))
                named |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 20000 + zlib.crc32(job.encode()) % 12000}
            return named
    return {}


def _processor_flags():
    if sys.platform != "linux":
        return frozenset()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass  # a container without /proc: leave the libraries to their own choice
    return frozenset()
