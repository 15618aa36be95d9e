"""Starting one program in several processes: torchrun's options and variables, --nproc, spawn, msrun, and how a job ends."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from msadapter_hook import launch

VARIABLES = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"]
REPORT = f"""
import json, os, sys
found = {{name: os.environ.get(name) for name in {VARIABLES}}} | {{"argv": sys.argv[1:], "hook": os.environ.get("ENABLE_BACKWARD")}}
sys.stdout.write(json.dumps(found) + "\\n")  # in one piece
"""


@pytest.fixture
def program(tmp_path):
    """A function that writes a program and gives its path."""

    def write(text, name="train.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def reports(done):
    """What the workers printed, by rank."""
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(found, key=lambda one: int(one["RANK"]))


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid, seconds=120):
    limit = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < limit:
        time.sleep(0.02)
    return not is_running(pid)


# ---------------------------------------------------------------------------------------- ways to start
@pytest.mark.parametrize("start", [
    ["-m", "msadapter_hook", "-m", "torch.distributed.run", "--nproc-per-node", 2],
    ["-m", "msadapter_hook", "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone", "--nnodes=1"],
    ["-m", "msadapter_hook", "--nproc", 2],
    ["-m", "msadapter_hook", "--nproc=2"],
    ["-c", "import sys; from msadapter_hook.launch import torchrun; sys.exit(torchrun())", "--nproc-per-node", 2],
], ids=["run", "standalone", "nproc", "nproc=", "torchrun"])
def test_workers_find_their_variables(checkout, program, start):
    first, second = reports(checkout(*start, program(REPORT), "--lr", "0.1", MSADAPTER_HOOK=1))
    for rank, found in enumerate((first, second)):
        assert found["argv"] == ["--lr", "0.1"] and found["hook"] == "1"
        assert found["RANK"] == found["LOCAL_RANK"] == str(rank) and found["GROUP_RANK"] == "0"
        assert found["WORLD_SIZE"] == found["LOCAL_WORLD_SIZE"] == "2" and found["MASTER_ADDR"] == "localhost"
    assert first["MASTER_PORT"] == second["MASTER_PORT"]


def test_torchrun_leaves_another_torch_alone(checkout, program, tmp_path, project_root):
    """Where a real torch is installed, torchrun is its own unless the environment asks for the hook."""
    (tmp_path / "torch/distributed").mkdir(parents=True)
    for folder in ("torch", "torch/distributed"):
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "torch/distributed/run.py").write_text("import sys\n\n\ndef main():\n    print('the real one', sys.argv[1:])\n")
    start = ["-c", "import sys; from msadapter_hook.launch import torchrun; sys.exit(torchrun())"]
    path = os.pathsep.join([str(tmp_path), str(project_root)])
    assert checkout.output(*start, "x.py", PYTHONPATH=path) == "the real one ['x.py']\n"
    assert len(reports(checkout(*start, program(REPORT), PYTHONPATH=path, ENABLE_BACKWARD=1))) == 1


def test_older_launcher_passes_the_local_rank(checkout, program):
    launcher = ["-m", "msadapter_hook", "-m", "torch.distributed.launch", "--nproc_per_node=2"]
    found = reports(checkout(*launcher, program(REPORT), "x"))
    assert [one["argv"] for one in found] == [["--local-rank=0", "x"], ["--local-rank=1", "x"]]
    assert [one["argv"] for one in reports(checkout(*launcher, "--use-env", program(REPORT), "x"))] == [["x"], ["x"]]


def test_modules_and_other_programs(checkout, program, tmp_path):
    program(REPORT, "trainer.py")
    run = ["-m", "msadapter_hook", "-m", "torch.distributed.run", "--nproc-per-node", 2]
    assert len(reports(checkout(*run, "-m", "trainer", "a", cwd=tmp_path))) == 2
    assert len(reports(checkout(*run, "--no-python", sys.executable, program(REPORT)))) == 2


def test_several_nodes(checkout, program):
    run = ["-m", "msadapter_hook", "-m", "torch.distributed.run", "--nnodes", 2, "--nproc-per-node", 2, "--master-addr", "10.0.0.1"]
    found = reports(checkout(*run, "--node-rank", 1, "--master-port", 1234, program(REPORT)))
    assert [(one["RANK"], one["LOCAL_RANK"], one["GROUP_RANK"], one["WORLD_SIZE"]) for one in found] == [
        ("2", "0", "1", "4"), ("3", "1", "1", "4")]
    assert (found[0]["MASTER_ADDR"], found[0]["MASTER_PORT"]) == ("10.0.0.1", "1234")
    done = checkout(*run, "--rdzv-backend", "c10d", program(REPORT))
    assert done.returncode == 2 and "--node-rank" in done.stderr


def test_streams_go_to_files_and_console(checkout, program, tmp_path):
    run = ["-m", "msadapter_hook", "-m", "torch.distributed.run", "--nproc-per-node", 2, "--log-dir", tmp_path / "logs", "--rdzv-id", "job"]
    text = "import os, sys; r = os.environ['RANK']; sys.stdout.write(f'out {r}\\n'); sys.stderr.write(f'err {r}\\n')"
    done = checkout(*run, "--tee", "1", "--redirects", "2", program(text))
    assert sorted(done.stdout.splitlines()) == ["[default0]:out 0", "[default1]:out 1"] and "err" not in done.stderr
    assert (tmp_path / "logs/job/attempt_0/1/stderr.log").read_text() == "err 1\n"
    assert (tmp_path / "logs/job/attempt_0/0/stdout.log").read_text() == "out 0\n"
    done = checkout(*run, "--local-ranks-filter", "1", program(text))
    assert done.stdout == "out 1\n"


@pytest.mark.parametrize("arguments,message", [
    (["--nproc", "none", "x.py"], "--nproc wants a number of processes"),
    (["--nproc", "2", "-"], "not standard input"),
    (["-m", "torch.distributed.run", "--nproc-per-node", "many", "x.py"], "Unsupported nproc_per_node value: many"),
    (["-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", "5", "x.py"], "--node-rank 5 is not among 0 to 1"),
])
def test_wrong_options(checkout, arguments, message):
    done = checkout("-m", "msadapter_hook", *arguments)
    assert done.returncode == 2 and message in done.stderr


# ---------------------------------------------------------------------------------------- how a job ends
SLEEPER = """
import os, pathlib, sys, time
rank = os.environ["RANK"]
folder = pathlib.Path(sys.argv[1])
(folder / f"pid_{rank}.part").write_text(str(os.getpid()))
os.rename(folder / f"pid_{rank}.part", folder / f"pid_{rank}")
while len(list(folder.glob("pid_?"))) < 2:
    time.sleep(0.01)
