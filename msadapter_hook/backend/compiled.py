"""Compiled replay: a program written out as straight-line source over primitives and compiled by mindspore.jit.

The source is a real file in the user's cache folder (MindSpore's parser wants one, and people may read it).
"""

import hashlib
import importlib.util
import math
import sys

import numpy as np

from msadapter_hook import settings

from .arrays import as_numpy, from_numpy
from .callbacks import Callback
from .gradient import Gradient, unrecorded
from .primitives import Kernel, all_numbers, primitive
from .runtime import mindspore


class Listing:
    """The primitive calls of one run of a function, as lines of source; `alone`: of nothing but kernels of MindSpore."""

    def __init__(self, inputs, alone=False):
        self.alone = alone
        self.names = {id(t): f"x{i}" for i, t in enumerate(inputs)}
        self.kept = list(inputs)  # identities stay unique while the objects live
        self.lines = []
        self.environment = {"inf": math.inf, "nan": math.nan}
        self.assumed = []  # tensors that the program is right for only if their elements are numbers
        self.functions = []  # InPlace functions: (number of the line, function, inputs, results)

    def note(self, kernel, args, result):
        self.environment[f"k{len(self.lines)}"] = kernel.instance
        self._write(kernel.name, args, result)

    def note_function(self, function, args, result):
        """A call of an `InPlace`, which the program calls back."""
        self.functions.append((len(self.lines), function, args, result if isinstance(result, tuple) else (result,)))
        self._write(function.name, args, result, "" if isinstance(result, tuple) else "[0]")

    def callbacks(self, errors):
        """What the program calls back, as operations of the program: (Callback, source of its gradient, name of that)."""
        made = []
        for line, function, args, results in self.functions:
            callback = Callback(function, args, results, errors)
            self.environment[f"k{line}"], self.environment[f"b{line}"] = callback.forward, callback.backward
            made.append((callback, callback.rule(f"d{line}", f"b{line}"), f"d{line}"))
        return made

    def _write(self, name, args, result, part=""):
        line = len(self.lines)
        self.lines.append(f"    v{line} = k{line}({', '.join(map(self.spell, args))}){part}  # {name}")
        self._name(result, f"v{line}")

    def _name(self, result, made):
        if isinstance(result, (tuple, list)):
            for i, r in enumerate(result):
                self._name(r, f"{made}[{i}]")
        else:
            self.names[id(result)] = made
            self.kept.append(result)

    def spell(self, arg):
        """An argument as source: the name of a value, a literal, or a constant of the module."""
        known = self.names.get(id(arg))
        if known is not None:
            return known
        if isinstance(arg, (tuple, list)):
            inside = ", ".join(map(self.spell, arg))
            return f"({inside},)" if isinstance(arg, tuple) and arg else f"({inside})" if isinstance(arg, tuple) else f"[{inside}]"
        if arg is None or isinstance(arg, (bool, int, float, str)):
            return repr(arg)
        name = f"c{len(self.environment)}"
        self.environment[name] = arg
        self.names[id(arg)] = name
        self.kept.append(arg)
        return name


class NotListed(RuntimeError):
    """A function computes tensors outside of its kernels: what it does cannot be written out."""


def _overheard(function, inputs, alone):
    listing = Listing(inputs, alone)
    before, Kernel.listening = Kernel.listening, listing
    try:
        outputs = function(*inputs)
    finally:
        Kernel.listening = before
    return listing, [listing.spell(o) for o in outputs]


def list_program(function, inputs, alone=False):
    """(listing, names of the outputs) of `function` on MindSpore tensors. NotListed where it computes outside of kernels, or `alone`
    is asked for and it calls something back that MindSpore has no kernel for.

    It is run twice: a tensor that is a constant of the program is the same object both times, one that was computed is not.
    """
    listing, outputs = _overheard(function, inputs, alone)
    again, _ = _overheard(function, inputs, alone)
    if listing.lines != again.lines or any(
            isinstance(kept, mindspore.Tensor) and kept is not again.environment[name]
            for name, kept in listing.environment.items()):
        raise NotListed("a tensor is computed by other means than kernels of the catalogue")
    return listing, outputs


def _laid_out(tensor):
    """A copy without gaps: MindSpore compiles anew at every call with a tensor that has some."""
    return from_numpy(np.ascontiguousarray(as_numpy(tensor)))


def compile_gradient(function, inputs, positions):
    """The compiled form of `Gradient(function, positions)`, called alike; None in place of a result where the program is not right
    for these inputs, and is to be replayed by other means. MindSpore compiles at the first call, and raises then what it raises
    where it cannot."""
    listing, outputs = list_program(function, inputs)
    watched = list({listing.spell(t): t for t in listing.assumed}.items())
    unused = tuple([from_numpy(np.zeros(t.shape, np.float32)) for _, t in watched])  # cotangents
    count = len(outputs)
    listing.environment["stop"] = primitive("StopGradient").instance
    parameters = ", ".join(f"x{i}" for i in range(len(inputs)))
    results = "".join(f"{o}, " for o in outputs) + "".join(f"stop({name}), " for name, _ in watched)
    errors = []  # of what the program calls back
    callbacks = listing.callbacks(errors)
    source = "".join(f"{rule}\n\n" for _, rule, _ in callbacks)
    source += f"def program({parameters}):\n" + "\n".join(listing.lines) + f"\n    return ({results})\n"
    upstream = ", ".join(f"g{i}" for i in range(count + len(watched)))  # each for itself: MindSpore takes what is in a tuple for constants
    source += f"\n\ndef step({parameters}, {upstream}):\n    return gradient({parameters}, ({upstream},))\n"
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    folder = settings.cache_folder() / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"program_{digest}.py"
    temporary = path.with_suffix(f".{id(listing)}.tmp")
    temporary.write_text(source)
    temporary.replace(path)
    name = f"msadapter_program_{digest}_{id(listing)}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(listing.environment)
    sys.modules[name] = module  # MindSpore's parser looks the module up
    spec.loader.exec_module(module)
    for callback, _, rule in callbacks:
        callback.forward.bprop = getattr(module, rule)
    module.gradient = Gradient(module.program, positions)._call
    compiled = mindspore.jit(module.step)
    fresh = True

    def call(given, cotangents):
        nonlocal fresh
        arguments = [t if t.is_contiguous() else _laid_out(t) for t in (*given, *cotangents, *unused)]
        errors.clear()
        if fresh:  # where MindSpore cannot compile it leaves its notes in the working directory, unless told another place
            fresh = False
            before = settings.export("compiling", MS_OM_PATH=str(folder))
            try:
                values, grads = unrecorded(compiled, arguments)
            finally:
                settings.restore(before)
        else:
            values, grads = unrecorded(compiled, arguments)
        grads = grads if isinstance(grads, tuple) else (grads,)
        # a gradient is read before the loss: in the other order three spinning threads share the cores, at a quarter of the speed
        (grads or values)[0].asnumpy()  # the program has ended then
        if errors:
            raise errors[0]
        if watched:
            if not all(all_numbers(as_numpy(v)) for v in values[count:]):
                return None
            values = values[:count]
        return values, grads

    return call
