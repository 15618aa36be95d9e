# torch.distributed.launcher.api: run a function or a program in several processes of this machine, from within Python.
import dataclasses
import uuid

from msadapter_hook import launch as _launch
from msadapter_hook import settings as _settings

from ...multiprocessing.spawn import ProcessException, start_processes
from ..elastic.multiprocessing.errors import ChildFailedError

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclasses.dataclass
class LaunchConfig:
    """What to start (PyTorch, torch.distributed.launcher.api.LaunchConfig). One machine: max_nodes must be 1.

    The rdzv_ fields are accepted: processes of one machine find each other at a free port.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: object = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict = dataclasses.field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: object = None
    metrics_cfg: dict = dataclasses.field(default_factory=dict)
    local_addr: object = None
    event_log_handler: str = "null"
    numa_options: object = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"


def _work(local_rank, job, function, args, results):
    _settings.export("torch.distributed.launcher", **job.variables(local_rank, 0))
    results.put((local_rank, function(*args)))


class elastic_launch:
    """`elastic_launch(config, entrypoint)(*args)`: run the entrypoint (a function, or a program's path) in config.nproc_per_node
    processes; gives {rank: what the function gave}. ChildFailedError where one fails. Source: PyTorch,
    torch.distributed.launcher.api.elastic_launch."""

    def __init__(self, config, entrypoint):
        if config.max_nodes != 1:
            from msadapter_hook.errors import unsupported

            raise unsupported("torch.distributed.launcher.elastic_launch over several machines",
                              "start torchrun on each of them, with --nnodes, --node-rank and --master-addr")
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args):
        config = self._config
        job = _launch.Job([], str(self._entrypoint), config.nproc_per_node, run_id=config.run_id or str(uuid.uuid4()), role=config.role,
                          port=_launch.free_port())
        if isinstance(self._entrypoint, str):
            job.command = [self._entrypoint, *map(str, args)]
            if _launch.run(job):
                raise ChildFailedError(f"{self._entrypoint} FAILED")
            return dict.fromkeys(range(job.workers))
        import multiprocessing

        results = multiprocessing.get_context(config.start_method).Manager().Queue()
        try:
            start_processes(_work, (job, self._entrypoint, args, results), job.workers, start_method=config.start_method)
        except ProcessException as error:
            raise ChildFailedError(str(error)) from error
        return dict(sorted(results.get() for _ in range(job.workers)))


def launch_agent(config, entrypoint, args):
    """As elastic_launch(config, entrypoint)(*args)."""
    return elastic_launch(config, entrypoint)(*args)
