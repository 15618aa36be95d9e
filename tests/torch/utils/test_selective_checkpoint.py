"""Selective checkpoints: what a policy saves is not computed again, gradients are those of the plain function."""

import functools

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

aten = torch.ops.aten


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


def function(x, w):
    return torch.sigmoid(torch.relu(torch.sin(x) @ w) @ w).sum()


def leaves():
    torch.manual_seed(0)
    return torch.randn(3, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)


def run(policy, fn=function, **options):
    inputs = leaves()
    context_fn = functools.partial(create_selective_checkpoint_contexts, policy, **options)
    out = checkpoint(fn, *inputs, use_reentrant=False, context_fn=context_fn)
    out.backward()
    return out.item(), inputs[0].grad, inputs[1].grad


def check(found, fn=function):
    inputs = leaves()
    out = fn(*inputs)
    out.backward()
    assert found[0] == out.item()
    for got, leaf in zip(found[1:], inputs):
        assert torch.allclose(got, leaf.grad)


@pytest.mark.parametrize("policy", [[aten.mm.default], [aten.sigmoid.default, aten.relu.default], []])
def test_lists_of_operators(policy):
    check(run(policy))


@pytest.mark.parametrize("chosen", list(CheckpointPolicy))
def test_policies(chosen):
    check(run(lambda ctx, op, *args, **kwargs: chosen))


def test_a_policy_sees_the_first_run_once():
    seen = []

    def policy(ctx, op, *args, **kwargs):
        seen.append((ctx.is_recompute, str(op)))
        return op is aten.mm.default

    check(run(policy))
    assert seen == [(False, f"aten.{name}") for name in
                    ("sin.default", "mm.default", "relu.default", "mm.default", "sigmoid.default", "sum.default")]


def test_what_is_saved_is_not_called_again():
    x, w = leaves()
    first, again = Count(), Count()

    def contexts():
        keeping, giving = create_selective_checkpoint_contexts([aten.mm.default])

        class Both:
            def __init__(self, mode, counter):
                self.contexts = (counter, mode)

            def __enter__(self):
                for context in self.contexts:
                    context.__enter__()

            def __exit__(self, *exc):
                for context in self.contexts[::-1]:
                    context.__exit__(*exc)

        return Both(keeping, first), Both(giving, again)

    checkpoint(function, x, w, use_reentrant=False, context_fn=contexts).backward()
    assert first.calls.count(aten.mm.default) == 2
    assert aten.mm.default not in again.calls[:5] and again.calls.count(aten.sin.default) == 1


def test_random_numbers_are_those_of_the_first_run():
    def dropping(x, w):
        torch.manual_seed(5)
        return (torch.rand_like(x) * x * w).sin().exp().sum()

    check(run(lambda ctx, op, *args, **kwargs: True, dropping), dropping)


def test_results_that_are_written_to():
    def writing(x, w):
        return x.sin().mul_(2).exp().sum() + w.sum()

    with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
        run([aten.sin.default], writing)
    run([aten.sin.default], writing, allow_cache_entry_mutation=True)


def test_one_backward_a_region():
    x, w = leaves()
    out = checkpoint(function, x, w, use_reentrant=False,
                     context_fn=functools.partial(create_selective_checkpoint_contexts, [aten.mm.default]))
    out.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time. You are only allowed to backward once on any region"):
        out.backward()


def test_refusals():
    with pytest.raises(TypeError, match="policy_fn_or_list must be either a function or a list of ops."):
        create_selective_checkpoint_contexts("mm")
    with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload but got"):
        create_selective_checkpoint_contexts([torch.mm])
    with pytest.raises(ValueError, match="For example, if you have `aten.mm`, try `aten.mm.default`."):
        create_selective_checkpoint_contexts([aten.mm])
