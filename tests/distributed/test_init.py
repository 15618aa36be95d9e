"""Finding each other: init_process_group's arguments, a world of one process, stores, and who does not come."""

import threading
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch.distributed import _job

from msadapter_hook.launch import free_port

SHORT = timedelta(seconds=0.3)


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


# ---------------------------------------------------------------------------------------- one process
@pytest.mark.parametrize("method", ["env://", "tcp", "file", "store"])
def test_world_of_one_process(method, monkeypatch, tmp_path):
    if method == "env://":
        for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "localhost", "MASTER_PORT": free_port()}.items():
            monkeypatch.setenv(name, str(value))
        dist.init_process_group("nccl")
    elif method == "store":
        dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    else:
        url = f"tcp://localhost:{free_port()}" if method == "tcp" else f"file://{tmp_path / 'meeting'}"
        dist.init_process_group("gloo", init_method=url, rank=0, world_size=1)
    assert dist.is_initialized() and (dist.get_rank(), dist.get_world_size()) == (0, 1)
    tensor = torch.arange(3.0)
    dist.all_reduce(tensor)
    dist.broadcast(tensor, 0)
    dist.reduce(tensor, 0)
    out = [torch.zeros(3)]
    dist.all_gather(out, tensor)
    dist.gather(tensor, [out[0]])
    dist.scatter(out[0], [tensor])
    dist.reduce_scatter(out[0], [tensor])
    dist.all_to_all_single(out[0], tensor)
    assert torch.equal(out[0], torch.arange(3.0)) and torch.equal(tensor, torch.arange(3.0))
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    dist.broadcast_object_list(objects)
    assert objects == [{"a": 1}]
    dist.barrier()
    dist.monitored_barrier()
    for send, receive in ((dist.send, dist.recv), (dist.send_object_list, dist.recv_object_list)):
        with pytest.raises(ValueError, match="destination rank should not be the same"):
            send([tensor] if send is dist.send_object_list else tensor, 0)
        with pytest.raises(ValueError, match="source rank should not be the same"):
            receive([None] if receive is dist.recv_object_list else tensor, 0)
    for call, name in ((lambda: dist.gather(tensor), "``gather_list`` must be specified on destination"),
                       (lambda: dist.gather_object(1), "``gather_list`` must be specified on destination"),
                       (lambda: dist.scatter(tensor), "``scatter_list`` must be specified on source")):
        with pytest.raises(ValueError, match=name):
            call()
    assert _job.current() is None  # nothing of MindSpore's has been started


