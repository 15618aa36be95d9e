"""torch.fx.node: one step of a graph, and maps over the arguments of steps."""

import builtins
import inspect
import operator
import types

from .immutable_collections import immutable_dict, immutable_list

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

BaseArgumentTypes = (str, int, float, bool, complex, type(None))
Target = object  # of calls: a function, or the name of a method, module or attribute
Argument = object

_OPERATIONS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_SIDE_EFFECTS = set()


def has_side_effect(fn):
    """Mark a function as one whose calls stay when their results are unused. Source: PyTorch, torch.fx.node.has_side_effect."""
    _SIDE_EFFECTS.add(fn)
    return fn


def map_aggregate(a, fn):
    """`fn` on every leaf of nested tuples, lists, dicts and slices. Source: PyTorch, torch.fx.node.map_aggregate."""
    if isinstance(a, tuple):
        made = [map_aggregate(x, fn) for x in a]
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a, fn):
    """`fn` on every Node among the leaves. Source: PyTorch, torch.fx.node.map_arg."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def find_module_of_method(method):
    """The name of the module through which a function or a method of a compiled class is reached."""
    name = method.__name__
    for candidate in ("operator", "math", "builtins"):
        import importlib

        if getattr(importlib.import_module(candidate), name, None) is method:
            return candidate
    raise RuntimeError(f"cannot find module for {method}")


def qualified_name(func):
    """How generated code and printed graphs name a function: `operator.add`, `torch.nn.functional.relu`."""
    if getattr(builtins, getattr(func, "__name__", ""), None) is func:
        return f"builtins.{func.__name__}"
    name = getattr(func, "__qualname__", None) or func.__name__
    if isinstance(func, types.MethodDescriptorType):
        return f"{func.__objclass__.__module__}.{func.__objclass__.__name__}.{func.__name__}"
    if "<locals>" in name or "<lambda>" in name:
        name = func.__name__
    module = getattr(func, "__module__", None) or find_module_of_method(func)
    if module == "_operator":
        module = "operator"
    if module == "torch" and "." in name:
        return f"torch.{name}"
    return f"{module}.{name}"


class Node:
    """One step: `op` is placeholder, get_attr, call_function, call_module, call_method or output; `target` what is called or the
    name;
    `args`, `kwargs` may contain other nodes; `users` are the nodes that use it; `meta` is anybody's. Source: PyTorch,
    torch.fx.Node."""

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _OPERATIONS:
            raise AssertionError(f"unknown op {op}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a "
                                 f"Callable is expected")
        elif not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is "
                             f"expected")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._input_nodes, self.users = {}, {}
        self._args, self._kwargs = (), {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn = None
        self.meta = {}
        self._set(args, kwargs)

    def _set(self, args, kwargs):
        """New arguments; the nodes in them learn of their user."""
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._input_nodes = {}
        self._args = map_aggregate(tuple(args), lambda x: x)
        self._kwargs = map_aggregate(dict(kwargs), lambda x: x)

        def note(node):
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        map_arg((self._args, self._kwargs), note)

    @property
    def args(self):
        return self._args

    @args.setter
    def args(self, args):
        self._set(args, self._kwargs)

    @property
    def kwargs(self):
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs):
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self):
        return list(self._input_nodes)

    @property
    def next(self):
        return self._next

    @property
    def prev(self):
        return self._prev

    @property
    def stack_trace(self):
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    def prepend(self, x):
        """Move `x` to just before this node. Source: PyTorch, Node.prepend."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x):
        """Move `x` to just after this node. Source: PyTorch, Node.append."""
        self._next.prepend(x)

    def _remove_from_list(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other):
        return self._position() < other._position()

    def __gt__(self, other):
        return self._position() > other._position()

    def _position(self):
        return next(i for i, node in enumerate(self.graph.nodes) if node is self)

    def update_arg(self, idx, arg):
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        args = list(self._args)
        args.insert(idx, arg)
        self.args = tuple(args)

    def update_kwarg(self, key, arg):
        self.kwargs = {**self._kwargs, key: arg}

    def replace_all_uses_with(self, replace_with, delete_user_cb=None, *, propagate_meta=False):
        """Put another node in the place of this one wherever it is used; gives the nodes changed. Source: PyTorch,
        Node.replace_all_uses_with."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with "
                                     "already has .meta "
                                     "keys")
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input, new_input):
        """`new_input` for `old_input` in the arguments. Source: PyTorch, Node.replace_input_with."""

        def swap(node):
            return new_input if node is old_input else node

        self._set(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def is_impure(self, impure_random=True):
        """Whether the step must stay when its result is unused. Source: PyTorch, Node.is_impure."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _SIDE_EFFECTS or self.target in (operator.setitem, setattr) or (
                getattr(self.target, "__name__", "") in ("_assert", "_assert_async"))
        if self.op == "call_method":
            return False
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return getattr(owner.get_submodule(self.target), "_is_impure", False)
        return False

    def normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """(args, kwargs) bound by the signature of what is called, None where it has none. Source: PyTorch,
        Node.normalized_arguments."""
        if self.op == "call_function":
            called = self.target
        elif self.op == "call_module":
            called = root.get_submodule(self.target).forward
        else:
            return None
        try:
            bound = inspect.signature(called).bind(*self.args, **self.kwargs)
        except (TypeError, ValueError):
            return None
        bound.apply_defaults()
        if normalize_to_only_use_kwargs:
            return (), dict(bound.arguments)
        return bound.args, bound.kwargs

    def _pretty_print_target(self, target):
        return target if isinstance(target, str) else qualified_name(target)

    def format_node(self, placeholder_names=None, maybe_return_typename=None, *, include_tensor_metadata=False):
        """The line of this node in a printed graph. Source: PyTorch, Node.format_node."""
        kind = f": {type_name(self.type)} " if self.type else ": "
        uses = f"[num_users={len(self.users)}]"
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            if placeholder_names is not None:
                placeholder_names.append(self.target + (f" : {type_name(self.type)}" if self.type else ""))
                return None
            return f"%{self.name} {kind}{uses} = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} {kind}{uses} = {self.op}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        return (f"%{self.name} {kind}{uses} = {self.op}[target={self._pretty_print_target(self.target)}]("
                f"args = {_formatted(self.args)}, kwargs = {_formatted(self.kwargs)})")

    def __repr__(self):
        return self._repr_fn(self) if self._repr_fn else self.name


def _formatted(arg):
    """Arguments as a printed graph shows them: nodes with %, texts without quotes."""
    if isinstance(arg, Node):
        return "%" + str(arg)
    if isinstance(arg, list):
        return "[" + ", ".join([_formatted(a) for a in arg]) + "]"
    if isinstance(arg, tuple):
        inside = ", ".join([_formatted(a) for a in arg])
        return f"({inside},)" if len(arg) == 1 else f"({inside})"
    if isinstance(arg, dict):
        return "{" + ", ".join([f"{k}: {_formatted(v)}" for k, v in arg.items()]) + "}"
    return str(arg)


def type_name(kind):
    """An annotation as code: `float`, `torch.Tensor`, `typing.List[int]`."""
    if isinstance(kind, type) and not hasattr(kind, "__args__"):
        return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}".replace(
            "torch._tensor.Tensor", "torch.Tensor")
    return str(kind)
