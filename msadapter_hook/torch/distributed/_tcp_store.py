# TCPStore: a store served by one process, reached by the others over TCP. A message is an operation and fields of bytes, each
# with its length before it.
import errno
import socket
import struct
import threading
import time
from datetime import timedelta

from ._errors import DistNetworkError, DistStoreError, QueueEmptyError
from ._store import Store, Table, as_bytes

__all__ = ["TCPStore"]

_LENGTH = struct.Struct("<q")
_NOTHING = b"-"
_HELLO = b"msadapter store"
_JOINED = "init/"  # a counter of clients, a key like any other, as in PyTorch


def _send(connection, *fields):
    parts = [_LENGTH.pack(len(fields))]
    for field in fields:
        parts += [_LENGTH.pack(len(field)), field]
    connection.sendall(b"".join(parts))


def _receive(connection):
    def exactly(length):
        chunks = []
        while length:
            chunk = connection.recv(min(length, 1 << 20))
            if not chunk:
                raise DistNetworkError("Failed to recv, got 0 bytes. Connection was likely closed. "
                                       "Did the remote server shutdown or crash?")
            chunks.append(chunk)
            length -= len(chunk)
        return b"".join(chunks)

    (count,) = _LENGTH.unpack(exactly(_LENGTH.size))
    return [exactly(*_LENGTH.unpack(exactly(_LENGTH.size))) for _ in range(count)]


def _names(keys):
    return [key.decode() for key in keys]


#: operation -> function(table, fields) that gives the answer
_SERVED = {
    b"set": lambda t, f: t.set(f[0].decode(), f[1]),
    b"get": lambda t, f: t.data[f[0].decode()],
    b"add": lambda t, f: str(t.add(f[0].decode(), int(f[1]))).encode(),
    b"append": lambda t, f: t.append(f[0].decode(), f[1]),
    b"compare_set": lambda t, f: t.compare_set(f[0].decode(), f[1], f[2]),
    b"delete_key": lambda t, f: b"1" if t.delete_key(f[0].decode()) else b"0",
    b"num_keys": lambda t, f: str(len(t.data)).encode(),
    b"list_keys": lambda t, f: [key.encode() for key in list(t.data)],
    b"wait": lambda t, f: b"1" if t.wait(_names(f[1:]), float(f[0])) else b"0",
    b"push": lambda t, f: t.push(f[0].decode(), f[1]),
    b"pop": lambda t, f: [x for x in (t.pop(f[0].decode(), float(f[1])),) if x is not None],
    b"queue_len": lambda t, f: str(len(t.queues.get(f[0].decode(), ()))).encode(),
}


class _Server:
    """Serves a table: one thread that accepts, one per client."""

    def __init__(self, host, port, listen_fd):
        self.table = Table()
        if listen_fd is not None:
            self._listener = socket.socket(fileno=listen_fd)
        else:
            self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                self._listener.bind(("", port))
            except OSError as error:
                self._listener.close()
                raise DistNetworkError(
                    "The server socket has failed to listen on any local network address. "
                    f"port: {port}, useIpv6: false, code: -{error.errno}, name: {errno.errorcode.get(error.errno)}, "
                    f"message: {(error.strerror or '').lower()}"
                ) from None
            self._listener.listen(1024)
        self.port = self._listener.getsockname()[1]
        self._connections = set()
        threading.Thread(target=self._accept, daemon=True, name="TCPStore").start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True, name="TCPStore client").start()

    def _serve(self, connection):
        try:
            while True:
                operation, *fields = _receive(connection)
                if operation == _HELLO:
                    answer = _HELLO
                else:
                    answer = _SERVED[operation](self.table, fields)
                if isinstance(answer, list):
                    _send(connection, *answer)
                else:
                    _send(connection, _NOTHING if answer is None else answer)
        except (OSError, DistNetworkError, ValueError, KeyError, struct.error):
            pass  # the client is gone, asked for a sum of words, or is none of ours: its connection ends
        finally:
            self._connections.discard(connection)
            connection.close()

    def close(self):
        self._listener.close()
        for connection in list(self._connections):
            connection.close()


