"""The entry points of MindSpore through which our tensors come: each wrapped once, after `import mindspore`, by the table.

A call in which nothing of ours takes part goes straight to the original.
"""

import functools
import sys
import types

from msadapter_hook import foreign

from .presence import adapter_class, takes_part

#: modules of MindSpore whose public functions take tensors
FUNCTIONS = ("ops", "ops.functional", "mint", "mint.nn.functional", "mint.linalg", "mint.special", "numpy")
#: what they are made of; names beside these are decorators and tools
HOMES = ("mindspore.ops.function", "mindspore.ops.functional", "mindspore.ops.auto_generate", "mindspore.ops._grad",
         "mindspore.ops.composite", "mindspore.ops.tensor_method", "mindspore.mint", "mindspore.numpy")
#: functions that take functions: `transforms` below has its own way with them, or they are left alone
NOT_TENSORS = frozenset(
    "grad value_and_grad vjp jvp jacrev jacfwd vmap get_grad custom_vjp constexpr kernel add_flags core cond while_loop scan "
    "for_loop map_ switch_case prim_attr_register derivative stop_gradient_ is_tensor".split())


def _function(wrapped, instance, args, kwargs):
    ours = adapter_class()
    if ours is None or not (takes_part(ours, args) or kwargs and takes_part(ours, kwargs.values())):
        return wrapped(*args, **kwargs)
    from . import operations

    return operations.call(wrapped, args, kwargs)


def _cell(wrapped, instance, args, kwargs):
    ours = adapter_class()
    if ours is None:
        return wrapped(*args, **kwargs)
    if not (takes_part(ours, args) or kwargs and takes_part(ours, kwargs.values())):
        from . import compiled

        return compiled.call_cell(instance, wrapped, args, kwargs)
    from . import operations

    return operations.call_cell(instance, wrapped, args, kwargs)


def functions(mindspore, wrap):
    """Public functions of `mindspore.ops`, `mindspore.mint`, `mindspore.numpy`, and the calls of primitives."""

    def tensor(x):
        from .crossing import wrap

        return wrap(x)

    foreign.TENSORS[mindspore.Tensor] = foreign.TENSORS[mindspore.Parameter] = tensor
    for place in FUNCTIONS:
        module = functools.reduce(getattr, place.split("."), mindspore)
        for name, item in list(vars(module).items()):
            if isinstance(item, types.FunctionType) and not name.startswith("_") and name not in NOT_TENSORS:
                if item.__module__.startswith(HOMES):
                    wrap(module, name, _function)
    seen, stack = set(), [mindspore.ops.Primitive]
    while stack:
        cls = stack.pop()
        if cls in seen:
            continue
        seen.add(cls)
        stack.extend(cls.__subclasses__())
        if "__call__" in vars(cls) and isinstance(vars(cls)["__call__"], types.FunctionType):
            wrap(cls, "__call__", _function)


#: methods of MindSpore's tensors that take no tensor, so that they are left as they are
PLAIN_METHODS = frozenset(
    "asnumpy numpy item tolist from_numpy from_dlpack convert_bytes_to_tensor getitem_index_info setitem_index_info data_ptr dim "
    "contiguous is_contiguous numel nelement ndimension stride storage_offset requires_grad_ register_hook remove_hook init_data "
    "flush_from_cache is_init is_pinned set_param_info wait_pipeline to_dlpack hooks get_bytes astype storage untyped_storage "
    "set_const_arg set_init_flag data_sync move_to to to_coo to_csr pin_memory is_shared is_complex is_signed "
    "is_floating_point set_cast_dtype set_device_address set_dtype offload offload_file_path".split())
#: Python's operators on MindSpore's tensors
OPERATOR_METHODS = [
    *[f"__{prefix}{name}__" for name in "add sub mul truediv floordiv mod pow matmul and or xor".split() for prefix in ("", "i")],
    *[f"__{name}__" for name in "eq ne lt le gt ge getitem setitem contains".split()]]


