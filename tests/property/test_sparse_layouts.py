"""Sparse tensors of random sizes and places against the dense tensors they stand for: values, and gradients of the elements."""

import pytest
import torch

SEEDS = range(12)


def number(low, high):
    return int(torch.randint(low, high + 1, ()))


def random_sparse(sparse=None, dense=None, repeats=True):
    """A COO tensor in double precision, places in any order, some of them several times."""
    sparse = number(1, 3) if sparse is None else sparse
    dense = number(0, 1) if dense is None else dense
    size = [number(1, 4) for _ in range(sparse + dense)]
    count = number(0, 8)
    places = torch.stack([torch.randint(0, n, (count,)) for n in size[:sparse]])
    values = torch.randn(count, *size[sparse:], dtype=torch.float64)
    made = torch.sparse_coo_tensor(places, values, size)
    return made if repeats else made.coalesce()


def like(other):
    """Another one of the same size, with the same dimensions sparse."""
    sparse = other.sparse_dim()
    count = number(0, 8)
    places = torch.stack([torch.randint(0, n, (count,)) for n in other.shape[:sparse]])
    return torch.sparse_coo_tensor(places, torch.randn(count, *other.shape[sparse:], dtype=torch.float64), other.shape)


def dense(x):
    return x.to_dense() if x.layout is not torch.strided else x


def same(found, wanted):
    assert found.shape == wanted.shape
    torch.testing.assert_close(dense(found), wanted, rtol=1e-9, atol=1e-12)


@pytest.fixture(params=SEEDS, autouse=True)
def seed(request):
    torch.manual_seed(request.param)
    return request.param


def test_elementwise():
    a = random_sparse()
    b = like(a)
    x, y = a.to_dense(), b.to_dense()
    same(a.coalesce(), x)
    same(a + b, x + y)
    same(a - b * 3, x - y * 3)
    same(torch.add(a, b, alpha=-2), x - 2 * y)
    same(a * b, x * y)
    same(a * torch.ones(a.shape[-1], dtype=x.dtype) * 2, x * 2)
    same(y + a, y + x)
    same(y - a, y - x)
    same(-a / 4, -x / 4)
    same(a.sin(), x.sin())
    same(a.abs().sqrt(), x.abs().sqrt())
    same(a**2, x**2)
    c = a.clone()
    c.add_(b).mul_(2)
    same(c, (x + y) * 2)
    same(y.clone().add_(a, alpha=3), y + 3 * x)
    same(y.sparse_mask(a.coalesce()), y * mask_of(a))
    same(b.sparse_mask(a.coalesce()), y * mask_of(a))


def mask_of(a):
    a = a.coalesce()
    return torch.sparse_coo_tensor(a.indices(), torch.ones_like(a.values()), a.shape).to_dense()


def test_shapes():
    a = random_sparse()
    x = a.to_dense()
    n = a.sparse_dim()
    i, j = number(0, n - 1), number(0, n - 1)
    same(a.transpose(i, j), x.transpose(i, j))
    d = number(0, a.dim() - 1)
    at = number(0, a.shape[d] - 1)
    same(a.select(d, at), x.select(d, at))
    where = torch.randint(0, a.shape[d], (number(0, 5),))
    same(a.index_select(d, where), x.index_select(d, where))
    length = number(0, a.shape[d])
    start = number(0, a.shape[d] - length)
    same(a.narrow_copy(d, start, length), x.narrow(d, start, length))
    b = like(a)
    same(torch.cat([a, b, a], d), torch.cat([x, b.to_dense(), x], d))
    u = number(0, a.dim())
    same(torch.stack([a, b], u), torch.stack([x, b.to_dense()], u))
    same(a.unsqueeze(u), x.unsqueeze(u))
    for one, other in zip(a.unbind(d), x.unbind(d)):
        same(one, other)


def test_sums():
    a = random_sparse()
    x = a.to_dense()
    same(a.sum(), x.sum())
    dims = sorted({number(0, a.dim() - 1) for _ in range(number(1, a.dim()))})
    for keepdim in (False, True):
        same(a.sum(dims, keepdim), x.sum(dims, keepdim))
    same(torch.sparse.sum(a, dims), x.sum(dims))
    same(a.norm(), x.norm())


