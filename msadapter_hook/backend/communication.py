"""Messages between processes, by MindSpore's own communication (MCCL on CPU): the one place that calls it.

Everything here works on contiguous, writable NumPy arrays, in place, and blocks until the peers take part. Who is expected, for
how long, and what happens where somebody does not come is decided above, with the counters of the `board`.
"""

import os
import socket
import sys
from datetime import timedelta

import numpy as np
from mindspore._c_expression import TCPStoreClient, _finalize_collective
from mindspore.communication import GlobalComm, create_group
from mindspore.communication import init as _init_by_scheduler
from mindspore.communication.management import _init_with_store
from mindspore.mint import distributed as _mint
from mindspore.ops.auto_generate import gen_ops_prim as _generated

from msadapter_hook import settings

from .runtime import lock, mindspore

#: dtypes whose reduction MindSpore has on CPU, and the names of its operations
REDUCED = {np.dtype(name) for name in ("float32", "float16", "int8", "int32", "int64")}
OPERATIONS = {"sum", "prod", "min", "max"}

WORLD = "mccl_world_group"
_PIECE = 1 << 26  # bytes of one message: the engine waits for each message with one fixed timeout
_MESSAGE_TIMEOUT = 60  # seconds that a message on its way may take, and a killed peer may keep us; the engine's own default is 30


def _array(array):
    return mindspore.from_numpy(array)


def _pieces(array):
    flat = array.reshape(-1)
    step = max(1, _PIECE // flat.itemsize)
    return [flat[i : i + step] for i in range(0, flat.size, step)]


class Board:
    """Counters and words that all processes see, served by rank 0 (MindSpore's TCPStore; 0.1 ms an access)."""

    def __init__(self, host, port, size, serve, timeout):
        self._client = TCPStoreClient(host, port, serve, min(int(timeout * 1000), 2**31 - 1), size, False)

    def add(self, key, number):
        """Add to a counter and give its value; a counter that nobody has touched is 0."""
        return self._client.add(key, number)

    def read(self, key):
        """The value of a counter."""
        return self._client.add(key, 0)

    def put(self, key, text):
        """Set a word or, with digits, a counter. Does not wait for the server, but later accesses come later."""
        self._client.set(key, text)

    def get(self, key):
        """A word (bytes) that is known to be there."""
        return self._client.get(key)

    def remove(self, key):
        self._client.delete_key(key)


def started():
    """True where the program has initialized MindSpore's communication, by this module or by itself."""
    return bool(GlobalComm.INITED)


def is_scheduler():
    """True in the scheduler's process of `msrun`, which runs the program too and only serves the others."""
    return settings.variable("MS_ROLE") == "MS_SCHED"


def serve_as_scheduler():
    """Be the scheduler until the workers are done."""
    _init_by_scheduler()


def free_port(host):
    """A TCP port of this machine that nobody listens on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def start(board, rank, size, timeout):
    """Initialize MindSpore's communication through the board, without a scheduler. Takes about 3 s: a process that asks for a
    peer's address before it is known asks again after 3 s."""
    if not settings.is_set("MS_CPU_COMM_OP_TIMEOUT"):
        settings.export("torch.distributed", MS_CPU_COMM_OP_TIMEOUT=str(_MESSAGE_TIMEOUT))
    store = _mint.TCPStore.__new__(_mint.TCPStore)
    store.instance = board._client
    hook = sys.excepthook
    try:
        _init_with_store("mccl", timedelta(seconds=min(timeout, 2**31 // 1000)), size, rank, store)
    finally:
        sys.excepthook = hook


def start_by_scheduler():
    """Initialize MindSpore's communication as `msrun` and `mpirun` prepare it; gives (rank, size)."""
    if not started():
        hook = sys.excepthook
        try:
            _init_by_scheduler()
        finally:
            sys.excepthook = hook
    return _mint.get_rank(), _mint.get_world_size()


def finish():
    """End MindSpore's communication, at the end of the process; nobody may need it any more."""
    _keep_python_on_stderr()
    _finalize_collective()
    GlobalComm.INITED = False


def _keep_python_on_stderr():
    # MindSpore's threads announce their end on file descriptor 2, whatever the log level is, some after the end of Python
    stream = sys.stderr
    if stream is None or stream is not sys.__stderr__:
        return
    stream.flush()
    sys.stderr = sys.__stderr__ = os.fdopen(os.dup(2), "w", buffering=1, encoding=stream.encoding, errors=stream.errors)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def make_group(name, ranks):
    """Make a group of these world ranks (ascending) known to MindSpore; called by its members."""
    create_group(name, list(ranks))


def _call(operation, array, *arguments):
    tensor = _array(array)
    operation(tensor, *arguments)
    tensor.asnumpy()  # waits where MindSpore's calls are asynchronous


def all_reduce(array, operation, group):
    """Reduce over the group, in place; dtype in REDUCED, operation in OPERATIONS."""
    with lock:
        for piece in _pieces(array):
            _call(_generated.dist_comm_all_reduce_op, piece, operation, group, False)


def broadcast(array, root, group):
    """Overwrite the array with that of the world rank `root`."""
    with lock:
        for piece in _pieces(array.reshape(-1).view(np.uint8)):
            _call(_mint.broadcast, piece, root, group)


def all_gather(array, size, group):
    """The arrays of all processes of the group, in the order of their ranks (equal shapes)."""
    made = [np.empty_like(array) for _ in range(size)]
    bytes_in = array.reshape(-1).view(np.uint8)
    bytes_out = [one.reshape(-1).view(np.uint8) for one in made]
    with lock:
        for piece, *outs in zip(_pieces(bytes_in), *map(_pieces, bytes_out)):
            tensors = [_array(out) for out in outs]
            _mint.all_gather(tensors, _array(piece), group)
            for tensor in tensors:
                tensor.asnumpy()
    return made


def send(array, destination):
    """Send to a world rank; returns when it has arrived there, received or not."""
    with lock:
        for piece in _pieces(array.reshape(-1).view(np.uint8)):
            _call(_generated.dist_comm_isend_op, piece, destination, WORLD, 0)


def receive(array, source):
    """Overwrite the array with the next message of a world rank (of the same size)."""
    with lock:
        for piece in _pieces(array.reshape(-1).view(np.uint8)):
            _call(_generated.dist_comm_irecv_op, piece, 0, source, WORLD)