def tensors(mindspore, wrap):
    """MindSpore's tensors beside ours: in operators, indices and methods, and made from ours."""

    def method(wrapped, instance, args, kwargs):
        ours = adapter_class()
        if ours is None or not (takes_part(ours, args) or kwargs and takes_part(ours, kwargs.values())):
            return wrapped(*args, **kwargs)
        from . import natives

        return natives.method(wrapped.__name__, instance, args, kwargs)

    def made(wrapped, instance, args, kwargs):
        ours = adapter_class()
        if ours is not None and args and _holds(ours, args[0]):
            from . import natives

            args = (natives.data_of(args[0]), *args[1:])
        return wrapped(*args, **kwargs)

    def set_data(wrapped, instance, args, kwargs):
        ours = adapter_class()
        if ours is not None and (takes_part(ours, args) or takes_part(ours, kwargs.values())):
            from . import natives

            args, kwargs = tuple([natives.data_of(a) for a in args]), natives.data_of(kwargs)
        result = wrapped(*args, **kwargs)
        if "_adapter_link" in instance.__dict__:
            from .parameters import replaced

            replaced(instance)
        return result

    def listed(wrapped, instance, args, kwargs):
        if adapter_class() is None:
            return wrapped(*args, **kwargs)
        from .parameters import native_tree

        return wrapped(args[0], *native_tree(args[1:]), **native_tree(kwargs))

    Tensor, Parameter = mindspore.Tensor, mindspore.Parameter
    for name in dir(Tensor):
        if name in OPERATOR_METHODS or not name.startswith("_") and name not in PLAIN_METHODS and callable(getattr(Tensor, name)):
            wrap(Tensor, name, method)
    wrap(sys.modules[Tensor.__module__], "_init", made)  # how Tensor(...) reads its data
    wrap(Parameter, "__init__", made)
    wrap(Parameter, "set_data", set_data)
    wrap(mindspore.ParameterTuple, "__new__", listed)


def _holds(ours, x):
    """Whether the data of a new tensor are ours; of a long list only its first item is looked at."""
    if isinstance(x, ours):
        return True
    if type(x) is list or type(x) is tuple:
        return takes_part(ours, x if len(x) < 1000 else x[:1])
    return False


def cells(mindspore, wrap):
    """Calls of Cells, and places that take a network: a served module will do there."""
    nn, train = mindspore.nn, mindspore.train

    def module(cell, Module):
        from .cells import CellModule

        return CellModule(cell, Module)

    foreign.MODULES[nn.Cell] = module

    def networks(wrapped, instance, args, kwargs):
        if adapter_class() is None:
            return wrapped(*args, **kwargs)
        from .cells import as_cells

        args, kwargs = as_cells((args, kwargs))
        return wrapped(*args, **kwargs)

    def assigned(wrapped, instance, args, kwargs):
        if adapter_class() is None or len(args) != 2:
            return wrapped(*args, **kwargs)
        from .cells import as_cells

        return wrapped(args[0], as_cells(args[1]) if _may_be_served(args[1]) else args[1])

    def optimizer(wrapped, instance, args, kwargs):
        if adapter_class() is None:
            return wrapped(*args, **kwargs)
        from .parameters import native_tree

        args, kwargs = native_tree((args, kwargs))
        return wrapped(*args, **kwargs)

    wrap(nn.Cell, "__call__", _cell)
    wrap(nn.Cell, "__setattr__", assigned)
    wrap(nn.Optimizer, "__init__", optimizer)
    wrap(mindspore.experimental.optim.Optimizer, "__init__", optimizer)

    def numbers(wrapped, instance, args, kwargs):
        ours = adapter_class()
        if ours is not None and args and isinstance(args[0], ours):
            args = (args[0].detach().numpy(), *args[1:])
        return wrapped(*args, **kwargs)

    def arrays(wrapped, instance, args, kwargs):
        if adapter_class() is None:
            return wrapped(*args, **kwargs)
        from .natives import arrays_of

        args, kwargs = arrays_of((args, kwargs))
        return wrapped(*args, **kwargs)

    wrap(train.Metric, "_convert_data", numbers)
    wrap(mindspore.dataset.NumpySlicesDataset, "__init__", arrays)
    for owner, names in (
        (nn, "WithLossCell TrainOneStepCell WithEvalCell TrainOneStepWithLossScaleCell ForwardValueAndGrad SequentialCell CellList"),
        (train, "Model"),
    ):
        for name in names.split():
            wrap(getattr(owner, name), "__init__", networks)
    for owner, names in (
        (mindspore, "save_checkpoint load_param_into_net"),
        (train, "save_checkpoint load_param_into_net"),
        (train.serialization, "save_checkpoint load_param_into_net"),
    ):
        for name in names.split():
            if hasattr(owner, name):
                wrap(owner, name, networks)

    def exported(wrapped, instance, args, kwargs):
        if adapter_class() is None:
            return wrapped(*args, **kwargs)
        from .export import export

        return export(wrapped, args, kwargs)

    for owner in (mindspore, train, train.serialization):
        wrap(owner, "export", exported)


