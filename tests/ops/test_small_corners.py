"""Corners of operators that programs seldom reach. Right values: PyTorch 2.13."""

import copy

import pytest
import torch
from torch.autograd import Function


def test_arithmetic_of_two_numbers():
    made = [torch.add(1, 2), torch.mul(2, 3.5), torch.div(1, 2), torch.sub(1, 2), torch.floor_divide(7, 2), torch.add(True, True),
            torch.div(7, 2, rounding_mode="floor"), torch.add(1, 2j)]
    assert [t.item() for t in made] == [3, 7.0, 0.5, -1, 3, True, 3, 1 + 2j]
    assert [t.dtype for t in made] == [torch.int64, torch.float32, torch.float32, torch.int64, torch.int64, torch.bool, torch.int64,
                                       torch.complex64]
    for call in (lambda: torch.maximum(1, 2), lambda: torch.eq(1, 2), lambda: torch.add("a", 1), lambda: torch.mul(1, "a")):
        with pytest.raises(TypeError):
            call()


def test_views_of_conjugates_in_another_dtype_are_refused():
    c = torch.tensor([1 + 2j])
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors when converting to a different dtype"):
        c.conj().view(torch.float64)
    with pytest.raises(RuntimeError, match="not supported for tensors with negative bit set when converting to a different dtype"):
        c.conj().imag.view(torch.int32)
    assert c.view(torch.float32).tolist() == [1, 2]


def test_tensor_split_at_what_is_no_integer():
    with pytest.raises(RuntimeError, match="to have dtype of long, but got Float"):
        torch.tensor_split(torch.ones(3), torch.tensor(1.1))
    with pytest.raises(RuntimeError, match="at least a 1-dimensional tensor, but got a tensor with 0 dims"):
        torch.tensor_split(torch.ones(()), torch.tensor(1.1))


@pytest.mark.parametrize("name, layout", [("to_sparse_bsr", torch.sparse_bsr), ("to_sparse_bsc", torch.sparse_bsc)])
def test_blocks_of_one_size(name, layout):
    made = getattr(torch.ones(4, 4), name)(2)
    assert made.layout is layout and made.values().shape == (4, 2, 2) and torch.equal(made.to_dense(), torch.ones(4, 4))


def test_outputs_that_are_no_tensors_have_no_gradient():
    seen = []

    class Several(Function):
        @staticmethod
        def forward(ctx, x):
            return 3, x * 2, None, x * 3

        @staticmethod
        def backward(ctx, *grads):
            seen.extend(None if g is None else tuple(g.shape) for g in grads)
            return grads[1] * 2 + grads[3]

    x = torch.ones(2, requires_grad=True)
    Several.apply(x)[1].sum().backward()
    assert seen == [None, (2,), None, (2,)] and x.grad.tolist() == [2, 2]


