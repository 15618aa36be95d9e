# torch.distributed.rendezvous: how the processes of a job find each other: env://, tcp://host:port, file:///path.
from datetime import timedelta
from urllib.parse import parse_qs, urlparse, urlunparse

from msadapter_hook import settings

from ._store import FileStore, HashStore, PrefixStore
from ._tcp_store import TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

default_pg_timeout = timedelta(minutes=30)
_handlers = {}


def register_rendezvous_handler(scheme, handler):
    """Let `handler(url, timeout=…)` answer for the urls of a scheme; it yields (store, rank, world_size). Source: PyTorch,
    torch.distributed.register_rendezvous_handler."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url, rank=-1, world_size=-1, **kwargs):
    """An iterator of (store, rank, world_size) for a url. rank and world_size given here win over those in the url.
    RuntimeError for an unknown scheme, ValueError for what is missing. Source: PyTorch, torch.distributed.rendezvous."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int) or not isinstance(world_size, int):
        raise RuntimeError(f"`rank` and `world_size` must be integers. {rank!r}, {world_size!r}")
    parts = urlparse(url)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    if rank != -1:
        query["rank"] = str(rank)
    if world_size != -1:
        query["world_size"] = str(world_size)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    text = "&".join(f"{key}={value}" for key, value in query.items())
    return _handlers[parts.scheme](urlunparse(parts._replace(query=text)), **kwargs)


def _numbers(query, scheme):
    """The rank and the world size that a URL names."""
    for name in ("rank", "world_size"):
        if name not in query:
            raise _missing(scheme, f"{name.replace('_', ' ')} parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _missing(scheme, what):
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}")


def _split(url):
    parts = urlparse(url)
    return parts, {key: values[-1] for key, values in parse_qs(parts.query).items()}


def _tcp(url, timeout=default_pg_timeout, **kwargs):
    parts, query = _split(url)
    if not parts.port:
        raise _missing("tcp", "port number missing")
    rank, world_size = _numbers(query, "tcp")
    yield _serve(parts.hostname, parts.port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using tcp:// method")


def _file(url, timeout=default_pg_timeout, **kwargs):
    parts, query = _split(url)
    if not parts.path:
        raise _missing("file", "path missing")
    rank, world_size = _numbers(query, "file")
    store = FileStore(parts.path, world_size)
    store.set_timeout(timeout)
    yield store, rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _env(url, timeout=default_pg_timeout, **kwargs):
    _, query = _split(url)

    def wanted(name, parameter=None):
        text = query.get(parameter) if parameter in query else settings.variable(name)
        if text is None:
            raise _missing("env", f"environment variable {name} expected, but not set")
        return text

    rank = int(wanted("RANK", "rank"))
    world_size = int(wanted("WORLD_SIZE", "world_size"))
    host, port = wanted("MASTER_ADDR"), int(wanted("MASTER_PORT"))
    yield _serve(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


def check_rank(rank, world_size):
    """ValueError for a rank that is not one of the world's."""
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is not among the ranks 0 to {world_size - 1} (world_size={world_size})")


def _serve(host, port, rank, world_size, timeout):
    check_rank(rank, world_size)
    if world_size == 1:  # nobody to serve
        store = HashStore()
        store.set_timeout(timeout)
        return store
    if settings.variable("TORCHELASTIC_USE_AGENT_STORE") == "True":  # the launcher serves already
        attempt = settings.variable("TORCHELASTIC_RESTART_COUNT", "0")
        return PrefixStore(f"/worker/attempt_{attempt}", TCPStore(host, port, world_size, False, timeout))
    # a server that this process has started before goes on: its clients may come again before or after it
    return TCPStore(host, port, world_size, rank == 0, timeout, multi_tenant=True)


register_rendezvous_handler("tcp", _tcp)
register_rendezvous_handler("file", _file)
register_rendezvous_handler("env", _env)
