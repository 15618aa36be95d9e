"""oneDNN, the library of CPU kernels that MindSpore brings along, called through its C interface on NumPy memory.

The names and numbers are those of oneDNN 3 (dnnl_types.h). A stream without a thread pool computes in the calling thread, and
ctypes lets other Python threads run meanwhile (threads.py).
"""

import ctypes
import glob
import importlib.util
import os
from ctypes import byref, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p

import numpy as np

# ------------------------------------------------------------------------------------------------ numbers of dnnl_types.h
TRAINING, INFERENCE, BACKWARD, BACKWARD_DATA = 64, 96, 128, 160
DIRECT_CONVOLUTION, MAX_POOLING, SOFTMAX, LEFT_TO_RIGHT = 1, 0x1FF, 0x30000, 1
MEAN_POOLING, MEAN_POOLING_OF_ALL = 0x3FF, 0x2FF
RELU = LEAKY_RELU = 0x20  # one formula, by the slope
TANH, GELU_TANH, SWISH, CLIP, GELU_ERF, MISH, HARD_SWISH = 0x21, 0x2B, 0x2C, 0x2F, 0x31, 0x33, 0x34
USE_STATISTICS, USE_SCALE, USE_SHIFT = 1, 2, 4
ADD, MULTIPLY, DIVIDE, SUBTRACT, SQUARE_ROOT = 0x1FFF0, 0x1FFF1, 0x1FFF4, 0x1FFF5, 0x25

SOURCE, SOURCE_STATE, SOURCE_CELL, TARGET, TARGET_STATE, TARGET_CELL = 1, 2, 3, 17, 18, 19
WEIGHTS, WEIGHTS_STATE, BIAS, MEAN, VARIANCE, SCALE, SHIFT, WORKSPACE, SCRATCH = 33, 34, 41, 49, 50, 51, 52, 64, 80
_STEP = 32768  # dnnl_arg_attr_multiple_post_op: the operand of a step has the number of its place times this, plus that of a weight
_DIFF = 128  # dnnl_arg_diff: the gradient of an argument has its number plus this (scale and shift: plus 204)


def gradient(role):
    """The role of the gradient of what has `role`."""
    return role + (204 if role in (SCALE, SHIFT) else _DIFF)


_QUERY = {"kernel": 8, "weights": 131, "weights_gradient": 132, "workspace": 135, "scratch": 136}
_FLOAT, _CPU, _ANY_ORDER, _SCRATCH_BY_USER = 3, 1, 1, 1


class Unavailable(RuntimeError):
    """The library is missing, of another generation, or refuses a primitive."""


class _Argument(ctypes.Structure):
    _fields_ = [("role", c_int), ("memory", c_void_p)]


class _Version(ctypes.Structure):
    _fields_ = [("major", c_int), ("minor", c_int), ("patch", c_int)]


# ------------------------------------------------------------------------------------------------ the library
class _Library:
    """The loaded library with an engine; made at first use, once."""

    def __init__(self):
        home = importlib.util.find_spec("mindspore").submodule_search_locations[0]
        found = sorted(glob.glob(os.path.join(home, "lib", "libdnnl.so*")))
        if not found:
            raise Unavailable("MindSpore's libdnnl was not found")
        try:
            self.calls = calls = ctypes.CDLL(found[0])
            calls.dnnl_version.restype = ctypes.POINTER(_Version)
            version = calls.dnnl_version().contents
        except (OSError, AttributeError) as error:
            raise Unavailable(f"{found[0]} cannot be used: {error}") from None
        self.version = f"{version.major}.{version.minor}.{version.patch}"
        if version.major != 3:
            raise Unavailable(f"oneDNN {self.version}: version 3 is needed")
        calls.dnnl_primitive_desc_query_md.restype = c_void_p
        calls.dnnl_memory_desc_get_size.restype = c_size_t
        calls.dnnl_primitive_execute.argtypes = [c_void_p, c_void_p, c_int, c_void_p]
        # done in no time: other threads need not be let in for it
        self.place = ctypes.PyDLL(found[0]).dnnl_memory_set_data_handle
        self.place.argtypes = [c_void_p, c_void_p]
        self.engine = c_void_p()
        self.check(calls.dnnl_engine_create(byref(self.engine), _CPU, c_size_t(0)), "engine")
        self.attributes = self.new_attributes()

    def new_attributes(self):
        """What operations have beside their shapes. Scratch memory is our own: the library's belongs to a thread, and operations
        run in several."""
        made = c_void_p()
        self.check(self.calls.dnnl_primitive_attr_create(byref(made)), "attributes")
        self.check(self.calls.dnnl_primitive_attr_set_scratchpad_mode(made, _SCRATCH_BY_USER), "attributes")
        return made

    @staticmethod
    def check(status, what):
        if status:
            raise Unavailable(f"oneDNN refuses {what} (status {status})")


