# The processes of a job: how MindSpore's communication is started among them, who is still there, and the end.
# One job at most lives in a process; process groups come and go over it.
import atexit
import multiprocessing
import multiprocessing.util
import os as _os
import socket
import sys
import time
import uuid

from msadapter_hook import launch, settings

from ._errors import DistBackendError, DistStoreError
from ._store import PrefixStore
from ._tcp_store import TCPStore

_LOOK = 0.05  # seconds between two looks whether the peers are alive
_FAREWELL = 1.0  # seconds in which last messages are acknowledged

_current = None


def current():
    """The job of this process, or None."""
    return _current


def begin(store, rank, size, timeout):
    """The job of the processes that meet at a store: started now, or the one that they all belong to already.

    timeout: seconds. DistStoreError names the ranks that have not come by then.
    """
    global _current
    own = "" if _current is None else _current.name
    visit = store.add(f"visits/{rank}", 1)  # a store may see the same processes again
    if visit > 1 and _current is None:
        raise DistStoreError(f"Two processes say that they are rank {rank}: each process needs a RANK of its own")
    store = PrefixStore(f"visit/{visit}", store)
    store.set(f"process/{rank}", f"{socket.gethostname()}|{_os.getpid()}|{own}|{size}")
    come = _gather(store, "process", rank, size, timeout)
    hosts, pids, names, sizes = zip(*[text.split("|") for text in come])
    if set(sizes) != {str(size)}:
        raise DistStoreError(f"The processes disagree on the world size: rank {rank} was given {size}, "
                             + ", ".join(f"rank {r} {one}" for r, one in enumerate(sizes) if one != str(size)))
    if own and set(names) == {own} and _current.rank == rank:
        _current.rounds += 1
        return _current
    if any(names):
        raise NotImplementedError(
            "torch.distributed.init_process_group: a process of an ended job can join those of that job again, under its old rank, "
            "but no others: MindSpore's communication is initialized once per process. Start new processes for another job."
        )
    job = Job(rank, size, hosts, pids, timeout)
    job.start(store)
    _current = job
    atexit.register(job.leave)
    if multiprocessing.parent_process() is not None:  # a forked process ends without Python's own end
        multiprocessing.util.Finalize(None, job.leave, exitpriority=100)
    return job


def _gather(store, what, rank, size, timeout):
    keys = [f"{what}/{r}" for r in range(size)]
    try:
        from datetime import timedelta

        store.wait(keys, timedelta(seconds=timeout))
    except (DistStoreError, RuntimeError) as error:
        missing = [r for r, key in enumerate(keys) if not store.check([key])]
        raise DistStoreError(f"Timed out after {timeout:g} seconds waiting for clients: rank {rank} has waited for ranks {missing} "
                             f"of {size}. Were all processes started, with the same world size and address?") from error
    return [store.get(key).decode() for key in keys]


