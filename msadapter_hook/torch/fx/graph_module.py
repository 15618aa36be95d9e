"""torch.fx.graph_module: modules whose forward is the code of a graph."""

import copy
import itertools
import linecache
import sys
import warnings

from .. import Tensor
from ..nn import Module, Parameter
from .graph import Graph, PythonCode  # noqa: F401

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = itertools.count()


def _compile(src, names):
    """The function `forward` of a text, with the text kept for tracebacks."""
    file = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[file] = (len(src), None, src.splitlines(True), file)
    namespace = dict(names)
    namespace["__loader__"] = None
    exec(compile(src, file, "exec"), namespace)
    return namespace["forward"]


def _copy_attr(from_module, to_module, target):
    """Put the attribute `target` of one module into another, with the modules on the way."""
    *prefix, field = target.split(".")
    for name in prefix:
        inner = getattr(from_module, name)
        there = getattr(to_module, name, None)
        if inner is there:
            return
        if there is None:
            there = Module()
            setattr(to_module, name, there)
        from_module, to_module = inner, there
    value = getattr(from_module, field)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


def _assign_attr(value, to_module, target):
    """Set the attribute `target`, making the modules on the way."""
    *prefix, field = target.split(".")
    for name in prefix:
        there = getattr(to_module, name, None)
        if there is None:
            there = Module()
            setattr(to_module, name, there)
        to_module = there
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


def _get_attr(module, target):
    for name in target.split("."):
        module = getattr(module, name)
    return module


class _CodeOnlyModule(Module):
    """A module with the attributes and the forward of a pickled GraphModule, to be traced again."""

    def __init__(self, body):
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body, import_block):
    """A GraphModule from its attributes and code, by tracing the code. Source: PyTorch,
    torch.fx.graph_module.reduce_graph_module."""
    from ._symbolic_trace import Tracer

    names = {}
    source = body.pop("_code")
    exec(import_block, names)
    module = _CodeOnlyModule(body)
    _CodeOnlyModule.forward = _compile(source, names)

    class KeepModules(Tracer):
        def is_leaf_module(self, m, qualified):
            return True

    kept = body.get("_graphmodule_cls_name", "GraphModule")
    graph = KeepModules().trace(module)
    graph._tracer_cls = None
    return GraphModule(module, graph, class_name=kept)