_state = {"library": None, "error": None}


def library():
    """The library. Unavailable, with the reason, where it cannot be used."""
    if _state["error"] is not None:
        raise Unavailable(_state["error"])
    if _state["library"] is None:
        try:
            _state["library"] = _Library()
        except Unavailable as error:
            _state["error"] = str(error)
            raise
    return _state["library"]


class _Owned:
    """A handle of the library that is destroyed with its last reference."""

    __slots__ = ("_as_parameter_", "_destroy")

    def __init__(self, handle, kind):
        self._as_parameter_ = handle
        self._destroy = getattr(library().calls, f"dnnl_{kind}_destroy")

    def __del__(self):
        self._destroy(self._as_parameter_)


def numbers(*values):
    """A list of dimensions as the library takes it."""
    return (c_int64 * 12)(*values)


def number(value):
    """A float as the library takes it."""
    return c_float(value)


# ------------------------------------------------------------------------------------------------ memory
def layout(shape, strides=None):
    """How float32 numbers of this shape lie in memory: row by row, or with `strides` (in elements), or "any": as the
    library likes it best."""
    found, calls = c_void_p(), library().calls
    if strides == "any":
        status = calls.dnnl_memory_desc_create_with_tag(byref(found), len(shape), numbers(*shape), _FLOAT, _ANY_ORDER)
    else:
        if strides is None:
            strides = [int(np.prod(shape[i + 1:])) for i in range(len(shape))]
        status = calls.dnnl_memory_desc_create_with_strides(byref(found), len(shape), numbers(*shape), _FLOAT, numbers(*strides))
    library().check(status, f"a layout of {shape}")
    return _Owned(found, "memory_desc")


def channels_last(shape):
    """The layout of (N, C, …) with the channels innermost."""
    inner, strides = shape[1], []
    for n in shape[:1:-1]:
        strides.append(inner)
        inner *= n
    return layout(shape, [inner, 1, *reversed(strides)])


def same(one, other):
    """Whether two layouts are equal."""
    return library().calls.dnnl_memory_desc_equal(one, other) == 1


