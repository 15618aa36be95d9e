"""torch.futures: results that come later, continuations, and where their errors go."""

import threading

import pytest
import torch
from torch.futures import Future, collect_all, wait_all


def finished(value):
    future = Future()
    future.set_result(value)
    return future


def test_continuations_see_the_finished_future():
    future = Future()
    chained = future.then(lambda f: f.value() + 1).then(lambda f: f.wait() * 10)
    seen = []
    future.add_done_callback(lambda f: seen.append(f.value()))
    assert not chained.done() and not seen
    future.set_result(4)
    assert chained.wait() == 50 and seen == [4]
    future.add_done_callback(lambda f: seen.append("later"))
    assert seen == [4, "later"]


def test_waiting_ends_when_another_thread_sets_the_result():
    future = Future()
    threading.Timer(0.05, future.set_result, [torch.ones(2)]).start()
    assert future.wait().tolist() == [1, 1]


def test_a_result_is_set_once():
    future = finished(1)
    with pytest.raises(RuntimeError, match="Attempting to mark a completed Future as complete again"):
        future.set_result(2)
    with pytest.raises(RuntimeError):
        Future().value()


def test_errors_reach_whoever_waits():
    failed = Future()
    failed.set_exception(ValueError("lost"))
    for read in (failed.wait, failed.value):
        with pytest.raises(ValueError, match="lost"):
            read()
    with pytest.raises(RuntimeError, match="when running the callback: ZeroDivisionError: division by zero"):
        finished(1).then(lambda f: 1 / 0).wait()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception."):
        Future().set_exception(3)


def test_an_error_in_a_done_callback_stops_no_other():
    future, seen = Future(), []
    future.add_done_callback(lambda f: 1 / 0)
    future.add_done_callback(lambda f: seen.append(f.value()))
    future.set_result(7)
    assert seen == [7]


def test_collections():
    late = Future()
    together = collect_all([finished(1), late])
    assert not together.done()
    late.set_result(2)
    assert [f.value() for f in together.wait()] == [1, 2]
    assert wait_all([finished("a"), finished("b")]) == ["a", "b"]
    assert collect_all([]).wait() == []
    failed = Future()
    failed.set_exception(KeyError("k"))
    with pytest.raises(KeyError):
        wait_all([finished(1), failed])