class GraphModule(Module):
    """A module made of a graph and the modules and tensors that it names. Source: PyTorch, torch.fx.GraphModule.

    `root`: a module, or a dict {name: module or tensor}. RuntimeError where the graph names something that is not there.
    """

    def __new__(cls, *args, **kwargs):
        # each instance has a class of its own, since forward belongs to the class
        for base in cls.__mro__:
            if not base.__qualname__.endswith("GraphModuleImpl"):
                cls = base
                break

        class GraphModuleImpl(cls):
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
            for name in getattr(root, "meta", {}).get(_USER_PRESERVED_ATTRIBUTES_KEY, {}):
                setattr(self, name, root.meta[_USER_PRESERVED_ATTRIBUTES_KEY][name])
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            wanted = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target} but that target was not provided in ``root``!")
            for target in sorted(set(wanted), key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.meta = dict(getattr(root, "meta", {})) if isinstance(root, Module) else {}
        self.graph = graph
        self._tracer_cls = None

    @property
    def graph(self):
        """The graph; assigning another compiles it. Source: PyTorch, GraphModule.graph."""
        return self._graph

    @graph.setter
    def graph(self, graph):
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    def recompile(self):
        """Make forward from the graph as it is now; gives its PythonCode. Source: PyTorch, GraphModule.recompile."""
        code = self._graph.python_code("self")
        self._code = code.src
        self._globals = code.globals
        type(self).forward = _compile(code.src, code.globals)
        return code

    @property
    def code(self):
        """The code of forward. RuntimeError before there is one. Source: PyTorch, GraphModule.code."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def __call__(self, *args, **kwargs):
        try:
            return Module.__call__(self, *args, **kwargs)
        except Exception:
            self._show_failing_line(sys.exc_info()[2])
            raise

    def _show_failing_line(self, trace):
        """Print the lines of generated code around the one that failed."""
        found = None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename.startswith("<eval_with_key>"):
                found = trace
            trace = trace.tb_next
        if found is None:
            return
        file, number = found.tb_frame.f_code.co_filename, found.tb_lineno
        lines = [linecache.getline(file, i) for i in range(max(1, number - 2), number + 3)]
        mark = "~" * 79 + "  <--- HERE\n"
        at = min(2, number - 1) + 1
        print(f"\nCall using an FX-traced Module, line {number} of the traced Module's generated forward function:\n"
              + "".join(lines[:at]) + "\n" + mark + "".join(lines[at:]), file=sys.stderr)

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        Module.__init__(made)
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code", "_globals")}
        for key, value in state.items():
            made.__dict__[key] = copy.deepcopy(value, memo)
        type(made).__name__ = type(self).__name__
        made.graph = copy.deepcopy(self._graph, memo)
        return made

    def __copy__(self):
        made = GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)
        made.meta = dict(self.meta)
        return made

    def __reduce__(self):
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_globals")}
        state["_graphmodule_cls_name"] = type(self).__name__
        lines = ["import torch\n"]
        for name, value in self._globals.items():
            if name in ("inf", "nan"):
                lines.append(f"from math import {name}\n")
            elif name == "NoneType":
                lines.append("NoneType = type(None)\n")
            elif type(value).__name__ == "module":
                lines.append(f"import {value.__name__.partition('.')[0]}\n")
            elif name == "device":
                lines.append("from torch import device\n")
            else:
                lines.append(f"from {value.__module__} import {value.__qualname__} as {name}\n")
        return reduce_graph_module, (state, "".join(lines))

    def _get_name(self):
        return type(self).__name__

    def __str__(self):
        return (f"{super().__repr__()}\n{self._code}\n# To see more debug info, please use `graph_module.print_readable()`")

    def print_readable(self, print_output=True, include_stride=False, include_device=False, colored=False, **options):
        """The code as a class, printed and given. Source: PyTorch, GraphModule.print_readable."""
        name = type(self).__name__
        body = self._code.strip("\n").rstrip().split("\n")
        if len(body) > 1:
            body.insert(1, "    # No stacktrace found for following nodes")
        text = f"class {name}(torch.nn.Module):\n" + "\n".join(["    " + line if line else line for line in body]) + "\n"
        for child_name, child in self.named_children():
            if isinstance(child, GraphModule):
                inner = child.print_readable(print_output=False).rstrip().split("\n")
                inner[0] = f"class {child_name}(torch.nn.Module):"
                text += "\n" + "\n".join(["    " + line if line else line for line in inner]) + "\n"
        if print_output:
            print(text)
        return text

    # -------------------------------------------------------------------------------------------- submodules
    def add_submodule(self, target, m):
        """Put a module at a dotted name; False where something else is in the way. Source: PyTorch, GraphModule.add_submodule."""
        *prefix, field = target.split(".")
        at = self
        for name in prefix:
            inner = getattr(at, name, None)
            if inner is None:
                inner = Module()
                setattr(at, name, inner)
            if not isinstance(inner, Module):
                return False
            at = inner
        at.add_module(field, m)
        return True

    def delete_submodule(self, target):
        """Take out the module at a dotted name; False where there is none. Source: PyTorch, GraphModule.delete_submodule."""
        *prefix, field = target.split(".")
        at = self
        for name in prefix:
            at = getattr(at, name, None)
            if not isinstance(at, Module):
                return False
        if not isinstance(getattr(at, field, None), Module):
            return False
        delattr(at, field)
        return True

    def delete_all_unused_submodules(self):
        """Take out the modules that the graph does not name. Source: PyTorch, GraphModule.delete_all_unused_submodules."""
        used = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update([".".join(parts[:i + 1]) for i in range(len(parts))])
                if node.op == "call_module":
                    try:
                        inner = self.get_submodule(node.target)
                    except AttributeError:
                        continue
                    used.update([f"{node.target}.{name}" for name, _ in inner.named_modules() if name])
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def to_folder(self, folder, module_name="FxModule"):
        """Write the module as a Python package: code, state_dict, pickled submodules. Source: PyTorch, GraphModule.to_folder."""
        from pathlib import Path

        from .. import save

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        save(self.state_dict(), folder / "state_dict.pt")
        lines = ["import torch", "import torch.nn", "from torch.nn import *", f"class {module_name}(torch.nn.Module):",
                 "    def __init__(self):", "        super().__init__()"]
        for name, child in self.named_children():
            file = folder / f"{name}.pt"
            save(child, file)
            warnings.warn(f"Was not able to save the following children modules as reprs -saved as pickled files instead: {[name]}")
            lines.append(f"        setattr(self, {name!r}, torch.load({str(file)!r}, weights_only=False))")
        for name, value in self._buffers.items():
            if value is not None:
                lines.append(f"        self.register_buffer({name!r}, torch.empty({list(value.shape)}, dtype={value.dtype}))")
        for name, value in self._parameters.items():
            if value is not None:
                lines.append(f"        setattr(self, {name!r}, torch.nn.Parameter(torch.empty({list(value.shape)}, "
                             f"dtype={value.dtype})))")
        lines.append(f"        self.load_state_dict(torch.load({str(folder / 'state_dict.pt')!r}))")
        lines += ["    " + line for line in self._code.strip("\n").split("\n")]
        (folder / "module.py").write_text("\n".join(lines) + "\n")
        (folder / "__init__.py").write_text("from .module import *\n")