def test_materialized_gradients_can_be_differentiated():
    x, a = torch.tensor(0.5, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    first = torch.autograd.grad(x * a, x, create_graph=True)
    second = torch.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    assert second[0].requires_grad and torch.autograd.grad(second, x, materialize_grads=True)[0].item() == 0


def test_accumulators_have_metadata():
    x = torch.ones(1, requires_grad=True)
    node = torch.autograd.graph.get_gradient_edge(x).node
    node.metadata["a"] = 1
    assert torch.autograd.graph.get_gradient_edge(x).node.metadata == {"a": 1}


def test_the_factor_in_between_of_old_programs():
    x, y = torch.ones(2), torch.full((2,), 3.0)
    assert torch.add(x, 2, y).tolist() == [7, 7] and torch.sub(x, 2, y).tolist() == [-5, -5]
    assert x.add_(-0.5, y) is x and x.tolist() == [-0.5, -0.5]
    w = torch.ones(2, requires_grad=True)
    (w * 2).add_(3, w).sum().backward()
    assert w.grad.tolist() == [5, 5]
    with pytest.raises(TypeError) as error:
        torch.add(x)
    assert str(error.value) == ("add() received an invalid combination of arguments - got (Tensor), but expected (Tensor input, Tensor "
                                "other, *, Number alpha = 1, Tensor out = None)")


@pytest.mark.parametrize("cell", [torch.nn.RNNCell, torch.nn.GRUCell])
def test_cells_without_hidden_units(cell):
    assert cell(10, 0)(torch.ones(3, 10), torch.ones(3, 0)).shape == (3, 0)
    with pytest.raises(ValueError, match="input_size must be greater than zero"):
        torch.nn.LSTM(0, 3)


@pytest.mark.parametrize("look", [lambda v: v.detach().numpy(), lambda v: v.data_ptr(), lambda v: v.detach().cpu().numpy().copy()])
@pytest.mark.parametrize("view", [lambda x: x.t(), lambda x: x[0], lambda x: x[:, 1:], lambda x: x.view(6), lambda x: x.t()[1]])
@pytest.mark.parametrize("leaf", [True, False])
def test_gradient_of_a_view_whose_memory_was_looked_at(look, view, leaf):
    """Looking at the numbers of a view leaves its place in the graph."""
    x = torch.arange(1.0, 7.0).view(2, 3).requires_grad_()
    v = view(x if leaf else x * 1)
    out = (v * v).sum()
    node = v.grad_fn
    look(v)
    assert v.grad_fn is node
    (g,) = torch.autograd.grad(out, v)
    assert torch.equal(g, 2 * v.detach())


def test_memory_written_to_from_outside_is_seen_by_views():
    x = torch.ones(2, 3, requires_grad=True)
    v = x.t()
    (v * 1).sum()
    x.detach().numpy()[0, 1] = 5
    assert v[1, 0].item() == 5 and (v * v).sum().item() == 30


@pytest.mark.parametrize("fast", [True, False])
def test_gradcheck_of_a_view(fast):
    x = torch.arange(1.0, 7.0, dtype=torch.float64).view(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: (v * v).sum(0), (x.t(),), fast_mode=fast)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(lambda v: (v * v.detach()).sum(0), (x.t(),), fast_mode=fast)


def test_types_that_tensors_are_turned_into():
    x = torch.ones(2)
    assert x.int().type(torch.Tensor).dtype is torch.float32 and x.type("torch.DoubleTensor").dtype is torch.float64
    with pytest.raises(TypeError, match="dtype must be a type, str, or dtype object"):
        x.type(1)
    with pytest.raises(TypeError) as error:
        torch.tensor()
    assert str(error.value) == 'tensor() missing 1 required positional arguments: "data"'
    assert format(torch.empty((), device="meta")) == "tensor(..., device='meta', size=())"


def test_functions_on_elements_refuse_what_requires_grad():
    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    for name, call in (("map_", lambda: x.map_(y, lambda a, b: a)), ("map2_", lambda: x.map2_(x, y, lambda a, b, c: a)),
                       ("apply_", lambda: y.apply_(lambda a: a))):
        with pytest.raises(RuntimeError, match=f"Can't call {name}.. on Variable that requires grad. Use var.detach...{name}"):
            call()


def test_gradient_assigned_to_a_sparse_tensor():
    s = torch.eye(2).to_sparse().requires_grad_()
    s.grad = torch.ones(2, 2).to_sparse()
    assert torch.equal(s.grad.to_dense(), torch.ones(2, 2)) and torch.equal(copy.deepcopy(s).grad.to_dense(), torch.ones(2, 2))
    plain = torch.zeros(3).to_sparse()
    plain.grad = torch.ones(3).to_sparse()
    assert copy.deepcopy(plain).grad.to_dense().tolist() == [1, 1, 1]
    s.grad = None
    torch.sparse.sum(s).backward()
    assert torch.equal(s.grad.to_dense(), torch.eye(2)) or torch.equal(s.grad.to_dense(), torch.ones(2, 2))


def test_sizes_of_nested_and_plain_tensors_are_not_compared():
    n = torch.nested.nested_tensor([torch.ones(2)])
    with pytest.raises(RuntimeError, match="Self is not nested. While Other is nested."):
        torch.ones(2).is_same_size(n)


def test_condition_of_where():
    with pytest.raises(RuntimeError) as error:
        torch.where(torch.ones(2), 1.0, 0.0)
    assert str(error.value) == "where expected condition to be a boolean tensor, but got a tensor with dtype Float"
