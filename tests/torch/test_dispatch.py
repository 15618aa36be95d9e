"""`__torch_dispatch__`: what modes and subclasses see of operators, and the gradients of tensors that only their class knows.

The logs are those of PyTorch.
"""

import copy
import gc

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_map


class Log(TorchDispatchMode):
    """Writes down the name and the other arguments of every call."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(f"{func}{[tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args]}{kwargs or ''}")
        return func(*args, **(kwargs or {}))


class Replaying(TorchDispatchMode):
    """Gives the results of `target` that were put by, in place of calling it."""

    def __init__(self, target, results):
        super().__init__()
        self.target, self.results = target, results

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.results.pop(0) if func is self.target else func(*args, **(kwargs or {}))


def test_a_result_of_the_mode_s_own_has_the_operator_s_gradient():
    x, w = torch.tensor([[1.0, 2.0]], requires_grad=True), torch.tensor([[3.0], [-1.0]], requires_grad=True)
    with Replaying(torch.ops.aten.mm.default, [torch.tensor([[7.0]])]):
        y = torch.sin(x) @ w
    assert y.item() == 7.0 and y.grad_fn.name() == "MmBackward0"
    y.sum().backward()
    assert torch.allclose(x.grad, x.detach().cos() * w.detach().T) and torch.allclose(w.grad, x.detach().sin().T)
    with Replaying(torch.ops.aten.rand_like.default, [torch.ones(1, 2)]):
        assert not torch.rand_like(x).requires_grad
    with Replaying(torch.ops.aten.native_dropout.default, [(torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool))]):
        with pytest.raises(NotImplementedError, match="whose gradient depends on what it draws"):
            torch.native_dropout(x, 0.5, True)
    with torch.no_grad(), Replaying(torch.ops.aten.mm.default, [torch.tensor([[7.0]])]):
        assert not (x @ w).requires_grad


class Wrapped(torch.Tensor):
    """A tensor that has another inside, and does to it whatever is done to itself."""

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, device=inner.device,
                                                   requires_grad=requires_grad)
        made.inner = inner.detach()
        return made

    def __repr__(self):
        return super().__repr__(tensor_contents=f"{self.inner}")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def inside(x):
            return x.inner if isinstance(x, cls) else x

        made = func(*tree_map(inside, args), **tree_map(inside, kwargs or {}))
        return return_and_correct_aliasing(func, args, kwargs or {}, tree_map(
            lambda x: cls(x) if isinstance(x, torch.Tensor) else x, made))


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


X, Y, W, B = torch.ones(2, 3), torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)
I, IMG, CW = torch.tensor([0, 1]), torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3)
LOGS = [
    (lambda: X + 2, ["aten.add.Tensor[(2, 3), 2]"]),
    (lambda: 1 - X, ["aten.rsub.Scalar[(2, 3), 1]"]),
    (lambda: 2 / X, ["aten.reciprocal.default[(2, 3)]", "aten.mul.Tensor[(2, 3), 2]"]),
    (lambda: X ** 2, ["aten.pow.Tensor_Scalar[(2, 3), 2]"]),
    (lambda: 2 ** X, ["aten.pow.Scalar[2, (2, 3)]"]),
    (lambda: X > 0, ["aten.gt.Scalar[(2, 3), 0]"]),
    (lambda: X.add(Y, alpha=2), ["aten.add.Tensor[(2, 3), (2, 3)]{'alpha': 2}"]),
    (lambda: X.clone().mul_(Y), ["aten.clone.default[(2, 3)]", "aten.mul_.Tensor[(2, 3), (2, 3)]"]),
    (lambda: X.sum(), ["aten.sum.default[(2, 3)]"]),
    (lambda: X.sum(dim=1, keepdim=True), ["aten.sum.dim_IntList[(2, 3), [1], True]"]),
    (lambda: X.std(), ["aten.std.correction[(2, 3)]"]),
    (lambda: X.var(0), ["aten.var.correction[(2, 3), [0]]{'correction': 1}"]),
    (lambda: X.max(1), ["aten.max.dim[(2, 3), 1]"]),
    (lambda: X.reshape(6), ["aten.view.default[(2, 3), [6]]"]),
    (lambda: X[:, 1:], ["aten.slice.Tensor[(2, 3), 1, 1, 9223372036854775807]"]),
    (lambda: X[..., None], ["aten.unsqueeze.default[(2, 3), 2]"]),
    (lambda: X[:, 1], ["aten.select.int[(2, 3), 1, 1]"]),
    (lambda: X.t().contiguous(), ["aten.t.default[(2, 3)]", "aten.clone.default[(3, 2)]{'memory_format': torch.contiguous_format}"]),
    (lambda: X.double(), ["aten._to_copy.default[(2, 3)]{'dtype': torch.float64}"]),
    (lambda: X.float(), []),
    (lambda: X.sum().item(), ["aten.sum.default[(2, 3)]", "aten._local_scalar_dense.default[()]"]),
    (lambda: torch.matmul(torch.ones(2, 2, 3), W.t()), [
        "aten.ones.default[[2, 2, 3]]{'device': device(type='cpu'), 'pin_memory': False}", "aten.t.default[(4, 3)]",
        "aten.view.default[(2, 2, 3), [4, 3]]", "aten.mm.default[(4, 3), (3, 4)]", "aten._unsafe_view.default[(4, 4), [2, 2, 4]]"]),
    (lambda: F.linear(X, W, B), ["aten.t.default[(4, 3)]", "aten.addmm.default[(4,), (2, 3), (3, 4)]"]),
    (lambda: F.softmax(X, -1), ["aten._softmax.default[(2, 3), -1, False]"]),
    (lambda: F.cross_entropy(X, I), ["aten._log_softmax.default[(2, 3), 1, False]",
                                     "aten.nll_loss_forward.default[(2, 3), (2,), None, 1, -100]"]),
    (lambda: F.conv2d(IMG, CW), ["aten.convolution.default[(1, 3, 8, 8), (4, 3, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1]"]),
    (lambda: F.max_pool2d(IMG, 2), ["aten.max_pool2d_with_indices.default[(1, 3, 8, 8), [2, 2]]"]),
    (lambda: F.avg_pool2d(IMG, 2), ["aten.avg_pool2d.default[(1, 3, 8, 8), [2, 2]]"]),
    (lambda: F.adaptive_avg_pool2d(IMG, 1), ["aten.mean.dim[(1, 3, 8, 8), [-1, -2], True]"]),
    (lambda: F.layer_norm(X, (3,)), ["aten.native_layer_norm.default[(2, 3), [3], None, None, 1e-05]"]),
    (lambda: F.embedding(I, W), ["aten.embedding.default[(4, 3), (2,)]"]),
    (lambda: F.dropout(X, 0.5), ["aten.empty_like.default[(2, 3)]", "aten.bernoulli_.float[(2, 3)]", "aten.div_.Scalar[(2, 3), 0.5]",
                                 "aten.mul.Tensor[(2, 3), (2, 3)]"]),
    (lambda: X.chunk(3, 1), ["aten.split.Tensor[(2, 3), 1, 1]"]),
    (lambda: X.norm(dim=1), ["aten.linalg_vector_norm.default[(2, 3), 2, [1]]"]),
    (lambda: F.pad(X, (1, 1)), ["aten.constant_pad_nd.default[(2, 3), [1, 1], 0.0]"]),
    (lambda: F.interpolate(IMG, scale_factor=2), ["aten.upsample_nearest2d.default[(1, 3, 8, 8), [16, 16], 2.0, 2.0]"]),
    (lambda: F.l1_loss(X, Y), ["aten.sub.Tensor[(2, 3), (2, 3)]", "aten.abs.default[(2, 3)]", "aten.mean.default[(2, 3)]"]),
    (lambda: X.clone().__setitem__(0, Y[0]), ["aten.clone.default[(2, 3)]", "aten.select.int[(2, 3), 0, 0]",
                                              "aten.select.int[(2, 3), 0, 0]", "aten.copy_.default[(3,), (3,)]"]),
    (lambda: torch.zeros_like(X).normal_(), ["aten.zeros_like.default[(2, 3)]{'pin_memory': False}", "aten.normal_.default[(2, 3)]"]),
    (lambda: F.rms_norm(X, (3,)), ["aten.pow.Tensor_Scalar[(2, 3), 2]", "aten.mean.dim[(2, 3), [1], True]",
                                   "aten.add_.Scalar[(2, 1), 1.1920928955078125e-07]", "aten.rsqrt.default[(2, 1)]",
                                   "aten.mul.Tensor[(2, 3), (2, 1)]"]),
]


@pytest.mark.parametrize(("run", "calls"), LOGS, ids=[c[0].partition("[")[0] if c else "nothing" for _, c in LOGS])
def test_a_mode_sees_what_pytorchs_sees(run, calls):
    expected = run()
    torch.manual_seed(0)
    with Log() as log:
        run()
    torch.manual_seed(0)
    with Log():
        made = run()
    assert log.calls == calls
    if isinstance(made, torch.Tensor) and "dropout" not in str(calls) and "normal_" not in str(calls) and "bernoulli" not in str(calls):
        torch.testing.assert_close(made, expected)


def test_modes_nest_and_are_left_while_they_answer():
    seen = []

    class Named(TorchDispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(self.name)
            return func(*args, **(kwargs or {}))

    with Named("outer"), Named("inner"):
        X + 1
    assert seen == ["inner", "outer"]
    X + 1
    assert len(seen) == 2


def test_a_mode_sees_backward():
    x = torch.ones(2, 3, requires_grad=True)
    with Log() as log:
        F.linear(x, W, B).relu().sum().backward()
    names = [c.partition("[")[0] for c in log.calls]
    assert names[:5] == ["aten.t.default", "aten.addmm.default", "aten.relu.default", "aten.sum.default", "aten.ones_like.default"]
    assert "aten.mm.default" in names[5:] and "aten.expand.default" in names[5:]
    assert torch.equal(x.grad, torch.full((2, 3), 4.0))


def test_a_mode_leaves_gradients_as_they_are():
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                              torch.nn.Linear(36, 5))
    x, y = torch.randn(2, 3, 8, 8), torch.tensor([0, 1])
    F.cross_entropy(net(x), y).backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    with Log():
        F.cross_entropy(net(x), y).backward()
    for p, g in zip(net.parameters(), expected):
        torch.testing.assert_close(p.grad, g, rtol=1e-4, atol=1e-5)


def test_overloads():
    func = torch.ops.aten.add.Tensor
    assert str(func) == "aten.add.Tensor" and repr(func) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert func.name() == "aten::add.Tensor" and func.__name__ == "add.Tensor" and func.overloadpacket is torch.ops.aten.add
    assert str(func._schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert torch.ops.aten.add_.Tensor._schema.is_mutable and not func._schema.is_mutable
    assert torch.equal(func(X, Y, alpha=2), X + 2 * Y)
    assert torch.equal(torch.ops.aten._softmax.default(X, 1, False), X.softmax(1))
    assert isinstance(func, torch._ops.OpOverload) and isinstance(torch.ops.aten.add, torch._ops.OpOverloadPacket)


# ------------------------------------------------------------------------------------------------ wrapper subclasses
def wrapped(*size, requires_grad=True):
    return Wrapped(torch.randn(*size), requires_grad=requires_grad)


def test_a_wrapper_prints_and_computes():
    a = Wrapped(torch.tensor([1.0, 2.0, 3.0]), requires_grad=True)
    assert repr(a) == "Wrapped(tensor([1., 2., 3.]), requires_grad=True)"
    b = a * 2 + a
    assert repr(b) == "Wrapped(tensor([3., 6., 9.]), grad_fn=<AddBackward0>)"
    b.sum().backward()
    assert repr(a.grad) == "Wrapped(tensor([3., 3., 3.]))"


FUNCTIONS = {
    "linear": (lambda x, w: F.linear(x, w).relu().sum(), [(2, 3), (4, 3)]),
    "softmax": (lambda x: (x.softmax(-1).log() * x).mean(), [(2, 3)]),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.tensor([0, 2])), [(2, 3)]),
    "views": (lambda x: (x.t().reshape(-1)[1:4].exp() * x[0, :3]).sum(), [(2, 3)]),
    "broadcast": (lambda x, b: ((x - b) ** 3 / 2).tanh().sum(), [(2, 3), (3,)]),
    "joined": (lambda x, y: torch.cat([x, y]).sin().prod(), [(2, 2), (1, 2)]),
    "indexed": (lambda x: x[torch.tensor([0, 0, 1])].pow(2).sum(), [(2, 3)]),
    "conv": (lambda x, w: F.conv2d(x, w).square().mean(), [(1, 2, 5, 5), (3, 2, 3, 3)]),
    "max_pool": (lambda x: F.max_pool2d(x, 2).exp().sum(), [(1, 2, 4, 4)]),
    "embedding": (lambda w: F.embedding(torch.tensor([0, 2, 2]), w).square().sum(), [(4, 3)]),
    "batch_norm": (lambda x, w: (F.batch_norm(x, None, None, w, training=True) ** 3).sum(), [(4, 2, 3, 3), (2,)]),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v).square().sum(), [(1, 2, 3, 4)] * 3),
    "matmul": (lambda x, y: (x @ y).norm(), [(2, 2, 3), (3, 4)]),
    "where": (lambda x: torch.where(x > 0, x * 2, x.exp()).sum(), [(4,)]),
    "var": (lambda x: x.var(0).sum() + x.std(), [(5, 2)]),
    "layer_norm": (lambda x, w: (F.layer_norm(x, (3,), w) * x).sum(), [(2, 3), (3,)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_plain_tensors(name):
    function, sizes = FUNCTIONS[name]
    plain = [torch.randn(*s, requires_grad=True) for s in sizes]
    inside = [Wrapped(p, requires_grad=True) for p in plain]
    function(*plain).backward()
    function(*inside).backward()
    for p, q in zip(plain, inside):
        assert type(q.grad) is Wrapped
        torch.testing.assert_close(q.grad.inner, p.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "broadcast", "views", "matmul", "conv"])
def test_gradients_of_gradients(name):
    function, sizes = FUNCTIONS[name]
    plain = [torch.randn(*s, requires_grad=True) for s in sizes]
    inside = [Wrapped(p, requires_grad=True) for p in plain]

    def second(inputs):
        first = torch.autograd.grad(function(*inputs), inputs, create_graph=True)
        return torch.autograd.grad(sum((g * g).sum() for g in first), inputs)

    for p, q in zip(second(plain), second(inside)):
        torch.testing.assert_close(q.inner if type(q) is Wrapped else q, p, rtol=1e-4, atol=1e-5)


def test_forward_mode():
    import torch.autograd.forward_ad as forward

    x = torch.tensor([1.0, 2.0, 3.0])
    with forward.dual_level():
        d = forward.make_dual(Wrapped(x), Wrapped(torch.ones(3)))
        found = forward.unpack_dual((d ** 3).sum() + (d * d.sin()).sum()).tangent
    assert found.inner.item() == pytest.approx(40.6299, abs=1e-3)


def test_writes_reach_the_tensor_inside():
    a = wrapped(3, requires_grad=False)
    before = a.inner.clone()
    result = a.add_(1)
    assert result is a and a._version == 1
    torch.testing.assert_close(a.inner, before + 1)


def test_a_training_step_over_wrapped_parameters():
    net = torch.nn.Linear(3, 2)
    plain = copy.deepcopy(net)
    net.weight = torch.nn.Parameter(Wrapped(net.weight))
    assert isinstance(net.weight, torch.nn.Parameter) and type(net.weight) is Wrapped
    for model in (net, plain):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(net.weight.inner, plain.weight.detach())
    twin = copy.deepcopy(net)
    assert type(twin.weight) is Wrapped and twin.weight is not net.weight


def test_wrappers_are_not_kept_alive():
    import weakref

    a = wrapped(3)
    ref = weakref.ref(a * 2)
    gc.collect()
    assert ref() is None


def test_refusals():
    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))
    a = wrapped(3)
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
        a.detach().numpy()

    class Declines(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    d = Declines(torch.ones(2))
    with pytest.raises(TypeError, match="all __torch_dispatch__ handlers returned NotImplemented"):
        d.exp()
    with pytest.raises(RuntimeError, match=r"requires that detach\(\) returns an instance of the same type"):
        class Unwraps(Wrapped):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {}))

        torch.nn.Parameter(Unwraps(torch.ones(2)))


def test_swapped_tensors_and_converted_modules():
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(3))
    b.note = 5
    torch.utils.swap_tensors(a, b)
    assert a.shape == (3,) and b.shape == (2,) and a.note == 5 and not hasattr(b, "note")
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        net = torch.nn.Linear(2, 2)
        weight = net.weight
        net.load_state_dict(torch.nn.Linear(2, 2).state_dict())
        net.double()
        assert net.weight is weight and weight.dtype is torch.float64
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def test_a_class_may_leave_an_operator_to_the_default():
    class Counts(torch.Tensor):
        calls = []

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs)

    made = torch.ones(2).as_subclass(Counts) + 1
    assert type(made) is torch.Tensor and torch.equal(made, torch.full((2,), 2.0)) and Counts.calls == ["aten.add.Tensor"]


def test_an_index_of_a_subclass_is_seen():
    x = torch.zeros(3)
    x[Wrapped(torch.tensor([0, 2]))] = 1.0
    assert x.tolist() == [1.0, 0.0, 1.0]
    assert type(torch.arange(3.0)[Wrapped(torch.tensor([0, 2]))]) is Wrapped


def test_pickles_keep_class_and_tensor_inside():
    import pickle

    a = wrapped(2, 3)
    b = pickle.loads(pickle.dumps(a))
    assert type(b) is Wrapped and b.requires_grad and torch.equal(b.inner, a.inner) and b.stride() == a.stride()


def test_registered_operators_are_seen():
    with torch.library._scoped_library("dispatch_test", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        with Log() as log:
            torch.ops.dispatch_test.twice(X)
        assert log.calls[0] == "dispatch_test.twice.default[(2, 3)]"
        assert type(torch.ops.dispatch_test.twice(wrapped(2))) is Wrapped


def test_wrapper_subclass_refuses_what_does_not_fit():
    class Plain(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(ValueError, match="Unknown sizes_strides_policy: foo; expected 'strides' or 'sizes'"):
        torch.Tensor._make_wrapper_subclass(Plain, (2,), dispatch_sizes_strides_policy="foo")
    with pytest.raises(RuntimeError, match="setting storage offset without stride not supported"):
        torch.Tensor._make_wrapper_subclass(Plain, (2,), storage_offset=1)
    assert torch.Tensor._make_wrapper_subclass(Plain, (2, 3), strides=(1, 2), storage_offset=1).storage_offset() == 1
