"""torch.library and torch.ops: operators written in Python."""

import numpy as np
import pytest
import torch


@pytest.fixture
def library():
    made = torch.library.Library("test_library_ns", "FRAGMENT")
    yield made
    made._destroy()


def test_custom_op_with_a_gradient():
    @torch.library.custom_op("test_library_ns::scaled_sin", mutates_args=())
    def scaled_sin(x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.numpy(force=True)) * np.float32(scale))

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * ctx.scale, None

    x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    assert not scaled_sin(x).requires_grad
    scaled_sin.register_autograd(backward, setup_context=setup)
    y = torch.ops.test_library_ns.scaled_sin(x, scale=3.0)
    assert torch.allclose(y.detach(), 3 * x.detach().sin())
    y.sum().backward()
    assert torch.allclose(x.grad, 3 * x.detach().cos())
    assert repr(torch.ops.test_library_ns.scaled_sin.default) == "<OpOverload(op='test_library_ns.scaled_sin', overload='default')>"
    assert torch.library.opcheck(scaled_sin, (torch.ones(2),)) == {"test_schema": "SUCCESS"}


def test_schemas_of_annotations():
    def f(x: torch.Tensor, k: list[int], y: torch.Tensor | None = None, *, flag: bool = False, name: str = "a") -> tuple[
            torch.Tensor, torch.Tensor]:
        ...

    assert torch.library.infer_schema(f, mutates_args=()) == (
        '(Tensor x, SymInt[] k, Tensor? y=None, *, bool flag=False, str name="a") -> (Tensor, Tensor)')

    def g(x: torch.Tensor) -> None:
        ...

    assert torch.library.infer_schema(g, mutates_args={"x"}) == "(Tensor(a0!) x) -> ()"
    with pytest.raises(ValueError, match="must have a type annotation"):
        torch.library.infer_schema(lambda x: x, mutates_args=())


def test_library_definitions_defaults_and_errors(library):
    library.define("add_k(Tensor x, int[] k=[1, 2], *, bool twice=False) -> Tensor")
    with pytest.raises(NotImplementedError, match="test_library_ns::add_k"):
        torch.ops.test_library_ns.add_k(torch.zeros(2))

    @torch.library.impl(library, "add_k", "CPU")
    def add_k(x, k, *, twice):
        return x + sum(k) * (2 if twice else 1)

    assert torch.ops.test_library_ns.add_k(torch.zeros(2)).tolist() == [3.0, 3.0]
    assert torch.ops.test_library_ns.add_k(torch.zeros(2), k=[4], twice=True).tolist() == [8.0, 8.0]
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        torch.ops.test_library_ns.add_k()
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'z'"):
        torch.ops.test_library_ns.add_k(torch.zeros(2), z=1)
    with pytest.raises(RuntimeError, match="multiple times"):
        library.define("add_k(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="already a kernel"):
        library.impl("add_k", add_k, "CPU")
    with pytest.raises(AttributeError):
        torch.ops.test_library_ns.another  # noqa: B018


def test_a_composite_kernel_is_differentiated_through(library):
    library.define("square_sum(Tensor x) -> Tensor")
    library.impl("square_sum", lambda x: (x * x).sum(), "CompositeImplicitAutograd")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.ops.test_library_ns.square_sum(x).backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_aten_reaches_the_adapters_operators():
    x = torch.tensor([1.0, -2.0])
    assert torch.ops.aten.abs(x).tolist() == [1.0, 2.0]
    assert torch.ops.aten.add.Tensor(x, x).tolist() == [2.0, -4.0]
    assert torch.equal(torch.ops.aten.linalg_vector_norm(x), torch.linalg.vector_norm(x))


def test_compiled_libraries_are_refused():
    with pytest.raises(OSError, match="torch.library"):
        torch.ops.load_library("libsomething.so")