def test_softmax_takes_what_is_there():
    a = random_sparse(repeats=False)
    d = number(0, a.dim() - 1)
    there = mask_of(a) != 0
    x = torch.where(there, a.to_dense(), torch.tensor(-torch.inf, dtype=torch.float64))
    wanted = torch.where(there, torch.softmax(x, d), torch.zeros((), dtype=x.dtype))
    same(torch.sparse.softmax(a, d), wanted)
    same(torch.sparse.log_softmax(a, d), torch.where(there, torch.log_softmax(x, d), torch.zeros((), dtype=x.dtype)))


def test_products_and_their_gradients():
    a = random_sparse(2, 0)
    rows, columns = a.shape
    w = torch.randn(columns, 3, dtype=torch.float64, requires_grad=True)
    left = torch.randn(3, rows, dtype=torch.float64, requires_grad=True)
    v = a._values().clone().requires_grad_()
    s = torch.sparse_coo_tensor(a._indices(), v, a.shape)
    x = torch.zeros(a.shape, dtype=torch.float64).index_put(tuple(a._indices()), v, accumulate=True)
    b = random_sparse(2, 0)
    b = torch.sparse_coo_tensor(b._indices() % columns, b._values(), (columns, max(b.shape[1], columns)))
    square, nothing = left @ left.T, torch.sparse_coo_tensor((3, columns), dtype=torch.float64)
    for found, wanted in (
        (torch.sparse.mm(s, w), x @ w), (left @ s, left @ x), (s @ w[:, 0], x @ w[:, 0]), (torch.sparse.addmm(square, nothing, w), square),
        (torch.sparse.mm(s, b).to_dense(), x @ b.to_dense()), (s.to_sparse_csr() @ w, x @ w), (s.t() @ left.T, x.T @ left.T),
    ):
        same(found, wanted)
        inputs = (v, w, left)
        got = torch.autograd.grad(found.sin().sum(), inputs, retain_graph=True, materialize_grads=True)
        want = torch.autograd.grad(wanted.sin().sum(), inputs, retain_graph=True, materialize_grads=True)
        for g, h in zip(got, want):
            same(g, h)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc])
def test_compressed_layouts(layout):
    high, wide = (number(1, 2), number(1, 2)) if layout in (torch.sparse_bsr, torch.sparse_bsc) else (1, 1)
    x = torch.randn(number(1, 3) * high, number(1, 3) * wide, dtype=torch.float64) * (torch.rand(1) > 0.1)
    x = torch.where(torch.rand(x.shape) > 0.5, x, torch.zeros((), dtype=x.dtype))
    block = (high, wide) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    c = x.to_sparse(layout=layout, blocksize=block)
    assert c.layout is layout
    same(c, x)
    same(c.to_sparse(), x)
    same(c.t(), x.T)
    same(c * 2, x * 2)
    same(c + c, x + x)
    same(-c, -x)
    same(c @ torch.ones(x.shape[1], 2, dtype=x.dtype), x @ torch.ones(x.shape[1], 2, dtype=x.dtype))
    same(x.to_sparse().to_sparse(layout=layout, blocksize=block), x)
    again = torch.sparse_compressed_tensor(*(
        (c.crow_indices(), c.col_indices()) if layout in (torch.sparse_csr, torch.sparse_bsr) else (c.ccol_indices(), c.row_indices())),
        c.values(), c.shape, layout=layout, check_invariants=True)
    same(again, x)


def test_sparse_gradients_of_lookups():
    table = torch.randn(6, 2, dtype=torch.float64)
    at = torch.randint(0, 6, (number(0, 4), number(1, 3)))
    grads = []
    for sparse in (True, False):
        w = table.clone().requires_grad_()
        nn = torch.nn.functional
        (nn.embedding(at, w, padding_idx=2, sparse=sparse).sin().sum() * 2).backward()
        nn.embedding_bag(at, w, mode="mean", sparse=sparse).cos().sum().backward()
        grads.append(w.grad)
    assert grads[0].is_sparse
    same(grads[0], grads[1])
