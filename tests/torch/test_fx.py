"""torch.fx: traced graphs, their code and text as PyTorch 2.13 gives them; interpreters, transformers, pattern replacement."""

import copy
import operator
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn


def half(x):
    return x / 2


fx.wrap("half")
fx.wrap("len")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 5)
        self.p = nn.Parameter(torch.rand(3, 4))
        self.seq = nn.Sequential(nn.ReLU(), nn.Linear(5, 2))
        self.register_buffer("b", torch.ones(2))

    def forward(self, x, scale: float = 2.0, *, flag=None):
        y = self.lin(x + self.p).clamp(min=0.0, max=1.0)
        a, b = y.chunk(2, dim=-1)
        z = F.relu(torch.cat([a, a], -1), inplace=False)
        w = self.seq(y) + torch.tensor([1.0, 2.0])
        w += self.b
        q = w[..., 0:1] * scale
        r = -q.reshape(x.size(0), -1) ** 2
        return {"t": 1 - r, "z": (z, [w, b]), "u": x.shape[0] > 1, "sl": y[1:, None]}


GRAPH = """graph():
    %x : [num_users=3] = placeholder[target=x]
    %scale : float [num_users=1] = placeholder[target=scale](default=2.0)
    %flag : [num_users=0] = placeholder[target=flag](default=None)
    %p : [num_users=1] = get_attr[target=p]
    %add : [num_users=1] = call_function[target=operator.add](args = (%x, %p), kwargs = {})
    %lin : [num_users=1] = call_module[target=lin](args = (%add,), kwargs = {})
    %clamp : [num_users=3] = call_method[target=clamp](args = (%lin,), kwargs = {min: 0.0, max: 1.0})
    %chunk : [num_users=2] = call_method[target=chunk](args = (%clamp, 2), kwargs = {dim: -1})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%chunk, 0), kwargs = {})
    %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%chunk, 1), kwargs = {})
    %cat : [num_users=1] = call_function[target=torch.cat](args = ([%getitem, %getitem], -1), kwargs = {})
    %relu : [num_users=1] = call_function[target=torch.nn.functional.relu](args = (%cat,), kwargs = {inplace: False})
    %seq_0 : [num_users=1] = call_module[target=seq.0](args = (%clamp,), kwargs = {})
    %seq_1 : [num_users=1] = call_module[target=seq.1](args = (%seq_0,), kwargs = {})"""

CODE = """


def forward(self, x, scale : float = 2.0, flag = None):
    p = self.p
    add = x + p;  p = None
    lin = self.lin(add);  add = None
    clamp = lin.clamp(min = 0.0, max = 1.0);  lin = None
    chunk = clamp.chunk(2, dim = -1)
    getitem = chunk[0]
    getitem_1 = chunk[1];  chunk = None
    cat = torch.cat([getitem, getitem], -1);  getitem = None
    relu = torch.nn.functional.relu(cat, inplace = False);  cat = None
    seq_0 = getattr(self.seq, "0")(clamp)
    seq_1 = getattr(self.seq, "1")(seq_0);  seq_0 = None
    _tensor_constant0 = self._tensor_constant0
    add_1 = seq_1 + _tensor_constant0;  seq_1 = _tensor_constant0 = None
    b = self.b
    add_2 = add_1 + b;  add_1 = b = None
    getitem_2 = add_2[(Ellipsis, slice(0, 1, None))]
    mul = getitem_2 * scale;  getitem_2 = scale = None
    size = x.size(0)
    reshape = mul.reshape(size, -1);  mul = size = None
    pow_1 = reshape ** 2;  reshape = None
    neg = -pow_1;  pow_1 = None
    sub = 1 - neg;  neg = None
    getattr_1 = x.shape;  x = None
    getitem_3 = getattr_1[0];  getattr_1 = None
    gt = getitem_3 > 1;  getitem_3 = None
    getitem_4 = clamp[(slice(1, None, None), None)];  clamp = None
    return {'t': sub, 'z': (relu, [add_2, getitem_1]), 'u': gt, 'sl': getitem_4}
    """


def same(a, b):
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_graph_code_and_results_of_a_module():
    model = Model()
    traced = fx.symbolic_trace(model)
    assert str(traced.graph).startswith(GRAPH)
    assert traced.code == CODE
    x = torch.rand(3, 4)
    assert same(model(x, 3.0), traced(x, 3.0))
    traced.graph.lint()
    assert str(traced).endswith("# To see more debug info, please use `graph_module.print_readable()`")
    assert str(traced).startswith("Model(\n  (lin): Linear(in_features=4, out_features=5, bias=True)\n  (seq): Module(")


def test_traced_modules_share_and_train_parameters():
    model = Model()
    traced = fx.symbolic_trace(model)
    traced(torch.rand(3, 4))["t"].sum().backward()
    assert model.lin.weight is traced.lin.weight and model.lin.weight.grad is not None


def test_copies_and_pickles():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    x = torch.rand(4, 2)
    for other in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert torch.equal(other(x), traced(x)) and other is not traced
        assert other.code == traced.code and type(other).__name__ == "Sequential"
    assert fx.symbolic_trace(traced).code == traced.code