def _may_be_served(x):
    return hasattr(type(x), "_load_from_state_dict") or isinstance(x, (list, tuple))


def transforms(mindspore, wrap):
    """value_and_grad, grad, vjp, jvp and get_grad over functions in which our tensors take part."""

    def lazily(name):
        def wrapper(wrapped, instance, args, kwargs):
            from . import gradients

            return getattr(gradients, name)(wrapped, args, kwargs)

        return wrapper

    for owner in (mindspore, mindspore.ops, mindspore.ops.functional):
        for name in ("value_and_grad", "grad", "vjp", "jvp", "get_grad", "jacrev", "jacfwd", "vmap"):
            if name in vars(owner):
                wrap(owner, name, lazily(name))

    def operation(wrapped, instance, args, kwargs):
        from . import gradients

        return gradients.operation(instance, wrapped, args, kwargs)

    wrap(mindspore.ops.GradOperation, "__call__", operation)


def amp(mindspore, wrap):
    """auto_mixed_precision and build_train_network on served modules; MindSpore's scalers on our tensors."""

    def lazily(name):
        def wrapper(wrapped, instance, args, kwargs):
            if adapter_class() is None:
                return wrapped(*args, **kwargs)
            from . import amp

            return getattr(amp, name)(wrapped, args, kwargs)

        return wrapper

    def scaler(multiply):
        def wrapper(wrapped, instance, args, kwargs):
            ours = adapter_class()
            inputs = [*args, *kwargs.values()]
            if ours is None or not takes_part(ours, inputs):
                return wrapped(*args, **kwargs)
            from . import amp

            return amp.scaled(instance, inputs[0], multiply)

        return wrapper

    def adjust(wrapped, instance, args, kwargs):
        if adapter_class() is None:
            return wrapped(*args, **kwargs)
        from .crossing import cast_to_ms_tensor

        args, kwargs = cast_to_ms_tensor((args, kwargs))
        return wrapped(*args, **kwargs)

    def finite(wrapped, instance, args, kwargs):
        ours = adapter_class()
        inputs = [*args, *kwargs.values()]
        if ours is None or not takes_part(ours, inputs):
            return wrapped(*args, **kwargs)
        from . import amp

        return amp.all_finite(wrapped, inputs[0])

    for owner in (mindspore.amp, mindspore.train.amp):
        wrap(owner, "auto_mixed_precision", lazily("auto_mixed_precision"))
        wrap(owner, "build_train_network", lazily("build_train_network"))
        wrap(owner, "custom_mixed_precision", lazily("custom_mixed_precision"))
    for cls in (mindspore.amp.StaticLossScaler, mindspore.amp.DynamicLossScaler):
        wrap(cls, "scale", scaler(True))
        wrap(cls, "unscale", scaler(False))
        wrap(cls, "adjust", adjust)
    wrap(mindspore.amp, "all_finite", finite)


def jit(mindspore, wrap):
    """mindspore.jit over functions that use served modules: they run through recorded programs, never MindSpore's parser."""

    def compiled(wrapped, instance, args, kwargs):
        from .compiled import jit as ours

        return ours(wrapped, args, kwargs)

    wrap(mindspore, "jit", compiled)
