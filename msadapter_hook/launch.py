"""Launchers: one program in several processes, as `torchrun` starts it, and its end. Imports neither mindspore nor torch.

Each worker is `python -m msadapter_hook program …` with PyTorch's variables (RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR …). The
first worker that fails ends the others; nothing is left running.
"""

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path

from msadapter_hook import settings

DEFAULT_PORT = 29500  # PyTorch's, for several nodes
LOCAL_RANK = "${local_rank}"  # in a command: the worker's
failed = False  # this process, a worker, is ending with a failure
_PATIENCE = 15.0  # seconds between asking a worker to end and ending it
_PACKAGES = Path(__file__).resolve().parent.parent


@dataclass
class Job:
    """What to start: `command` (of one worker), and its place among the nodes."""

    command: list
    name: str  # of the program, for messages
    workers: int = 1  # on this node
    nodes: int = 1
    node_rank: int = 0
    address: str = "localhost"
    port: int | None = None  # None: a free one
    run_id: str = "none"
    role: str = "default"
    restarts: int = 0
    interval: float = 0.1
    log_folder: str | None = None
    redirects: dict = field(default_factory=dict)  # local rank -> 1 stdout, 2 stderr, 3 both: to files only
    tees: dict = field(default_factory=dict)  # the same: to files and the console
    shown: set | None = None  # local ranks whose output is shown

    def variables(self, local_rank, attempt):
        """What a worker finds in its environment: PyTorch's names."""
        rank, world = self.node_rank * self.workers + local_rank, self.nodes * self.workers
        made = {
            "LOCAL_RANK": local_rank, "RANK": rank, "GROUP_RANK": self.node_rank, "ROLE_RANK": rank, "ROLE_NAME": self.role,
            "LOCAL_WORLD_SIZE": self.workers, "WORLD_SIZE": world, "GROUP_WORLD_SIZE": self.nodes, "ROLE_WORLD_SIZE": world,
            "MASTER_ADDR": self.address, "MASTER_PORT": self.port, "TORCHELASTIC_RESTART_COUNT": attempt,
            "TORCHELASTIC_MAX_RESTARTS": self.restarts, "TORCHELASTIC_RUN_ID": self.run_id, "TORCHELASTIC_USE_AGENT_STORE": False,
        }
        if self.workers > 1:  # else each worker takes all processors
            share = max(1, (os.cpu_count() or 1) // self.workers)
            made |= {name: share for name in ("OMP_NUM_THREADS", "MSADAPTER_THREADS") if not settings.is_set(name)}
        if not settings.is_set("ENABLE_BACKWARD"):
            made["ENABLE_BACKWARD"] = 1
        return {name: str(value) for name, value in made.items()}


class WorkerFailed(Exception):
    """A worker ended with a status other than 0: (local rank, rank, pid, status)."""

    def __init__(self, local_rank, rank, pid, status):
        super().__init__(local_rank, rank, pid, status)
        self.local_rank, self.rank, self.pid, self.status = local_rank, rank, pid, status

    def describe(self):
        if self.status < 0:
            name = signal.Signals(-self.status).name
            return f"exitcode  : {self.status} (pid: {self.pid})\n  error     : Signal {-self.status} ({name}) received by PID {self.pid}"
        return f"exitcode  : {self.status} (pid: {self.pid})\n  error     : its traceback is above"


def free_port():
    """A TCP port that nobody listens on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def worker_command(program, module=False, options=()):
    """The command of a worker: `python -u -m msadapter_hook program …`."""
    return [sys.executable, "-u", "-m", "msadapter_hook", *options, *(["-m"] if module else []), *program]


def run(job):
    """Start the workers of a job on this node and wait for them; gives the exit status. A failure is told on stderr."""
    if job.port is None:
        job.port = free_port() if job.nodes == 1 else DEFAULT_PORT
    with _Signals() as signals:
        for attempt in range(job.restarts + 1):
            workers = _Workers(job, attempt)
            try:
                workers.start()
                workers.wait(signals)
                return 0
            except WorkerFailed as failed:
                workers.end(signal.SIGTERM)
                if attempt < job.restarts:
                    left = job.restarts - attempt
                    print(f"{job.name}: rank {failed.rank} failed (status {failed.status}); all workers start again, {left} of "
                          f"{job.restarts} restarts left", file=sys.stderr)
                    continue
                print(_report(job, failed), file=sys.stderr, flush=True)
                return 1
            except _Interrupted as interrupted:
                workers.end(interrupted.signal)
                return 128 + interrupted.signal
            finally:
                workers.end(signal.SIGTERM)


def _report(job, failed):
    line = "=" * 60
    return "\n".join([
        line, f"{job.name} FAILED", "-" * 60, "Root Cause (first observed failure):", f"[{failed.local_rank}]:",
        f"  time      : {time.strftime('%Y-%m-%d_%H:%M:%S')}", f"  host      : {socket.gethostname()}",
        f"  rank      : {failed.rank} (local_rank: {failed.local_rank})", f"  {failed.describe()}", line,
    ])


class _Interrupted(BaseException):
    def __init__(self, number):
        self.signal = number


class _Signals:
    """While it is entered, SIGINT, SIGTERM and SIGHUP are remembered instead of ending the launcher."""

    def __enter__(self):
        self.received, self._before = None, {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._before[number] = signal.signal(number, self._remember)
        return self

    def _remember(self, number, frame):
        self.received = number

    def __exit__(self, *exception):
        for number, handler in self._before.items():
            signal.signal(number, handler)


class _Workers:
    """The processes of one attempt."""

    def __init__(self, job, attempt):
        self.job, self.attempt, self.processes, self._pipes = job, attempt, [], []
        self._folder = None

    def start(self):
        job = self.job
        die_with_us = _die_with_parent()
        for local_rank in range(job.workers):
            out, err = self._streams(local_rank)
            command = [part.replace(LOCAL_RANK, str(local_rank)) for part in job.command]
            process = subprocess.Popen(command, env=self._environment(local_rank), stdout=out, stderr=err,
                                       start_new_session=True, preexec_fn=die_with_us)
            self.processes.append(process)
            for stream in (out, err):
                if stream not in (None, subprocess.PIPE, subprocess.DEVNULL):
                    stream.close()
            self._copy(local_rank, process)

    def _environment(self, local_rank):
        made = settings.for_child(**self.job.variables(local_rank, self.attempt))
        return {**made, **_reach_package(made)}

    def _streams(self, local_rank):
        """What a worker's stdout and stderr are: inherited, a file, a pipe to copy from, or nothing."""
        job = self.job
        redirect, tee = job.redirects.get(local_rank, 0), job.tees.get(local_rank, 0)
        made = []
        for bit, name in ((1, "stdout"), (2, "stderr")):
            if redirect & bit and not tee & bit:
                made.append(open(self._file(local_rank, name), "wb"))
            elif tee & bit:
                made.append(subprocess.PIPE)
            elif job.shown is not None and local_rank not in job.shown:
                made.append(subprocess.DEVNULL)
            else:
                made.append(None)
        return made

    def _file(self, local_rank, name):
        if self._folder is None:
            base = self.job.log_folder or tempfile.mkdtemp(prefix="torchelastic_")
            self._folder = Path(base) / self.job.run_id / f"attempt_{self.attempt}"
        folder = self._folder / str(local_rank)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{name}.log"

    def _copy(self, local_rank, process):
        for stream, console, name in ((process.stdout, sys.stdout, "stdout"), (process.stderr, sys.stderr, "stderr")):
            if stream is not None:
                arguments = stream, console, self._file(local_rank, name), f"[{self.job.role}{local_rank}]:"
                shown = self.job.shown is None or local_rank in self.job.shown
                self._pipes.append(threading.Thread(target=_tee, args=(*arguments, shown), daemon=True))
                self._pipes[-1].start()

    def wait(self, signals):
        """Wait until all have ended well. WorkerFailed for the first that has not, _Interrupted for a signal to the launcher."""
        running = dict(enumerate(self.processes))
        while running:
            if signals.received is not None:
                raise _Interrupted(signals.received)
            for local_rank, process in list(running.items()):
                status = process.poll()
                if status is None:
                    continue
                del running[local_rank]
                if status != 0:
                    raise WorkerFailed(local_rank, self.job.node_rank * self.job.workers + local_rank, process.pid, status)
            time.sleep(0.02 if running else 0)
        self._drain()

    def end(self, number):
        """End all that still run, with all that they have started."""
        for process in self.processes:
            _signal_session(process, number)
        limit = time.monotonic() + _PATIENCE
        for process in self.processes:
            try:
                process.wait(max(0.0, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal_session(process, signal.SIGKILL)
                process.wait()
        self._drain()

    def _drain(self):
        for thread in self._pipes:
            thread.join(5)


def _signal_session(process, number):
    if process.poll() is None:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass


def _die_with_parent():
    """A function for a child, between fork and exec: it ends when the launcher ends, however that happens."""
    parent, prctl = os.getpid(), _prctl()
    return None if prctl is None else lambda: end_with(parent, prctl)


def _prctl():
    return ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def end_with(parent, prctl=None):
    """Let the kernel end this process when its parent, which must have this pid, ends. Does nothing where another started it."""
    prctl = prctl or _prctl()
    if prctl is not None and os.getppid() == parent:
        prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)


def _tee(stream, console, path, prefix, shown):
    with open(path, "wb") as file:
        for line in stream:
            file.write(line)
            file.flush()
            if shown:
                console.write(prefix + line.decode(errors="replace"))
                console.flush()


def _reach_package(environment):
    """PYTHONPATH for a worker that would not find this package without it (run from a source folder)."""
    elsewhere = [folder for folder in sys.path if folder and os.path.abspath(folder) != os.getcwd()]
    if PathFinder.find_spec(__package__, elsewhere) is not None:
        path = environment.get("PYTHONPATH", "").split(os.pathsep)
        if str(_PACKAGES) in path or "site-packages" in str(_PACKAGES) or "dist-packages" in str(_PACKAGES):
            return {}
    return {"PYTHONPATH": os.pathsep.join([part for part in (environment.get("PYTHONPATH", ""), str(_PACKAGES)) if part])}


# ---------------------------------------------------------------------------------------------------- torchrun
def parser(launch=False):
    """The options of torchrun; of `torch.distributed.launch` too, with launch=True."""
    made = argparse.ArgumentParser("torchrun", description="Starts a program in several processes.", allow_abbrev=False)
    add = made.add_argument

    def option(*names, **kwargs):
        spelled = [n for name in names for n in ([name] if "-" not in name[2:] else [name, "--" + name[2:].replace("-", "_")])]
        variable = "PET_" + names[-1].lstrip("-").replace("-", "_").upper()
        if settings.is_set(variable):
            kwargs["default"] = settings.variable(variable)
        add(*spelled, dest=names[-1].lstrip("-").replace("-", "_"), **kwargs)

    option("--nnodes", default="1", help="number of nodes (a range MIN:MAX is taken as its minimum)")
    option("--nproc-per-node", default="1", help="workers on this node: a number, auto, cpu or gpu")
    option("--rdzv-backend", default="static", help="static; others for one node only")
    option("--rdzv-endpoint", default="", help="host:port of the node of rank 0")
    option("--rdzv-id", default="none", help="name of the job")
    option("--rdzv-conf", default="", help="accepted; its timeouts are those of init_process_group")
    add("--standalone", action="store_true", help="one node, a free port")
    option("--max-restarts", type=int, default=0, help="how often all workers start again after a failure")
    option("--monitor-interval", type=float, default=0.1)
    option("--start-method", default="spawn", choices=["spawn", "fork", "forkserver"])
    option("--event-log-handler", default="null")
    option("--role", default="default")
    add("-m", "--module", action="store_true", help="the program is a module")
    add("--no-python", "--no_python", dest="no_python", action="store_true", help="the program is started as it is")
    add("--run-path", "--run_path", dest="run_path", action="store_true", help="as without it")
    option("--log-dir", default=None)
    add("-r", "--redirects", default="0", help="workers' streams to files: 1 stdout, 2 stderr, 3 both, or RANK:NUMBER,…")
    add("-t", "--tee", default="0", help="the same, on the console too")
    option("--local-ranks-filter", default="", help="local ranks whose output is shown, with commas")
    option("--node-rank", type=int, default=0)
    option("--master-addr", default="localhost")
    option("--master-port", type=int, default=None)
    option("--local-addr", default=None)
    option("--logs-specs", default=None)
    option("--numa-binding", default=None)
    option("--signals-to-handle", default=None)
    option("--duplicate-stdout-filters", default=None)
    option("--duplicate-stderr-filters", default=None)
    add("--virtual-local-rank", action="store_true")
    if launch:
        add("--use-env", "--use_env", dest="use_env", action="store_true", help="workers read LOCAL_RANK; else they get --local-rank")
    add("training_script", help="the program")
    add("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return made


def main(arguments=None, launch=False):
    """`torchrun`: run the command line; gives the exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    made = parser(launch)
    options = made.parse_args(arguments)
    try:
        return run(job_of(options, launch))
    except ValueError as error:
        made.error(str(error))


def job_of(options, launch=False):
    """The job that a parsed command line of torchrun describes. ValueError for what makes no sense."""
    nodes = int(str(options.nnodes).partition(":")[0])
    address, port, node_rank = options.master_addr, options.master_port, options.node_rank
    if options.standalone or nodes == 1:
        nodes, node_rank, address = 1, 0, "localhost"
    elif options.rdzv_backend != "static":
        raise ValueError(f"--rdzv-backend {options.rdzv_backend} over several nodes is not supported by msadapter_hook: give each node "
                         "its --node-rank, and all of them --master-addr and --master-port")
    elif not 0 <= node_rank < nodes:
        raise ValueError(f"--node-rank {node_rank} is not among 0 to {nodes - 1} (--nnodes {nodes})")
    if options.rdzv_endpoint and not options.standalone:
        address, _, text = options.rdzv_endpoint.partition(":")
        port = int(text) if text.isdigit() and int(text) else port
    program = [options.training_script, *options.training_script_args]
    if options.no_python:
        if options.module:
            raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
        command = program
    else:
        command = worker_command(program, options.module)
    if launch and not options.use_env:  # the older way to tell a program its local rank: an argument before its own
        command.insert(len(command) - len(options.training_script_args), f"--local-rank={LOCAL_RANK}")
    count = _count(options.nproc_per_node)
    job = Job(command, options.training_script, count, nodes, node_rank, address, port,
              str(uuid.uuid4()) if nodes == 1 and options.rdzv_id == "none" else options.rdzv_id, options.role,
              options.max_restarts, options.monitor_interval, options.log_dir, _per_rank(options.redirects, count),
              _per_rank(options.tee, count))
    if options.local_ranks_filter:
        job.shown = {int(rank) for rank in options.local_ranks_filter.split(",")}
    return job


def _count(text):
    if text.isdigit() and int(text) > 0:
        return int(text)
    if text in ("auto", "cpu"):
        return os.cpu_count() or 1
    if text in ("gpu", "cuda"):
        raise ValueError("Cuda is not available.")
    raise ValueError(f"Unsupported nproc_per_node value: {text}")


def _per_rank(text, count):
    if text.isdigit():
        return dict.fromkeys(range(count), int(text))
    pairs = (pair.split(":") for pair in text.split(","))
    return {int(rank): int(number) for rank, number in pairs}


def torchrun():
    """The console script `torchrun`. Where the environment does not ask for the hook and a real torch is installed, it is that
    torch's launcher."""
    wanted = settings.current()
    if not wanted.hook_wanted:
        spec = PathFinder.find_spec("torch")
        if wanted.hook is False or spec is not None and spec.origin is not None:
            from importlib import import_module

            return import_module("torch.distributed.run").main()
    return main()



def in_processes(number, arguments):
    """`python -m msadapter_hook --nproc N …`: the rest of that command line in N processes; gives the exit status."""
    rest = list(arguments)
    at = next(i for i, word in enumerate(rest) if word.partition("=")[0] == "--nproc")
    del rest[at : at + (1 if "=" in rest[at] else 2)]
    program = next((word for word in rest if not word.startswith("-")), rest[-1] if rest else "")
    return run(Job([sys.executable, "-u", "-m", "msadapter_hook", *rest], program, number, run_id=str(uuid.uuid4())))