@pytest.mark.parametrize("function, error, text", [
    (lambda x: x if x.sum() > 0 else -x, fx.proxy.TraceError, "cannot be used as inputs to control flow"),
    (lambda x: [i for i in x], fx.proxy.TraceError, "Proxy object cannot be iterated"),
    (lambda x: float(x), TypeError, "not 'Proxy'"),
])
def test_what_depends_on_data_is_an_error(function, error, text):
    with pytest.raises(error, match=text):
        fx.symbolic_trace(function)


def test_wrapped_functions_are_one_step():
    traced = fx.symbolic_trace(lambda x: half(x) + len(x))
    targets = [n.target for n in traced.graph.nodes if n.op == "call_function"]
    assert targets == [half, len, operator.add]
    assert traced(torch.ones(3)).tolist() == [3.5] * 3


def test_star_arguments_and_concrete_ones():
    traced = fx.symbolic_trace(lambda *a, **k: a[0] + k["z"])
    assert traced.code.splitlines()[3:6] == ["def forward(self, *a, **k):", "    _a = a", "    _k = k"]
    assert traced(torch.ones(1), z=2).item() == 3
    traced = fx.symbolic_trace(lambda x, y=None: x if y is None else x + y, concrete_args={"y": None})
    assert torch.equal(traced(torch.ones(2), None), torch.ones(2))
    with pytest.raises(AssertionError, match="has been specialized"):
        traced(torch.ones(2), 1)


def test_composites_of_the_library_are_one_step():
    traced = fx.symbolic_trace(lambda x: F.normalize(F.interpolate(x, scale_factor=2)).softmax(-1))
    assert [n.name for n in traced.graph.nodes] == ["x", "interpolate", "normalize", "softmax", "output"]


def test_building_and_changing_a_graph():
    graph = fx.Graph()
    x = graph.placeholder("x", float, 3.0)
    y = graph.call_function(torch.add, (x, 1))
    graph.output(y)
    assert str(graph) == ("graph():\n    %x : float [num_users=1] = placeholder[target=x](default=3.0)\n"
                          "    %add : [num_users=1] = call_function[target=torch.add](args = (%x, 1), kwargs = {})\n    return add")
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(x)
    module = fx.GraphModule({}, graph)
    with graph.inserting_after(y):
        z = graph.call_method("neg", (y,))
        y.replace_all_uses_with(z, delete_user_cb=lambda user: user is not z)
        dead = graph.call_function(torch.exp, (y,))
    module.recompile()
    assert module(torch.tensor(1.0)).item() == -2
    assert graph.eliminate_dead_code() and dead not in list(graph.nodes)
    assert [n.name for n in reversed(graph.nodes)] == ["output", "neg", "add", "x"]
    with pytest.raises(NotImplementedError, match="does not support mutation"):
        graph.call_function(torch.cat, ([x, y],)).args[0].append(x)


def test_interpreter_transformer_and_shapes():
    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.neg if target is torch.sigmoid else target, args, kwargs)

    traced = fx.symbolic_trace(lambda x: torch.sigmoid(x).tanh())
    assert torch.equal(fx.Interpreter(traced).run(torch.zeros(2)), traced(torch.zeros(2)))
    swapped = Swap(traced).transform()
    assert torch.equal(swapped(torch.ones(2)), (-torch.ones(2)).tanh())
    from torch.fx.passes.shape_prop import ShapeProp

    traced = fx.symbolic_trace(nn.Linear(3, 5))
    ShapeProp(traced).propagate(torch.ones(2, 3))
    assert [n.meta["tensor_meta"].shape for n in traced.graph.nodes][-1] == torch.Size([2, 5])
    with pytest.raises(RuntimeError, match="While executing %"):
        fx.Interpreter(fx.symbolic_trace(lambda x: x @ x)).run(torch.ones(2, 3))


def test_replace_pattern():
    class Net(nn.Module):
        def forward(self, x, w):
            a = torch.cat([x, w]).sum()
            return torch.stack([torch.cat([w, x]).sum(), a]).max()

    traced = fx.symbolic_trace(Net())
    found = fx.replace_pattern(traced, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: a.sum() + b.sum())
    assert len(found) == 2 and "cat" not in traced.code
    x, w = torch.rand(3), torch.rand(4)
    assert torch.allclose(traced(x, w), Net()(x, w))


def test_modules_that_are_leaves_of_the_tracer():
    class Block(nn.Module):
        def forward(self, x):
            return x + 1

    class Leafy(fx.Tracer):
        def is_leaf_module(self, m, name):
            return isinstance(m, Block) or super().is_leaf_module(m, name)

    model = nn.Sequential(Block(), nn.ReLU())
    assert [n.op for n in Leafy().trace(model).nodes] == ["placeholder", "call_module", "call_module", "output"]
    assert [n.op for n in fx.Tracer().trace(model).nodes] == ["placeholder", "call_function", "call_module", "output"]