"""


def pids(folder, seconds=120):
    limit = time.monotonic() + seconds
    while len(list(folder.glob("pid_?"))) < 2 and time.monotonic() < limit:
        time.sleep(0.02)
    return [int((folder / f"pid_{rank}").read_text()) for rank in range(2)]


@pytest.mark.parametrize("failure,status,told", [
    ("raise ValueError('boom')", "exitcode  : 1", "ValueError: boom"),
    ("sys.exit(7)", "exitcode  : 7", "rank      : 1"),
    ("os.kill(os.getpid(), 9)", "exitcode  : -9", "Signal 9 (SIGKILL)"),
], ids=["raises", "exits", "killed"])
def test_failing_worker_ends_the_job(checkout, program, tmp_path, failure, status, told):
    text = SLEEPER + f"if rank == '1': {failure}\ntime.sleep(600)"
    started = time.monotonic()
    done = checkout("-m", "msadapter_hook", "--nproc", 2, program(text), tmp_path)
    assert done.returncode == 1 and time.monotonic() - started < 300
    assert "train.py FAILED" in done.stderr and status in done.stderr and told in done.stderr
    assert all(ends(pid) for pid in pids(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_the_launcher(checkout, program, tmp_path, number):
    with checkout.start("-m", "msadapter_hook", "--nproc", 2, program(SLEEPER + "time.sleep(600)"), tmp_path) as launcher:
        workers = pids(tmp_path)
        os.kill(launcher.pid, number)
        assert launcher.wait(30) == (-9 if number == signal.SIGKILL else 128 + number)
    assert all(ends(pid) for pid in workers)


def test_worker_that_ignores_the_signal_is_killed(program, tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "_PATIENCE", 0.5)
    text = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER + "if rank == '1': sys.exit(3)\ntime.sleep(600)"
    job = launch.Job([sys.executable, str(program(text)), str(tmp_path)], "train.py", 2)
    assert launch.run(job) == 1
    assert all(ends(pid) for pid in pids(tmp_path))


def test_workers_start_again(program, tmp_path, capfd):
    text = "import os, sys\nn = os.environ['TORCHELASTIC_RESTART_COUNT']\nprint(n, flush=True)\nsys.exit(0 if n == '2' else 1)"
    job = launch.Job([sys.executable, str(program(text))], "train.py", 1, restarts=2)
    assert launch.run(job) == 0
    assert capfd.readouterr().out.split() == ["0", "1", "2"]
    job = launch.Job([sys.executable, str(program("raise SystemExit(1)"))], "train.py", 1, restarts=1)
    assert launch.run(job) == 1


# ---------------------------------------------------------------------------------------- jobs that communicate
TRAIN = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()}: {total.item()}\\n")
"""
SPAWN = """
import os, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

def run(rank, size, port):
    dist.init_process_group("gloo", init_method=f"tcp://localhost:{port}", rank=rank, world_size=size)
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    sys.stdout.write(f"rank {rank} of {size}: {total.item()}\\n")
    if sys.argv[2:] and rank == 0:
        raise ValueError("boom on 0")
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(run, args=(2, int(sys.argv[1])), nprocs=2)
"""
TOLD = ["rank 0 of 2: 3.0", "rank 1 of 2: 3.0"]


