"""How operators act on compound tensors (sparse and nested layouts): a table for each class, by the operators' names. What is not
there is refused; nothing reads such a tensor as if it were dense."""

from msadapter_hook import report
from msadapter_hook.tensor import dtypes
from msadapter_hook.tensor.compound import refusal

COMPOSED = frozenset(["svd_lowrank", "pca_lowrank"])  # made of operators that sparse tensors have

TABLES = {}  # class -> {name of the operator: function of its parameters by name}


def implement(*classes, names):
    """Declare what the operators of these names (separated by spaces) do for tensors of these classes.

    The function gets the operator's parameters by name, `self` included.
    """

    def declare(function):
        for cls in classes:
            TABLES.setdefault(cls, {}).update(dict.fromkeys(names.split(), function))
        return function

    return declare


def involved(overload, bound):
    """The compound tensors among the arguments, in order."""
    found = [bound[i] for i in overload.tensors if getattr(bound[i], "_compound", False)]
    return found + [t for i in overload.lists for t in bound[i] if t is not None and t._compound]


def run(entry, overload, bound, found):
    """The result of an operator on compound tensors (`found`), by the table of the first one's class."""
    table = TABLES[type(found[0])]
    function = table.get(overload.schema.name) or table.get(entry.name)
    if entry.name in COMPOSED and found[0].layout is dtypes.sparse_coo:
        return overload.body(*bound)
    if function is None:
        report.missing(f"torch.{entry.name} ({found[0].layout})")
        raise refusal(entry.short, found[0])
    return function(**{p.name: b for p, b in zip(overload.schema.parameters, bound)})


def run_inplace(entry, overload, bound, check, write):
    """The in-place form; `check` and `write` are those of plain tensors, used where the tensor written to is plain."""
    self = bound[0]
    if not self._compound:
        check(self)
        result = run(entry, overload, bound, involved(overload, bound))
        if result._compound:
            raise RuntimeError(f"{entry.short}_(): the result has layout {result.layout}, but the tensor written to is strided")
        write(self, result.value, result._dtype, name=overload.name_of(result.value, bound))
        return self
    if self.requires_grad and self.is_leaf and _recording():
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    table = TABLES[type(self)]
    own = table.get(entry.short + "_")
    if own is not None:
        return own(**{p.name: b for p, b in zip(overload.schema.parameters, bound)})
    replace(self, run(entry, overload, bound, involved(overload, bound)))
    return self


def _recording():
    from msadapter_hook.tape.recording import state

    return state.enabled


def replace(tensor, result):
    """Let a compound tensor become the result of an in-place operator. RuntimeError where it cannot."""
    if type(result) is not type(tensor) or result.layout is not tensor.layout:
        raise RuntimeError(f"the result has layout {result.layout}, but the tensor written to has layout {tensor.layout}")
    if result._size != tensor._size:
        raise RuntimeError(f"output with shape {list(tensor._size)} doesn't match the broadcast shape {list(result._size)}")
    if result._dtype is not tensor._dtype:
        if not dtypes.can_cast(result._dtype, tensor._dtype):
            raise RuntimeError(f"result type {result._dtype.scalar_name} can't be cast to the desired output type "
                               f"{tensor._dtype.scalar_name}")
        result = result.to(tensor._dtype)
    tensor._written(result)
