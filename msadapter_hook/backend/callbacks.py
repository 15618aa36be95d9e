"""Functions that are computed on the memory of tensors, as operations of a compiled program: MindSpore calls them back.

Source: MindSpore, mindspore.ops.Custom with func_type="pyfunc".
"""

import numpy as np
from mindspore.ops import Custom

from .arrays import as_numpy
from .runtime import mindspore

_TOKEN = np.zeros(1, np.float32)


class Callback:
    """`function`, an `InPlace`, at `inputs` that gave `results`: the operations `forward(*inputs) -> (*results, token)` and
    `backward(*cotangents, token)`; the token keeps them in order. MindSpore hands over copies, which last as long as they are kept.

    What a callback raises would end the process: it is added to the list `errors`, for who runs the program.
    """

    def __init__(self, function, inputs, results, errors):
        self._function, self._kept, self._errors = function, None, errors
        self._inputs, self._results = ([(t.shape, t.dtype, as_numpy(t).dtype) for t in tensors] for tensors in (inputs, results))
        self._ends = [*self._results, ((1,), mindspore.float32, np.dtype(np.float32))]
        self.forward = _operation(self._ahead, len(inputs), self._ends)
        self.backward = _operation(self._back, len(self._ends), self._inputs)

    def rule(self, name, backward):
        """The source of a function `name` that tells MindSpore the gradient, by the operation that is called `backward` there."""
        given = [f"x{i}" for i in range(len(self._inputs))]
        count = len(self._results)
        made = f"{backward}({', '.join([*(f'g[{i}]' for i in range(count)), f'y[{count}]'])})"
        return f"def {name}({', '.join(given)}, y, g):\n    return {made if len(given) > 1 else f'({made},)'}\n"

    def _ahead(self, *arrays):
        def compute():
            made, self._kept = self._function.forward(*arrays)
            return (*((made,) if type(made) is np.ndarray else made), _TOKEN)

        return self._told(compute, self._ends)

    def _back(self, *arrays):
        def compute():
            kept, self._kept = self._kept, None
            made = self._function.backward(kept, *arrays[:-1])
            return (made,) if type(made) is np.ndarray else made

        return self._told(compute, self._inputs)

    def _told(self, compute, wanted):
        try:
            made = compute()
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