def test_spawned_processes(checkout, program):
    path = program(SPAWN)
    done = checkout("-m", "msadapter_hook", path, launch.free_port())
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == TOLD, done.stderr
    done = checkout("-m", "msadapter_hook", path, launch.free_port(), "fail")
    assert done.returncode == 1 and "-- Process 0 terminated with the following error:" in done.stderr
    assert "ValueError: boom on 0" in done.stderr and done.stderr.rstrip().endswith("ValueError: boom on 0")


LAUNCH = """
import torch, torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, record
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

@record
def run(value):
    dist.init_process_group("gloo")
    total = torch.tensor([dist.get_rank() + value])
    dist.all_reduce(total)
    if value < 0:
        raise ValueError("negative")
    return total.item()

if __name__ == "__main__":
    start = elastic_launch(LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2), run)
    print(start(1.0))
    try:
        start(-1.0)
    except ChildFailedError as error:
        print("failed:", str(error).rstrip().splitlines()[-1])
"""


def test_functions_in_several_processes(checkout, program):
    told = checkout.output("-m", "msadapter_hook", program(LAUNCH)).splitlines()
    assert told == ["{0: 3.0, 1: 3.0}", "failed: ValueError: negative"]


def test_failure_of_a_communicating_worker_is_the_one_reported(checkout, program):
    done = checkout("-m", "msadapter_hook", "--nproc", 2, program(TRAIN + "if dist.get_rank() == 0: sys.exit(5)\ndist.barrier()"))
    assert done.returncode == 1 and sorted(done.stdout.splitlines()) == TOLD
    assert "exitcode  : 5" in done.stderr and "rank      : 0" in done.stderr


@pytest.mark.skipif(not Path(sys.executable).with_name("msrun").exists(), reason="msrun is not installed beside this Python")
@pytest.mark.parametrize("before", ["", "from mindspore.communication import init\ninit()\n"], ids=["alone", "after MindSpore's init"])
def test_msrun(checkout, program, tmp_path, before):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # msrun starts `python`
    done = checkout(Path(sys.executable).with_name("msrun"), "--worker_num=2", "--local_worker_num=2", "--join=True",
                    f"--master_port={launch.free_port()}", f"--log_dir={tmp_path / 'logs'}", program(before + TRAIN), PATH=path,
                    ENABLE_BACKWARD=1)
    assert done.returncode == 0, done.stdout + done.stderr
    logs = [(tmp_path / f"logs/worker_{rank}.log").read_text() for rank in range(2)]
    assert all(line in log.splitlines() for line, log in zip(TOLD, logs)), logs


def test_variables_of_mpirun(checkout, program):
    """As Open MPI and MPICH set them: mpirun itself need not be here."""
    path = program(TRAIN)
    workers = [checkout.start("-m", "msadapter_hook", path, OMPI_COMM_WORLD_RANK=r, OMPI_COMM_WORLD_SIZE=2, OMPI_COMM_WORLD_LOCAL_RANK=r,
                              OMPI_COMM_WORLD_LOCAL_SIZE=2, PMIX_NAMESPACE=f"job{os.getpid()}") for r in range(2)]
    done = [worker.communicate(timeout=300) for worker in workers]
    assert [out.strip() for out, _ in done] == TOLD, done


@pytest.mark.parametrize("victim", [0, 1])
def test_killed_process_is_noticed_by_the_others(checkout, program, victim):
    """Without a launcher that would end them."""
    text = TRAIN + f"""
import signal, time
if dist.get_rank() == {victim}:
    time.sleep(1)  # the other one has finished what came before
    os.kill(os.getpid(), signal.SIGKILL)
started = time.monotonic()
try:
    dist.all_reduce(total)
except dist.DistBackendError as error:
    print(time.monotonic() - started < 120, error)
"""
    port, path = launch.free_port(), program(text)
    workers = [checkout.start("-m", "msadapter_hook", path, RANK=rank, WORLD_SIZE=2, MASTER_ADDR="localhost", MASTER_PORT=port)
               for rank in range(2)]
    told = [worker.communicate(timeout=300) for worker in workers]
    assert workers[victim].returncode == -9 and workers[1 - victim].returncode == 0, told
    assert f"True Connection closed by peer: rank {victim} ended" in told[1 - victim][0], told


def test_disagreement_about_the_world_ends_at_once(checkout, program):
    path = program("import torch.distributed as dist\ndist.init_process_group('gloo')")
    port = launch.free_port()
    workers = [checkout.start("-m", "msadapter_hook", path, RANK=rank, WORLD_SIZE=size, MASTER_ADDR="localhost", MASTER_PORT=port)
               for rank, size in ((0, 2), (1, 3))]
    told = [worker.communicate(timeout=300)[1] for worker in workers]
    assert all(worker.returncode == 1 for worker in workers), told
    assert "disagree on the world size: rank 0 was given 2, rank 1 3" in told[0], told
    assert "Connection was likely closed" in told[1], told
