"""Functions that are computed on the memory of tensors, as operations of a compiled program: MindSpore calls them back.

Source: MindSpore, mindspore.ops.Custom with func_type="pyfunc".
"""

import numpy as np
from mindspore.ops import Custom

from .arrays import as_numpy


class Callback:
    """`function`, an `InPlace`, at `inputs` that gave `results`: the operations `forward(*inputs)` and
    `backward(*cotangents, *inputs, *results)`, which takes inputs and results so that MindSpore keeps their memory and the order.

    What a callback raises would end the process: it is added to the list `errors`, for who runs the program.
    """

    def __init__(self, function, inputs, results, errors):
        self._function, self._kept, self._errors = function, None, errors
        self._inputs, self._results = ([(t.shape, t.dtype, as_numpy(t).dtype) for t in tensors] for tensors in (inputs, results))
        self.forward = _operation(self._ahead, len(inputs), self._results)
        self.backward = _operation(self._back, len(inputs) + 2 * len(results), self._inputs)

    def rule(self, name, backward):
        """The source of a function `name` that tells MindSpore the gradient, by the operation that is called `backward` there."""
        given = [f"x{i}" for i in range(len(self._inputs))]
        several = len(self._results) > 1
        cotangents, results = ([f"{of}[{i}]" for i in range(len(self._results))] if several else [of] for of in ("g", "y"))
        made = f"{backward}({', '.join((*cotangents, *given, *results))})"
        return f"def {name}({', '.join(given)}, y, g):\n    return {made if len(given) > 1 else f'({made},)'}\n"

    def _ahead(self, *arrays):
        def compute():
            made, self._kept = self._function.forward(*arrays)
            return made

        return self._told(compute, self._results)

    def _back(self, *arrays):
        def compute():
            kept, self._kept = self._kept, None
            return self._function.backward(kept, *arrays[:len(self._results)])

        return self._told(compute, self._inputs)

    def _told(self, compute, wanted):
        try:
            made = compute()
            made = (made,) if type(made) is np.ndarray else tuple(made)
        except BaseException as error:
            self._errors.append(error)
            made = [np.zeros(shape, kind) for shape, _, kind in wanted]
        made = tuple(map(np.ascontiguousarray, made))
        return made if len(wanted) > 1 else made[0]


def _operation(call, count, results):
    shapes, types = [shape for shape, _, _ in results], [kind for _, kind, _ in results]
    several = len(results) > 1
    made = Custom(call, tuple(shapes) if several else shapes[0], tuple(types) if several else types[0], "pyfunc")
    return made.add_prim_attr("inputs_num", count)  # of a call with any number of them MindSpore counts one
