"""What breaks adapters: deep graphs, threads, errors and interrupts in the middle of backward."""

import gc
import threading
import weakref

import pytest
import torch
import torch.nn.functional as F


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_deep_graph_needs_no_recursion(dtype):
    leaf = torch.ones(1, requires_grad=True, dtype=dtype)
    end = leaf
    for _ in range(5000):
        end = end * 1.0001
    unread = end * 2
    end.backward()
    assert leaf.grad.item() == pytest.approx(1.0001**5000, rel=1e-3)
    del end, unread  # nor does its end
    gc.collect()


def train(seed, results):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(8, 1, generator=generator).requires_grad_()
    inputs = torch.randn(32, 8, generator=generator)
    optimizer = torch.optim.Adam([weight], 0.05)
    for step in range(15):
        optimizer.zero_grad()
        loss = F.mse_loss(torch.tanh(inputs @ weight), inputs.mean(1, keepdim=True))
        if step % 3 == 0:
            loss.item()
        loss.backward()
        optimizer.step()
    results[seed] = loss.item()


def test_threads_train_models_of_their_own():
    alone, together = {}, {}
    for seed in (1, 2):
        train(seed, alone)
    threads = [threading.Thread(target=train, args=(seed, together)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_pending_values_are_read_in_another_thread():
    for _ in range(3):
        leaf, seen = torch.ones(3, requires_grad=True), []
        hidden = torch.tanh(leaf) * 2
        thread = threading.Thread(target=lambda h=hidden, s=seen: s.append(h.detach().sum().item()))
        thread.start()
        thread.join()
        hidden.sum().backward()
        assert seen[0] == pytest.approx(4.56956, rel=1e-5)
        assert leaf.grad.tolist() == pytest.approx([0.83995] * 3, rel=1e-4)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_error_in_a_hook_leaves_everything_usable(error):
    def hook(grad):
        raise error

    leaf = torch.ones(2, requires_grad=True)
    inner = leaf * 3
    inner.register_hook(hook)
    with pytest.raises(error):
        inner.sum().backward()
    assert torch.is_grad_enabled() and leaf.grad is None
    (leaf * 4).sum().backward()
    assert leaf.grad.tolist() == [4, 4]


def test_failed_backward_keeps_nothing_alive():
    leaf = torch.ones(10, requires_grad=True)
    inner = leaf * 2
    inner.register_hook(lambda g: 1 / 0)
    kept = weakref.ref(leaf)
    with pytest.raises(ZeroDivisionError):
        inner.sum().backward()
    del leaf, inner
    gc.collect()
    assert kept() is None


def test_function_may_run_a_backward_of_its_own():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.detach() * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                again = x.detach().requires_grad_()
                (again * 2).backward(grad)
            return again.grad

    leaf = torch.ones(3, requires_grad=True)
    end = leaf
    for _ in range(10):
        end = Doubled.apply(end)
    end.sum().backward()
    assert leaf.grad.tolist() == [1024.0] * 3