class TCPStore(Store):
    """A store that the process with `is_master=True` serves (PyTorch, torch.distributed.TCPStore).

    port: 0 lets the server choose one (`store.port`). wait_for_workers: with a `world_size`, return when all have connected.
    DistNetworkError where there is no server or the port is taken, DistStoreError where workers are missing after `timeout`.
    """

    def __init__(self, host_name, port, world_size=None, is_master=False, timeout=timedelta(seconds=300), wait_for_workers=True,
                 multi_tenant=False, master_listen_fd=None, use_libuv=True):
        super().__init__()
        self._timeout = timeout
        self.host = host_name
        self.libuvBackend = use_libuv
        self._lock = threading.Lock()
        self._server = None
        if is_master:
            self._server = _served.get(port) if multi_tenant and port else None
            if self._server is None:
                self._server = _Server(host_name, port, master_listen_fd)
            if multi_tenant:
                _served[self._server.port] = self._server
        self.port = self._server.port if self._server is not None else port
        self._connection = self._connect(timeout.total_seconds())
        joined = self.add(_JOINED, 1)
        if is_master and wait_for_workers and world_size is not None and world_size > 0:
            start = time.monotonic()
            while joined < world_size:
                passed = time.monotonic() - start
                if passed > timeout.total_seconds():
                    self._server.close()
                    raise DistStoreError(f"Timed out after {round(passed)} seconds waiting for clients. "
                                         f"{joined}/{world_size} clients joined.")
                time.sleep(0.01)
                joined = self.add(_JOINED, 0)

    def _connect(self, seconds):
        end = time.monotonic() + seconds
        while True:
            try:
                connection = socket.create_connection((self.host, self.port), timeout=max(0.01, end - time.monotonic()))
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _send(connection, _HELLO)
                if _receive(connection) == [_HELLO]:
                    connection.settimeout(None)
                    return connection
                connection.close()
            except (OSError, DistNetworkError, struct.error):
                pass
            if time.monotonic() + 0.05 >= end:
                raise DistNetworkError(f"The client socket has timed out after {round(seconds * 1000)}ms while trying to connect "
                                       f"to ({self.host}, {self.port}).")
            time.sleep(0.05)

    def _ask(self, *fields):
        try:
            with self._lock:
                _send(self._connection, *fields)
                return _receive(self._connection)
        except OSError as error:
            raise DistNetworkError(error.strerror or str(error)) from None

    def set(self, key, value):
        self._ask(b"set", key.encode(), as_bytes(value))

    def add(self, key, value):
        return int(self._ask(b"add", key.encode(), str(int(value)).encode())[0])

    def append(self, key, value):
        self._ask(b"append", key.encode(), as_bytes(value))

    def compare_set(self, key, expected_value, desired_value):
        return self._ask(b"compare_set", key.encode(), as_bytes(expected_value), as_bytes(desired_value))[0]

    def delete_key(self, key):
        return self._ask(b"delete_key", key.encode()) == [b"1"]

    def check(self, keys):
        return self._wait(keys, 0)

    def num_keys(self):
        return int(self._ask(b"num_keys")[0])

    def list_keys(self):
        return _names(self._ask(b"list_keys"))

    def queue_push(self, key, value):
        self._ask(b"push", key.encode(), as_bytes(value))

    def queue_pop(self, key, block=True):
        found = self._ask(b"pop", key.encode(), str(self._timeout.total_seconds() if block else 0).encode())
        if not found:
            raise DistStoreError("Wait timeout") if block else QueueEmptyError("queue is empty")
        return found[0]

    def queue_len(self, key):
        return int(self._ask(b"queue_len", key.encode())[0])

    def clone(self):
        return TCPStore(self.host, self.port, timeout=self._timeout)

    def _wait(self, keys, seconds):
        return self._ask(b"wait", str(seconds).encode(), *[key.encode() for key in keys]) == [b"1"]

    def _get(self, key):
        return self._ask(b"get", key.encode())[0]

    def __repr__(self):
        return f"TCPStore(host={self.host!r}, port={self.port}, server={self._server is not None})"


_served = {}  # port -> server, for multi_tenant stores of one process

TCPStore.__module__ = __package__
