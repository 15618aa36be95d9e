"""mindspore.export of a served module: its recorded program written out as a Cell of primitive calls, which MindSpore parses.

What depends on the values of the inputs without being recorded (masks, branches, sizes) would be frozen in the file: the
written Cell is compared with the module on other inputs before it is given out.
"""

import hashlib
import importlib.util
import sys

import mindspore
import numpy as np

from msadapter_hook import backend, errors, settings
from msadapter_hook.backend.compiled import list_program
from msadapter_hook.tape import Program, enable_grad, no_grad
from msadapter_hook.tensor import Tensor

from . import crossing, modes
from .cells import ServedCell, as_cell
from .references import is_module
from .trees import instances


def exportable(module, inputs):
    """A native Cell that computes what the served `module` computes on inputs of these shapes; parameters keep their names.

    inputs: tensors of either side. NotImplementedError where an operation is no MindSpore primitive, or where the result depends
    on the inputs in a way that is not recorded.
    """
    inputs = crossing.cast_to_adapter_tensor(tuple(inputs))
    training = module.training
    module.eval()
    try:
        return _checked(_written(module, inputs), module, inputs)
    finally:
        module.train(training)


def _written(module, inputs):
    leaves = [t.detach().requires_grad_(True) if t.dtype.is_floating_point else t.detach() for t in inputs]
    with enable_grad():
        output = module(*leaves)
        given = [t.value for t in leaves]
        outputs = instances(output, Tensor)
        values = [t.value for t in outputs]
    for v in values:
        if v.node is None:
            raise errors.unsupported("mindspore.export", "an output does not depend on floating point inputs or parameters")
    nodes = _nodes(values)
    program, operands = Program.trace(nodes, [(v.node, v.index) for v in values])
    names = {id(p._leaf): name for name, p in module.named_parameters() if p._leaf is not None}
    lines, members, used = [], {}, set()
    for i, v in enumerate(operands):
        place = next((a for a, g in enumerate(given) if g is v or (v.leaf is not None and g.leaf is v.leaf)), None)
        if place is not None:
            used.add(place)
            lines.append(f"        x{i} = a{place}")
            continue
        name = names.get(id(v.leaf), f"constant{i}") if v.leaf is not None else f"constant{i}"
        members[f"w{i}"] = mindspore.Parameter(backend.from_numpy(v.numpy.copy()), name=name, requires_grad=v.leaf is not None)
        lines.append(f"        x{i} = self.w{i}")
    if len(used) != len(inputs):
        missing = sorted(set(range(len(inputs))) - used)
        raise errors.unsupported("mindspore.export", f"input {missing[0]} is used by host code only, or not at all")
    listing, results = list_program(program.function, [v.array for v in operands], alone=True)
    lines += ["    " + line for line in listing.lines]
    result = results[0] if isinstance(output, Tensor) else f"({', '.join(results)},)"
    return _load(lines, members, listing, len(inputs), result)


def _nodes(values):
    """The nodes that lead to these values, in order of recording; all of them MindSpore's."""
    nodes, stack = {}, [v.node for v in values]
    while stack:
        node = stack.pop()
        if node.sequence in nodes:
            continue
        if not _in_mindspore(node):
            raise errors.unsupported(f"mindspore.export of {node.operator or node.primitive.name}",
                                     "it is no MindSpore primitive here; export a model without it")
        nodes[node.sequence] = node
        stack += [v.node for v in node.inputs if v.requires_grad and v.leaf is None and v.node is not None]
    return [nodes[s] for s in sorted(nodes)]


def _in_mindspore(node):
    """Whether MindSpore has the operation of a node, also where a host kernel computed it here."""
    primitive = node.primitive
    return node.replayable or (getattr(primitive, "mindspore", None) is not None and node.inputs[0].dtype in primitive.dtypes
                               and (primitive.guard is None or primitive.guard(*node.inputs, **node.attributes)))


def _load(lines, members, listing, count, result):
    """The Cell, in a module of its own in the cache folder: MindSpore's parser wants a file."""
    arguments = ", ".join(f"a{i}" for i in range(count))
    source = "\n".join([
        "from mindspore import nn", "", "",
        "class Exported(nn.Cell):",
        "    def __init__(self, members):",
        "        super().__init__()",
        "        for key, member in members.items():",
        "            setattr(self, key, member)",
        "",
        f"    def construct(self, {arguments}):",
        *lines,
        f"        return {result}", ""])
    folder = settings.cache_folder() / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"msadapter_export_{hashlib.sha256(source.encode()).hexdigest()[:16]}_{id(listing)}"
    path = folder / f"{name.rsplit('_', 1)[0]}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(listing.environment)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    cell = module.Exported(members)
    cell.set_train(False)
    return cell


def _checked(cell, module, inputs):
    """The Cell, if it computes what the module does on inputs other than those it was written from."""
    rng = np.random.default_rng(0)
    others = []
    for t in inputs:
        array = t.detach().numpy()
        if array.dtype.kind == "f":
            array = (array * rng.uniform(-2, 2, array.shape) + rng.standard_normal(array.shape)).astype(array.dtype)
        else:
            array = rng.permutation(array.ravel()).reshape(array.shape)
        others.append(np.ascontiguousarray(array))
    with no_grad():
        want = instances(module(*[crossing.made(backend.from_numpy(a)) for a in others]), Tensor)
    with modes.pynative(), modes.native_recording(False):
        found = instances(cell(*[backend.from_numpy(a) for a in others]), crossing.NativeTensor)
    for a, b in zip(want, found):
        if not np.allclose(a.detach().numpy(), backend.as_numpy(b), rtol=1e-3, atol=1e-4):
            raise errors.unsupported("mindspore.export", "the result depends on the inputs in a way that is not recorded (a mask or a "
                                     "branch computed from values)")
    return cell


def export(native, args, kwargs):
    """mindspore.export"""
    net = args[0] if args else kwargs.get("net")
    if not (isinstance(net, ServedCell) or is_module(net)):
        return native(*args, **kwargs)
    module = as_cell(net)
    module = module.module if isinstance(module, ServedCell) else net
    inputs = args[1:]
    return native(exportable(module, inputs), *crossing.cast_to_ms_tensor(inputs),
                  **{key: value for key, value in kwargs.items() if key != "net"})