class Job:
    """The processes 0 … size-1 with MindSpore's communication among them. `board`: the counters all of them see."""

    def __init__(self, rank, size, hosts, pids, timeout):
        self.rank, self.size, self.timeout = rank, size, timeout
        self._pids = {r: int(pid) for r, (host, pid) in enumerate(zip(hosts, pids)) if host == hosts[rank]}  # those we can look at
        self._one_host = len(set(hosts)) == 1
        self._left, self._pid = False, _os.getpid()
        self.rounds = 1  # how often its processes have made a default group

    def start(self, store):
        from msadapter_hook.backend import communication

        self.engine = communication
        serving = self.rank == 0
        if serving:
            host = self._address(store)
            for attempt in range(5):
                port = communication.free_port(host)
                try:
                    self.board = communication.Board(host, port, self.size, True, self.timeout)
                    break
                except RuntimeError:  # somebody else has taken the port meanwhile
                    if attempt == 4:
                        raise
            self.name = uuid.uuid4().hex
            store.set("engine", f"{host}|{port}|{self.name}")
        else:
            host, port, self.name = store.get("engine").decode().split("|")
            self.board = self._asked(lambda: communication.Board(host, int(port), self.size, False, self.timeout))
        # MindSpore waits with Python's lock held: until all are here, rank 0 must go on serving the store
        self.board.add("here", 1)
        self.wait(lambda: self.board.read("here") == self.size, range(self.size), self.timeout, lambda gone: "init_process_group")
        if communication.started():
            self._check(*communication.start_by_scheduler())
        else:
            self._asked(lambda: communication.start(self.board, self.rank, self.size, self.timeout))

    def _check(self, rank, size):
        if (rank, size) != (self.rank, self.size):
            raise DistBackendError(f"MindSpore's communication is initialized with rank {rank} of {size} in this process, but "
                                   f"torch.distributed.init_process_group was given rank {self.rank} of {self.size}")

    def _address(self, store):
        """Where the other processes reach this one."""
        if self._one_host:
            return "127.0.0.1"
        while not isinstance(store, TCPStore) and hasattr(store, "underlying_store"):
            store = store.underlying_store
        return socket.gethostbyname(store.host if isinstance(store, TCPStore) else socket.gethostname())

    def gone(self, ranks):
        """Those of the ranks that have ended. Rank 0 stays until the others have ended: it has once it says so, as have processes
        of other machines, which cannot be looked at."""
        return [r for r in ranks if r != self.rank and (
            not self._alive(r) or (r == 0 or r not in self._pids) and self.board.read(f"left/{r}"))]

    def _departed(self, rank):
        return not self._alive(rank) or bool(self.board.read(f"left/{rank}"))

    def _alive(self, rank):
        pid = self._pids.get(rank)
        return pid is None or _is_running(pid)

    def wait(self, ready, ranks, timeout, what):
        """Wait until `ready()` gives something true, and give it. DistBackendError after the timeout (seconds), or as soon as one
        of the ranks has ended; `what(ranks)` says what was waited for."""
        start = looked = time.monotonic()
        pause = 0.0
        while not (answer := self._asked(ready)):
            now = time.monotonic()
            if now - looked > _LOOK:
                looked = now
                self.check_board()
                gone = self.gone(ranks)
                if gone and not (answer := self._asked(ready)):
                    raise DistBackendError(f"Connection closed by peer: {_ranks(gone)} ended while rank {self.rank} waited for "
                                           f"{what(gone)}")
                if answer:
                    return answer
            if now - start > timeout:
                raise DistBackendError(f"Timed out waiting {round(timeout * 1000)}ms for {what(None)} to complete")
            if now - start > 0.002:
                pause = min(0.01, pause + 0.0002)
                time.sleep(pause)
        return answer

    def check_board(self):
        """DistBackendError where rank 0, which serves the board, has ended: MindSpore would ask it for 15 s."""
        if self.rank != 0 and not self._alive(0):
            raise DistBackendError("Connection closed by peer: rank 0 ended, and with it the store of this job")

    def _asked(self, ready):
        try:
            return ready()
        except (DistBackendError, TypeError, ValueError):
            raise
        except RuntimeError as error:
            self.check_board()
            ended = [r for r in range(self.size) if r != self.rank and not self._alive(r)]
            if ended:
                raise DistBackendError(f"Connection closed by peer: {_ranks(ended)} ended in a collective") from None
            raise DistBackendError(f"MindSpore's communication failed: {str(error).splitlines()[0]}") from error

    def leave(self):
        """The end of this process: say so, and stay as long as others may still need what runs here."""
        if self._left or _os.getpid() != self._pid:  # a forked child has no part in it
            return
        self._left = True
        if getattr(sys, "last_value", None) is None and not launch.failed:  # a failing process ends at once, as a killed one does
            try:
                self.board.put(f"left/{self.rank}", "1")
                others = [r for r in range(self.size) if r != self.rank]
                end = time.monotonic() + (self.timeout if self.rank == 0 else _FAREWELL)  # rank 0 serves the board
                while others and time.monotonic() < end:
                    others = [r for r in others if not self._departed(r)]
                    time.sleep(0.005)
            except RuntimeError:
                pass  # rank 0 is gone
        self.engine.finish()


def _ranks(ranks):
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except FileNotFoundError:
        return sys.platform != "linux" and _signalled(pid)
    except OSError:
        return True


def _signalled(pid):
    try:
        _os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def launched_by():
    """Which launcher has started this process: "msrun", "mpi" or None, by its variables."""
    if settings.is_set("MS_ROLE"):
        return "msrun"
    if settings.is_set("OMPI_COMM_WORLD_RANK") or settings.is_set("PMI_RANK"):
        return "mpi"
    return None