def test_before_and_after():
    message = "Default process group has not been initialized, please make sure to call init_process_group."
    for call in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, lambda: dist.all_reduce(torch.ones(1))):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()
    assert not dist.is_initialized() and dist.group.WORLD is None
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(ValueError, match="trying to initialize the default process group twice!"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    assert dist.group.WORLD.group_name == "0" and dist.new_group([0]).group_name == "1"
    dist.destroy_process_group()
    assert not dist.is_initialized()


@pytest.mark.parametrize("arguments,kind,message", [
    ({}, ValueError, "environment variable RANK expected, but not set"),
    ({"init_method": "tcp://localhost:1"}, ValueError, "tcp:// rendezvous: rank parameter missing"),
    ({"init_method": "tcp://localhost:1", "rank": 0}, ValueError, "tcp:// rendezvous: world size parameter missing"),
    ({"init_method": "tcp://localhost", "rank": 0, "world_size": 1}, ValueError, "tcp:// rendezvous: port number missing"),
    ({"init_method": "tcp://localhost:1", "rank": 3, "world_size": 2}, ValueError, "rank 3 is not among the ranks 0 to 1"),
    ({"init_method": "file:///x", "rank": 0}, ValueError, "file:// rendezvous: world size parameter missing"),
    ({"init_method": "foo://x"}, RuntimeError, "No rendezvous handler for foo://"),
    ({"init_method": "env://", "store": "a store"}, AssertionError, "Cannot specify both init_method and store."),
    ({"store": "a store"}, AssertionError, "world_size must be positive if using store"),
    ({"timeout": 3}, TypeError, "Expected timeout argument to be of type datetime.timedelta, got 3"),
    ({"backend": "foo"}, AssertionError, "Unknown backend type foo"),
])
def test_wrong_arguments(arguments, kind, message):
    given = {name: dist.HashStore() if value == "a store" else value for name, value in arguments.items()}
    with pytest.raises(kind) as caught:
        dist.init_process_group(**{"backend": "gloo"} | given)
    assert message in str(caught.value)


def test_missing_variables_are_named(monkeypatch):
    given = [("RANK", 0), ("WORLD_SIZE", 1), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", free_port())]
    for name, value in given:
        with pytest.raises(ValueError, match=f"env:// rendezvous: environment variable {name} expected, but not set"):
            dist.init_process_group("gloo")
        monkeypatch.setenv(name, str(value))


def test_who_does_not_come_is_named():
    with pytest.raises(dist.DistStoreError, match=r"rank 0 has waited for ranks \[1, 2\] of 3"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=3, timeout=SHORT)
    with pytest.raises(dist.DistStoreError, match=r"waiting for clients. 1/2 clients joined."):
        dist.init_process_group("gloo", init_method=f"tcp://localhost:{free_port()}", rank=0, world_size=2, timeout=SHORT)
    with pytest.raises(dist.DistNetworkError, match="The client socket has timed out after 300ms while trying to connect to"):
        dist.init_process_group("gloo", init_method=f"tcp://localhost:{free_port()}", rank=1, world_size=2, timeout=SHORT)
    assert not dist.is_initialized()


def test_a_rank_that_is_there_twice():
    store = dist.HashStore()
    with pytest.raises(dist.DistStoreError):
        _job.begin(store, 1, 2, 0.1)
    with pytest.raises(dist.DistStoreError, match="Two processes say that they are rank 1"):
        _job.begin(store, 1, 2, 0.1)


def test_backends_that_are_there():
    assert dist.is_available() and dist.is_gloo_available() and not dist.is_mpi_available() and not dist.is_ucc_available()
    assert dist.is_backend_available("gloo") and dist.is_backend_available("HCCL") and not dist.is_backend_available("foo")
    assert dist.Backend("NCCL") == dist.Backend.NCCL == "nccl"
    assert str(dist.distributed_c10d.BackendConfig(dist.Backend("cpu:gloo,cuda:nccl"))) == "cpu:gloo,cuda:nccl"
    assert dist.get_default_backend_for_device("cuda") == "nccl"
    assert repr(dist.ReduceOp.SUM) == "<RedOpType.SUM: 0>" and isinstance(dist.ReduceOp.MAX, dist.ReduceOp)
    assert dist.ReduceOp(dist.ReduceOp.MAX) == dist.ReduceOp.MAX and str(dist.ReduceOp.AVG) == "RedOpType.AVG"


def test_remote_calls_are_refused():
    from torch.distributed import rpc

    assert not rpc.is_available()
    with pytest.raises(NotImplementedError, match="torch.distributed.rpc.init_rpc"):
        rpc.init_rpc("worker")
    with pytest.raises(NotImplementedError, match="torch.distributed.shrink_group"):
        dist.shrink_group([0])


def test_options_and_helpers():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    options = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.MAX
    tensor = torch.ones(2)
    assert dist.group.WORLD.allreduce([tensor], options).wait() and dist.group.WORLD.broadcast([tensor], dist.BroadcastOptions()).wait()
    with dist._coalescing_manager() as together:
        together.append(dist.all_reduce(tensor, async_op=True))
    together.wait()
    with dist.record_comm("step"):
        dist.barrier()
    data, size = dist.distributed_c10d._object_to_tensor({"a": 1})
    assert dist.distributed_c10d._tensor_to_object(data, size) == {"a": 1}


def test_handlers_of_other_schemes():
    def handler(url, timeout=None, **kwargs):
        yield dist.HashStore(), 0, 1

    dist.register_rendezvous_handler("here", handler)
    dist.init_process_group("gloo", init_method="here://")
    assert dist.get_world_size() == 1
    with pytest.raises(RuntimeError, match="already registered"):
        dist.register_rendezvous_handler("here", handler)


# ---------------------------------------------------------------------------------------- stores
@pytest.fixture(params=["HashStore", "FileStore", "TCPStore", "PrefixStore"])
def store(request, tmp_path):
    made = {
        "HashStore": dist.HashStore,
        "FileStore": lambda: dist.FileStore(str(tmp_path / "store"), 1),
        "TCPStore": lambda: dist.TCPStore("localhost", 0, 1, True),
        "PrefixStore": lambda: dist.PrefixStore("corner", dist.HashStore()),
    }[request.param]()
    made.set_timeout(SHORT)
    return made


def test_keys_and_values(store):
    assert store.timeout == SHORT
    store.set("a", "1")
    store.set("b", b"\x00x")
    assert (store.get("a"), store.get("b")) == (b"1", b"\x00x")
    assert store.add("a", 2) == 3 and store.get("a") == b"3"
    assert (store.add("n", 5), store.add("n", -1), store.get("n")) == (5, 4, b"4")
    assert store.compare_set("c", "", "v") == b"v" and store.compare_set("c", "x", "w") == b"v"
    assert store.compare_set("c", "v", "w") == b"w" and store.compare_set("none", "x", "w") == b"x"
    assert store.check(["a"]) and not store.check(["a", "none"])
    store.append("joined", "x")
    store.append("joined", "y")
    store.multi_set(["m", "k"], ["1", "2"])
    assert store.multi_get(["joined", "m", "k"]) == [b"xy", b"1", b"2"]
    assert {"a", "b", "n", "c"} <= set(store.list_keys()) and store.num_keys() >= 7
    assert store.delete_key("a") and not store.check(["a"])
    with pytest.raises(TypeError):
        store.set("a", 3)


def test_waiting_for_keys(store):
    for wait in (lambda: store.get("none"), lambda: store.wait(["none"]), lambda: store.wait(["none"], timedelta(seconds=0.1))):
        with pytest.raises(dist.DistStoreError, match="keys: .*none"):
            wait()
    other = store.clone()
    later = threading.Timer(0.1, lambda: other.set("late", "x"))
    later.start()
    assert store.get("late") == b"x"
    later.join()


def test_queues():
    for store in (dist.HashStore(), dist.TCPStore("localhost", 0, 1, True)):
        store.set_timeout(timedelta(seconds=0.1))
        store.queue_push("q", "1")
        store.queue_push("q", "2")
        assert store.queue_len("q") == 2 and (store.queue_pop("q"), store.queue_pop("q")) == (b"1", b"2")
        with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
            store.queue_pop("q", False)
        with pytest.raises(dist.DistStoreError):
            store.queue_pop("q")


def test_stores_are_shared(tmp_path):
    server = dist.TCPStore("localhost", 0, 3, True, wait_for_workers=False)
    clients = [dist.TCPStore("localhost", server.port, 3, False) for _ in range(2)]
    server.set("from", "server")
    assert [client.get("from") for client in clients] == [b"server"] * 2
    assert [store.add("n", 1) for store in (server, *clients)] == [1, 2, 3]
    first, second = dist.FileStore(str(tmp_path / "f"), 2), dist.FileStore(str(tmp_path / "f"), 2)
    first.set("a", "x" * 10000)
    assert second.get("a") == b"x" * 10000 and second.add("n", 1) == 1 and first.add("n", 1) == 2
    del first
    assert (tmp_path / "f").exists()
    del second
    assert not (tmp_path / "f").exists()
    inner = dist.HashStore()
    dist.PrefixStore("outer", dist.PrefixStore("inner", inner)).set("a", "1")
    assert inner.list_keys() == ["inner/outer/a"]


def test_many_threads_add(tmp_path):
    server = dist.TCPStore("localhost", 0, 1, True)
    stores = [dist.TCPStore("localhost", server.port) for _ in range(3)] + [server]

    def add(store):
        for _ in range(200):
            store.add("n", 1)

    threads = [threading.Thread(target=add, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.get("n") == b"800"


def test_server_of_a_store():
    server = dist.TCPStore("localhost", 0, 1, True)
    with pytest.raises(dist.DistNetworkError, match="name: EADDRINUSE, message: address already in use"):
        dist.TCPStore("localhost", server.port, 1, True)
    with pytest.raises(dist.DistNetworkError, match="timed out after 300ms while trying to connect"):
        dist.TCPStore("localhost", free_port(), 2, False, SHORT)
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined."):
        dist.TCPStore("localhost", 0, 2, True, SHORT)
    for kind in (dist.DistNetworkError, dist.DistStoreError, dist.DistBackendError):
        assert issubclass(kind, dist.DistError) and issubclass(kind, RuntimeError)