def room(size_of):
    """A float32 array that has room for what has this layout."""
    return np.empty(library().calls.dnnl_memory_desc_get_size(size_of) // 4 + 16, np.float32)


def address(array):
    """Where the first element of an array lies."""
    return array.__array_interface__["data"][0]


# ------------------------------------------------------------------------------------------------ operations
class Description:
    """What an operation does, of which shapes, by which kernel of the library."""

    __slots__ = ("_as_parameter_", "_handle", "kind")

    def __init__(self, kind, *arguments, engine_first=True, attributes=None):
        self.kind, found, lib = kind, c_void_p(), library()
        create = getattr(lib.calls, f"dnnl_{kind}_primitive_desc_create")
        if engine_first:
            arguments = (lib.engine, *arguments)
        lib.check(create(byref(found), *arguments, attributes or lib.attributes), kind.replace("_", " "))
        self._handle = _Owned(found, "primitive_desc")
        self._as_parameter_ = found

    @property
    def kernel(self):
        """The name of the library's kernel, as "jit:avx512_core"."""
        name = c_char_p()
        library().check(library().calls.dnnl_primitive_desc_query(self, _QUERY["kernel"], 0, byref(name)), "the name of a kernel")
        return name.value.decode()

    def next_kernel(self):
        """Go on to the kernel that the library would take next; False where there is none."""
        return library().calls.dnnl_primitive_desc_next_impl(self) == 0

    def layout(self, what, index=0):
        """The layout that the kernel wants for its weights, their gradient, workspace or scratch memory."""
        return c_void_p(library().calls.dnnl_primitive_desc_query_md(self, _QUERY[what], index))


_KEPT_SCRATCH = 1 << 14  # floats


class Operation:
    """A primitive of the library with its stream, memory objects and scratch memory; called with arrays, in the order of
    `roles`. One call at a time: whoever shares it between threads holds a lock."""

    def __init__(self, description, roles):
        """roles: (role, layout) pairs."""
        lib, self._description = library(), description
        primitive, stream = c_void_p(), c_void_p()
        lib.check(lib.calls.dnnl_primitive_create(byref(primitive), description), description.kind)
        lib.check(lib.calls.dnnl_stream_create(byref(stream), lib.engine, 1), "a stream")
        self._owned = [_Owned(primitive, "primitive"), _Owned(stream, "stream")]
        scratch = description.layout("scratch")
        self._room = lib.calls.dnnl_memory_desc_get_size(scratch) // 4 + 16
        self._scratch = np.empty(self._room, np.float32) if self._room <= _KEPT_SCRATCH else None
        roles = [*roles, (SCRATCH, scratch)]
        self._arguments, memories = (_Argument * len(roles))(), []
        for argument, (role, its_layout) in zip(self._arguments, roles):
            memory = c_void_p()
            lib.check(lib.calls.dnnl_memory_create(byref(memory), its_layout, lib.engine, None), "memory")
            self._owned.append(_Owned(memory, "memory"))
            argument.role, argument.memory = role, memory.value
            memories.append(memory.value)
        self._place, self._execute = lib.place, lib.calls.dnnl_primitive_execute
        self._scratch_memory = memories.pop()
        if self._scratch is not None:
            self._place(self._scratch_memory, address(self._scratch))
        self._memories, self._count = memories, len(roles)
        self._primitive, self._stream = primitive.value, stream.value

    def __call__(self, *arrays):
        place = self._place
        for memory, array in zip(self._memories, arrays):
            place(memory, array.__array_interface__["data"][0])
        if self._scratch is None:  # large, and there may be many operations: taken for the call
            scratch = np.empty(self._room, np.float32)
            place(self._scratch_memory, address(scratch))
        if self._execute(self._primitive, self._stream, self._count, self._arguments):
            raise RuntimeError(f"oneDNN failed in {self._description.kind}")


class Shared:
    """What several threads may call at once, though one of `make()` takes one call at a time: each call takes one that is free, or makes
    one."""

    def __init__(self, make):
        self._make, self._free = make, [make()]

    def __call__(self, *arrays):
        try:
            operation = self._free.pop()
        except IndexError:
            operation = self._make()
        operation(*arrays)
        self._free.append(operation)


def reorder(source, target):
    """The operation that copies from one layout to another."""
    lib = library()
    description = Description("reorder", source, lib.engine, target, lib.engine, engine_first=False)
    return Operation(description, [(SOURCE, source), (TARGET, target)])


VECTOR, SCALAR, TARGET_TIMES = "vector", "scalar", "target"


def chain(count, start, *steps):
    """A formula over vectors of `count` numbers as one operation, called with its operands in order and then with the target.

    `start`: (operation, operand, operand); then steps on what has been found so far: (operation, operand), with an operand that is a
    VECTOR or a SCALAR, an array of one number; (SQUARE_ROOT,); or (TARGET_TIMES, factor): what stands in the target, times a number
    that is fixed now, is added.
    """
    lib, kinds = library(), {VECTOR: layout((count,)), SCALAR: layout((1,))}
    operation, first, second = start
    roles = [(SOURCE, kinds[first]), (SOURCE_STATE, kinds[second])]
    attributes, formula = _Owned(lib.new_attributes(), "primitive_attr"), c_void_p()
    lib.check(lib.calls.dnnl_post_ops_create(byref(formula)), "a formula")
    formula = _Owned(formula, "post_ops")
    for place, (what, *operand) in enumerate(steps, 1):
        if what == TARGET_TIMES:
            status = lib.calls.dnnl_post_ops_append_sum(formula, number(*operand), c_int(0), c_int(0))
        elif what == SQUARE_ROOT:
            status = lib.calls.dnnl_post_ops_append_eltwise(formula, what, number(0), number(0))
        else:
            status = lib.calls.dnnl_post_ops_append_binary(formula, what, kinds[operand[0]])
            roles.append((_STEP * place | SOURCE_STATE, kinds[operand[0]]))
        lib.check(status, "a formula")
    lib.check(lib.calls.dnnl_primitive_attr_set_post_ops(attributes, formula), "a formula")
    description = Description("binary", operation, kinds[first], kinds[second], kinds[VECTOR], attributes=attributes)
    return Operation(description, [*roles, (TARGET, kinds[VECTOR])])
