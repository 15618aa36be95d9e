"""torch.fx.graph: a program as a list of nodes, and the Python code it stands for."""

import builtins
import collections
import contextlib
import keyword
import math
import re
import types
from typing import NamedTuple

from .node import Node, map_arg, qualified_name, type_name

__all__ = ["CodeGen", "Graph", "PythonCode"]

_BINARY = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "lshift": "<<",
           "rshift": ">>",
           "and_": "&", "or_": "|", "xor": "^", "matmul": "@", "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
_UNARY = {"neg": "-", "invert": "~", "pos": "+"}
_INPLACE = {"iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**=",
            "ilshift": "<<=",
            "irshift": ">>=", "iand": "&=", "ior": "|=", "ixor": "^=", "imatmul": "@="}

#: Names that generated code gets beside those of functions, with what they stand for.
_BUILTINS = {"inf": math.inf, "nan": math.nan, "NoneType": type(None)}


class PythonCode(NamedTuple):
    """`src`: the text; `globals`: what its names stand for; `lines`: {line: node number}."""

    src: str
    globals: dict
    lines: object = None


class _Namespace:
    """Names given so far: asked for one, gives it or it with a number behind."""

    def __init__(self):
        self._of = {}
        self._used = set()
        self._counts = collections.defaultdict(int)

    def create_name(self, candidate, obj=None):
        if obj is not None and obj in self._of:
            return self._of[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = "_" + candidate
        numbered = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (numbered[1], int(numbered[2])) if numbered else (candidate, 0)
        if numbered:
            candidate = f"{base}_{number}"
        number = number or self._counts[base]
        while candidate in self._used or self._taken(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._counts[base] = number
        if obj is not None:
            self._of[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name, obj):
        self._of[obj] = name

    def _taken(self, name, obj):
        """Names that mean something else in Python or in generated code."""
        if keyword.iskeyword(name):
            return True
        if hasattr(builtins, name):
            return obj is not getattr(builtins, name)
        if name in _BUILTINS or name in ("torch", "device", "fx_pytree", "pytree"):
            return True
        return False


class _NodeList:
    """The nodes in order; forwards or reversed."""

    def __init__(self, graph, direction="_next"):
        self.graph, self.direction = graph, direction

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            following = getattr(node, self.direction)
            if not node._erased:
                yield node
            # a node erased while it was shown keeps its links; one moved has new ones
            node = following if node._erased else getattr(node, self.direction)

    def __reversed__(self):
        return _NodeList(self.graph, "_prev" if self.direction == "_next" else "_next")


class _InsertPoint:
    def __init__(self, graph, insert):
        self.graph = graph
        self.kept, graph._insert = graph._insert, insert

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.graph._insert = self.kept


def _snake_case(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower() if any(c.isupper() for c in name) else name


class CodeGen:
    """How a graph becomes code; subclasses change the signature or the result. Source: PyTorch, torch.fx.graph.CodeGen."""

    def __init__(self):
        self._body_transformer = None

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self", *free_vars]
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args):
        return f"return {repr(output_args)}"

    def process_inputs(self, *args):
        return args

    def process_outputs(self, outputs):
        return outputs

    def additional_globals(self):
        return []


class Graph:
    """A program: nodes in order. Source: PyTorch, torch.fx.Graph."""

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._len = 0
        self._insert = self._root.prepend
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._output_node = None

    @property
    def owning_module(self):
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module):
        self._owning_module = module

    @property
    def nodes(self):
        """The nodes, to walk in order; `reversed` goes back. Source: PyTorch, Graph.nodes."""
        return _NodeList(self)

    def output_node(self):
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def find_nodes(self, *, op, target=None, sort=True):
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # -------------------------------------------------------------------------------------------- adding nodes
    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """A new node at the place where nodes are inserted. Source: PyTorch, Graph.create_node."""
        args, kwargs = args if args is not None else (), kwargs if kwargs is not None else {}
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        made = Node(self, self._graph_namespace.create_name(name if name is not None else self._target_to_str(target)), op,
                    target, args,
                    kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(made.name, made)
        self._insert(made)
        self._len += 1
        return made

    def _target_to_str(self, target):
        if callable(target):
            name = target.__name__
        else:
            name = target
            if name.startswith("__") and name.endswith("__"):
                name = name[2:-2]
        return _snake_case(name)

    def placeholder(self, name, type_expr=None, default_value=...):
        """An input. Source: PyTorch, Graph.placeholder."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        if self.owning_module is not None and module_name not in dict(self.owning_module.named_modules(remove_duplicate=False)):
            import warnings

            warnings.warn("Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                          "GraphModule.add_submodule to add the necessary submodule")
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result, type_expr=None):
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda x: x):
        """A copy of a node of another graph; `arg_transform` gives this graph's node for each of its. Source: PyTorch,
        Graph.node_copy."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copies of all nodes of `g`; `val_map` gets the copy of each. Gives the output's argument, or None. Source: PyTorch,
        Graph.graph_copy."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None):
        memo = memo if memo is not None else {}
        made = Graph(tracer_cls=self._tracer_cls)
        copied = {}
        result = made.graph_copy(self, copied, return_output_node=True)
        made._codegen = self._codegen
        for old, new in copied.items():
            memo[id(old)] = new
        if isinstance(result, tuple):
            value, old = result
            new = made.output(value, type_expr=old.type)
            new.meta = dict(old.meta)
        return made

    def inserting_before(self, n=None):
        """Where nodes go next: before `n` (None: at the start); a context. Source: PyTorch, Graph.inserting_before."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n=None):
        """Where nodes go next: after `n` (None: at the end), each after the one before; a context."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    # -------------------------------------------------------------------------------------------- changing
    def erase_node(self, to_erase):
        """Take out a node that nobody uses. RuntimeError where one does. Source: PyTorch, Graph.erase_node."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                               f"{to_erase.users}!")
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._set((), {})

    def eliminate_dead_code(self, is_impure_node=None):
        """Take out what has no effect on the result; True where something was. Source: PyTorch, Graph.eliminate_dead_code."""
        self.lint()
        impure = is_impure_node or (lambda n: n.is_impure())
        changed = False
        for node in list(reversed(self.nodes)):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def process_inputs(self, *args):
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen):
        self._codegen = codegen

    def on_generate_code(self, make_transformer):
        """Have the lines of generated code changed by a function; gives a context that undoes it. Source: PyTorch,
        Graph.on_generate_code."""
        kept = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(kept)

        @contextlib.contextmanager
        def undo():
            try:
                yield
            finally:
                self._codegen._body_transformer = kept

        return undo()

    def lint(self):
        """RuntimeError where the graph is not well formed. Source: PyTorch, Graph.lint."""
        seen, names = set(), set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node._input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an "
                                       f"argument! If you "
                                       "are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() "
                                       "to remap values")
                if used not in seen:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check "
                                       f"that Nodes in the "
                                       f"graph are topologically ordered\n{self}")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                if node.op in ("get_attr", "call_module"):
                    self._lint_target(node)

    def _lint_target(self, node):
        at = self.owning_module
        for i, atom in enumerate(node.target.split(".")):
            if not hasattr(at, atom):
                place = ".".join(node.target.split(".")[:i])
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {atom} of {place}")
            at = getattr(at, atom)
        if node.op == "call_module" and not callable(at):
            raise RuntimeError(f"Node {node} target {node.target} {atom} of {node.target} does not reference an nn.Module")

    # -------------------------------------------------------------------------------------------- text
    def __str__(self):
        names, returned = [], [""]
        lines = []
        for node in self.nodes:
            lines.append(node.format_node(None, returned))
        text = f"graph({', '.join(names)}){returned[0]}:"
        return text + "".join(["\n    " + line for line in lines if line])

    def print_tabular(self):
        """The nodes as a table, by the package tabulate. Source: PyTorch, Graph.print_tabular."""
        try:
            from tabulate import tabulate
        except ImportError:
            print("`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip install "
                  "tabulate` "
                  "to install the library.")
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def python_code(self, root_module, *, verbose=False, include_stride=False, include_device=False, colored=False, **options):
        """The code of `forward`, with `root_module` as the name of the module. Source: PyTorch, Graph.python_code."""
        return _Writer(self, root_module).write()


class _Writer:
    """Turns a graph into code: one line a node, values let go after their last use."""

    def __init__(self, graph, root):
        self.graph, self.root = graph, root
        self.namespace = _Namespace()
        self.globals = dict(_BUILTINS)
        for node in graph.nodes:
            self.namespace._used.add(node.name)

    def write(self):
        body, free, returns = [], [], ""
        last = self._last_uses()
        for number, node in enumerate(self.graph.nodes):
            body.append(f"# COUNTER: {number}\n")
            if node.op == "placeholder":
                free.append(self._parameter(node))
                raw = node.target.replace("*", "")
                if raw != repr(node):
                    body.append(f"{node!r} = {raw}\n")
                continue
            if node.op == "output":
                if node.type is not None:
                    returns = f" -> {self._annotation(node.type)}"
                body.append(self.graph._codegen.generate_output(_Shown(self._argument(node.args[0]))) + "\n")
                continue
            body.append(self._line(node))
            done = list(last.get(node, ()))
            if not node.users:
                done.append(node)
            body.append(";  " + " = ".join([repr(n) for n in done] + ["None"]) + "\n" if done else "\n")
        if not body:
            body = ["pass\n"]
        transform = self.graph._codegen._body_transformer
        if transform is not None:
            body = transform(body)
        for name, value in self.graph._codegen.additional_globals():
            self.globals[name] = value
        signature = self.graph._codegen.gen_fn_def(free, returns)
        text = "".join(["\n" + "    " + part if i else part for i, part in enumerate("".join(
            [part for part in body if not part.startswith("# COUNTER")]).split("\n"))])
        return PythonCode(f"\n\n\n{signature}\n    {text}", self.globals, None)

    def _last_uses(self):
        """{node: the values whose last use it is}."""
        seen, last = set(), {}
        for node in reversed(self.graph.nodes):
            for used in node._input_nodes:
                if used not in seen:
                    seen.add(used)
                    if node.op != "output":
                        last.setdefault(node, []).append(used)
                    # what the result is made of goes with the call
        return last

    def _parameter(self, node):
        kind = f" : {self._annotation(node.type)}" if node.type is not None else ""
        default = f" = {self._argument(node.args[0])}" if node.args else ""
        return f"{node.target}{kind}{default}"

    def _annotation(self, kind):
        text = type_name(kind)
        if kind is type(None):
            return "NoneType"
        if isinstance(kind, type) and kind.__module__ == "builtins":
            return text
        head = text.partition("[")[0].partition(".")[0]
        try:
            import importlib

            self.globals[head] = importlib.import_module(head)
            eval(text, dict(self.globals))
        except Exception:  # an annotation that cannot be written as code is left out of it
            return self._global(text.rpartition(".")[2], kind)
        return text

    def _global(self, hint, obj):
        """The name by which code reaches `obj`."""
        if getattr(obj, "__module__", "") == "builtins" and not hasattr(obj, "__self__") or getattr(
                builtins, getattr(obj, "__name__", ""), None) is obj:
            return obj.__name__
        head = hint.partition(".")[0]
        if hint.startswith("torch.") or head in ("operator", "math"):
            import importlib

            try:
                module = importlib.import_module(head)
                at = module
                for part in hint.split(".")[1:]:
                    at = getattr(at, part)
                if at is obj:
                    self.globals[head] = module
                    return hint
            except (AttributeError, ImportError):
                pass
        for name, known in self.globals.items():
            if known is obj:
                return name
        name = self.namespace.create_name(hint.replace(".", "_"), None)
        self.globals[name] = obj
        return name

    def _argument(self, arg):
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self._global(type(arg).__name__, type(arg))}({', '.join([self._argument(a) for a in arg])})"
        if isinstance(arg, tuple):
            return "(" + ", ".join([self._argument(a) for a in arg]) + (",)" if len(arg) == 1 else ")")
        if isinstance(arg, list):
            return "[" + ", ".join([self._argument(a) for a in arg]) + "]"
        if isinstance(arg, dict):
            return "{" + ", ".join([f"{k!r}: {self._argument(v)}" for k, v in arg.items()]) + "}"
        if isinstance(arg, slice):
            return f"slice({self._argument(arg.start)}, {self._argument(arg.stop)}, {self._argument(arg.step)})"
        return self._constant(arg)

    def _constant(self, arg):
        import enum

        if arg is ...:
            return "Ellipsis"
        if isinstance(arg, enum.Enum):
            return f"{self._global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, (type, types.FunctionType, types.BuiltinFunctionType)):
            return self._global(qualified_name(arg) if not isinstance(arg, type) else type_name(arg), arg)
        text = repr(arg)
        if type(arg).__module__.partition(".")[0] in ("torch", "msadapter_hook") and not isinstance(arg, (int, float, str)):
            import importlib

            self.globals["torch"] = importlib.import_module("torch")
            self.globals["device"] = self.globals["torch"].device
            if text.startswith("<"):
                return self._global(type(arg).__name__.lower(), arg)
        return text

    def _call(self, args, kwargs):
        return ", ".join([self._argument(a) for a in args] + [f"{k} = {self._argument(v)}" for k, v in kwargs.items()])

    def _line(self, node):
        """The statement of a node."""
        kind = f" : {self._annotation(node.type)}" if node.type is not None else ""
        left = f"{node!r}{kind} = "
        if node.op == "get_attr":
            return left + _path(self.root, node.target)
        if node.op == "call_module":
            return f"{left}{_path(self.root, node.target)}({self._call(node.args, node.kwargs)})"
        if node.op == "call_method":
            target = self._argument(node.args[0])
            dotted = f"{target}.{node.target}" if not target[0].isdigit() else f"({target}).{node.target}"
            return f"{left}{dotted}({self._call(node.args[1:], node.kwargs)})"
        name = qualified_name(node.target)
        module, _, short = name.rpartition(".")
        if module == "operator" and not node.kwargs:
            a = [self._argument(x) for x in node.args]
            if short in _BINARY and len(a) == 2:
                return f"{left}{a[0]} {_BINARY[short]} {a[1]}"
            if short in _UNARY and len(a) == 1:
                return f"{left}{_UNARY[short]}{a[0]}"
            if short in _INPLACE and len(a) == 2:
                return f"{left}{a[0]};  {node!r} {_INPLACE[short]} {a[1]}"
            if short == "getitem" and len(a) == 2:
                return f"{left}{a[0]}[{a[1]}]"
        if name == "builtins.getattr" and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{left}{_path(self._argument(node.args[0]), node.args[1])}"
        return f"{left}{self._global(name, node.target)}({self._call(node.args, node.kwargs)})"


class _Shown:
    """A text whose repr is itself, for `CodeGen.generate_output`."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def _path(root, target):
    """`root.a.b` as code; parts that are no identifiers go through getattr."""
    for part in target.split("."):
        root = f"{root}.{part}" if part.isidentifier() and not keyword.iskeyword(part) else f'getattr({root}, "{part}")'
    return root
