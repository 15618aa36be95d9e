"""torch.fx.proxy: values that record what is done with them."""

import dis
import inspect
import operator

from .graph import Graph
from .node import Node, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]

_MAGIC = ("add and_ eq floordiv ge getitem gt invert le lshift lt matmul mod mul ne neg or_ pos pow rshift sub truediv xor "
          "iadd iand ifloordiv ilshift imod imul imatmul ior ipow irshift isub itruediv ixor").split()
_REFLECTED = "add and_ floordiv lshift matmul mod mul or_ pow rshift sub truediv xor".split()


class TraceError(ValueError):
    """The program asks a value for something that only real data can tell. Source: PyTorch, torch.fx.proxy.TraceError."""


class Scope:
    """In which module a node was made. Source: PyTorch, torch.fx.proxy.Scope."""

    def __init__(self, module_path, module_type):
        self.module_path, self.module_type = module_path, module_type


class TracerBase:
    """Makes nodes, and proxies for them. Source: PyTorch, torch.fx.proxy.TracerBase."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope = None
    module_stack = None

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """A node in the graph. Source: PyTorch, Tracer.create_node."""
        made = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            made.meta["nn_module_stack"] = dict(self.module_stack)
        return made

    def proxy(self, node):
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """A node for an operation on values that may contain proxies, and the proxy of its result. Source: PyTorch,
        Tracer.create_proxy."""
        given, named = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(given, tuple) or not isinstance(named, dict):
            raise AssertionError("arguments of a node are a tuple and a dict")
        node = self.create_node(kind, target, given, named, name, type_expr)
        made = proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)
        if self.record_stack_traces:
            import traceback

            node.stack_trace = "".join(traceback.StackSummary.extract(
                [(f, f.f_lineno) for f in _user_frames(inspect.currentframe())]).format())
        return made

    def create_arg(self, a):
        """A value as an argument of a node: nodes for proxies, in every kind of container. Source: PyTorch, Tracer.create_arg."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            made = [self.create_arg(x) for x in a]
            return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if a is None or a is ... or isinstance(a, (str, int, float, bool, complex, Node)) or callable(a) or _is_constant(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, k):
        found = []
        map_aggregate(self.create_arg(k), lambda x: found.append(x) if isinstance(x, Node) else x)
        if found:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {k}")
        return k

    def to_bool(self, obj):
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """Iteration over a proxy: allowed where the code that asks unpacks into a known number of names."""
        frame = _user_frames(inspect.currentframe())[-1]
        instructions = list(dis.get_instructions(frame.f_code))
        at = next((i for i, one in enumerate(instructions) if one.offset == frame.f_lasti), None)
        if at is not None and instructions[at].opname == "UNPACK_SEQUENCE":
            return (obj[i] for i in range(instructions[at].argval))
        raise TraceError("Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args "
                         "or **kwargs "
                         "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types "
                         "of control "
                         "flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors")

    def keys(self, obj):
        return Attribute(obj, "keys")()


def _user_frames(frame):
    """The stack from the program's start to the first frame outside this package."""
    frames = []
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if frames or not name.startswith(__name__.rpartition(".")[0]):
            frames.append(frame)
        frame = frame.f_back
    return frames[::-1]


def _is_constant(a):
    from .. import Generator, Size, device, dtype, layout, memory_format

    return isinstance(a, (dtype, device, layout, memory_format, Size, Generator))


class GraphAppendingTracer(TracerBase):
    """Appends to a graph. Source: PyTorch, torch.fx.proxy.GraphAppendingTracer."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph


class Proxy:
    """Stands for a value: every operation on it becomes a node. Source: PyTorch, torch.fx.Proxy."""

    def __init__(self, node, tracer=None):
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, name):
        if name in ("tracer", "node", "__fx_create_arg__", "__array__", "__array_interface__", "__array_struct__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__ = state

    def __deepcopy__(self, memo):
        import copy

        made = type(self).__new__(type(self))
        made.__dict__ = {k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()}
        return made

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", abs, (self,), {})

    def __bool__(self):
        if self.tracer.trace_asserts:
            frame = _user_frames(inspect.currentframe())[-1]
            following = [i for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti][:2]
            if len(following) == 2 and following[0].opname.startswith("POP_JUMP") and following[1].opname == "LOAD_ASSERTION_ERROR":
                from .. import _assert

                self.tracer.create_proxy("call_function", _assert, (self, "assertion error"), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self):
        return self.tracer.keys(self)

    def __len__(self):
        raise RuntimeError("'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please "
                           "call "
                           "torch.fx.wrap('len') at module scope")

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        """Operators of torch that get a proxy come here."""
        args, kwargs = args or (), kwargs or {}
        tracers = {}
        map_aggregate((tuple(args), dict(kwargs)), lambda a: tracers.setdefault(a.tracer) if isinstance(a, Proxy) else a)
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}")
        tracer = next(iter(tracers))
        if getattr(orig_method, "__qualname__", "").startswith("Tensor."):
            return tracer.create_proxy("call_method", orig_method.__name__, tuple(args), dict(kwargs))
        return tracer.create_proxy("call_function", orig_method, tuple(args), dict(kwargs), name=_short_name(tracer, orig_method))


def _short_name(tracer, function):
    graph = getattr(tracer, "graph", None)
    return graph._target_to_str(function.__name__) if graph is not None else None


class Attribute(Proxy):
    """An attribute of a proxy: a node only where it is used as a value, as a method it is called. Source: PyTorch,
    torch.fx.proxy.Attribute."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The proxy of a parameter: its shape and the like are the parameter's own. Source: PyTorch, torch.fx.proxy.ParameterProxy."""

    def __init__(self, tracer, node, name, param):
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    def size(self, *args):
        return self.param.size(*args)

    def dim(self):
        return self.param.dim()

    @property
    def ndim(self):
        return self.param.ndim

    def numel(self):
        return self.param.numel()

    def nelement(self):
        return self.param.nelement()


def _define_magic():
    def forward(name):
        function = getattr(operator, name)

        def magic(self, *args, **kwargs):
            return self.tracer.create_proxy("call_function", function, (self, *args), kwargs)

        return magic

    def reflected(name):
        function = getattr(operator, name)

        def magic(self, other):
            return self.tracer.create_proxy("call_function", function, (other, self), {})

        return magic

    for name in _MAGIC:
        if not name.startswith("i") or name == "invert":
            setattr(Proxy, f"__{name.strip('_')}__", forward(name))
    for name in _REFLECTED:
        setattr(Proxy, f"__r{name.strip('_')}__", reflected(name))


_define_magic()
