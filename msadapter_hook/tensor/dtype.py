"""Data types: the `dtype` singletons, their NumPy counterparts, promotion, casting, limits, layouts, memory formats.
Pure tables over NumPy; nothing here knows of tensors beyond `.dtype` and `.dim()`."""

import math
import threading
from functools import lru_cache

import ml_dtypes
import numpy as np

BOOL, INTEGRAL, FLOATING, COMPLEX = range(4)  # categories, in promotion order
DIMENSIONED, ZERO_DIM, WRAPPED = range(3)  # priorities of operands, strongest first


def _closed(name):
    """`__new__` and `__init_subclass__` of types that PyTorch lets nobody instantiate or subclass."""

    def __new__(cls, *args, **kwargs):
        raise TypeError(f"cannot create 'torch.{name}' instances")

    def __init_subclass__(cls, **kwargs):
        raise TypeError(f"type 'torch.{name}' is not an acceptable base type")

    return __new__, __init_subclass__


class _Singleton:
    """A named constant of the `torch` namespace; printed, copied and pickled by its name."""

    __slots__ = ()
    __module__ = "torch"

    def __repr__(self):
        return "torch." + self._name

    def __reduce__(self):
        return self._name

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __setattr__(self, name, value):
        cls = type(self)
        if hasattr(cls, name):
            raise AttributeError(f"attribute '{name}' of '{cls.__module__}.{cls.__name__}' objects is not writable")
        raise AttributeError(f"'{cls.__module__}.{cls.__name__}' object has no attribute '{name}'")


def _make(cls, **fields):
    """The one way to make an instance of a closed type."""
    obj = object.__new__(cls)
    for key, value in fields.items():
        object.__setattr__(obj, key, value)
    return obj


_TYPE_NAMES = {  # where C++ has another name than Python
    "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}


class dtype(_Singleton):
    """The type of a tensor's elements.

    As in PyTorch: `itemsize`, `is_floating_point`, `is_complex`, `is_signed`, `abbr`, `to_real()`, `to_complex()`.
    Beyond it: `numpy` (the np.dtype of the stored array), `category`, `scalar_name` (as in PyTorch's error texts).
    Source: PyTorch, torch.dtype.
    """

    __slots__ = (
        "_name",
        "abbr",
        "category",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "number",
        "numpy",
        "scalar_name",
    )
    __module__ = "torch"
    __new__, __init_subclass__ = _closed("dtype")

    def __getattr__(self, name):
        if name == "numpy":  # reached only where it was never set: QUANTIZED
            raise NotImplementedError(f"{self!r}: tensors of quantized types are not provided; keep the values in "
                                      "floating point or in an integer type")
        raise AttributeError(f"'torch.dtype' object has no attribute '{name}'")

    @property
    def type_name(self):
        """The C++ type of an element, as some of PyTorch's error texts have it."""
        return _TYPE_NAMES.get(self._name, self._name)

    def to_real(self):
        """The type of the real part; real types are their own."""
        return _REAL.get(self, self)

    def to_complex(self):
        """The complex type that holds values of this type. RuntimeError where there is none."""
        try:
            return _COMPLEX[self]
        except KeyError:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}") from None


# name, other name, PyTorch's scalar type name, bytes, category, signed, stored as.
# complex32 has no NumPy type: it is stored as complex64 and rounded by whoever computes in it.
_TABLE = [
    ("uint8", None, "Byte", 1, INTEGRAL, False, np.uint8),
    ("int8", None, "Char", 1, INTEGRAL, True, np.int8),
    ("int16", "short", "Short", 2, INTEGRAL, True, np.int16),
    ("int32", "int", "Int", 4, INTEGRAL, True, np.int32),
    ("int64", "long", "Long", 8, INTEGRAL, True, np.int64),
    ("float16", "half", "Half", 2, FLOATING, True, np.float16),
    ("float32", "float", "Float", 4, FLOATING, True, np.float32),
    ("float64", "double", "Double", 8, FLOATING, True, np.float64),
    ("complex32", "chalf", "ComplexHalf", 4, COMPLEX, True, np.complex64),
    ("complex64", "cfloat", "ComplexFloat", 8, COMPLEX, True, np.complex64),
    ("complex128", "cdouble", "ComplexDouble", 16, COMPLEX, True, np.complex128),
    ("bool", None, "Bool", 1, BOOL, False, np.bool_),
    ("bfloat16", None, "BFloat16", 2, FLOATING, True, ml_dtypes.bfloat16),
    ("float8_e5m2", None, "Float8_e5m2", 1, FLOATING, True, ml_dtypes.float8_e5m2),
    ("float8_e4m3fn", None, "Float8_e4m3fn", 1, FLOATING, True, ml_dtypes.float8_e4m3fn),
    ("float8_e5m2fnuz", None, "Float8_e5m2fnuz", 1, FLOATING, True, ml_dtypes.float8_e5m2fnuz),
    ("float8_e4m3fnuz", None, "Float8_e4m3fnuz", 1, FLOATING, True, ml_dtypes.float8_e4m3fnuz),
    ("float8_e8m0fnu", None, "Float8_e8m0fnu", 1, FLOATING, False, ml_dtypes.float8_e8m0fnu),
    ("uint16", None, "UInt16", 2, INTEGRAL, False, np.uint16),
    ("uint32", None, "UInt32", 4, INTEGRAL, False, np.uint32),
    ("uint64", None, "UInt64", 8, INTEGRAL, False, np.uint64),
]


def _abbreviation(name, itemsize):
    """`f32`, `bf16`, `u8`, `b8`, `f8e5m2`."""
    stem = name.rstrip("0123456789") if "8_" not in name else ""
    if stem:
        return ("bf" if stem == "bfloat" else stem[0]) + str(8 * itemsize)
    return name.replace("float", "f").replace("_", "")


DTYPES = {}  # every public name (both names of a type) → dtype
for _number, (_name, _other, _scalar, _bytes, _cat, _signed, _np) in enumerate(_TABLE):
    DTYPES[_name] = _make(
        dtype, _name=_name, itemsize=_bytes, is_floating_point=_cat == FLOATING, is_complex=_cat == COMPLEX,
        is_signed=_signed, numpy=np.dtype(_np), category=_cat, scalar_name=_scalar, number=_number,
        abbr=_abbreviation(_name, _bytes),
    )
    if _other:
        DTYPES[_other] = DTYPES[_name]

ALL = tuple(DTYPES[row[0]] for row in _TABLE)

# Types that programs name (in tables, in comparisons) and of which no tensor can be made.
QUANTIZED = {
    _name: _make(dtype, _name=_name, itemsize=_bytes, is_floating_point=False, is_complex=False, is_signed=_signed,
                 category="quantized", scalar_name=_scalar, number=_number, abbr=_name)
    for _number, (_name, _scalar, _bytes, _signed) in enumerate(
        [("qint8", "QInt8", 1, True), ("quint8", "QUInt8", 1, False), ("qint32", "QInt32", 4, True),
         ("quint4x2", "QUInt4x2", 1, False), ("quint2x4", "QUInt2x4", 1, False),
         *((f"uint{n}", f"UInt{n}", 1, False) for n in range(1, 8)), *((f"int{n}", f"Int{n}", 1, True) for n in range(1, 8)),
         *((f"bits{n}", f"Bits{n}", 2 if n == "16" else 1, False) for n in ("1x8", "2x4", "4x2", "8", "16")),
         ("float4_e2m1fn_x2", "Float4_e2m1fn_x2", 1, True)], len(_TABLE))}

uint8, int8, int16, int32, int64 = (DTYPES[n] for n in ("uint8", "int8", "int16", "int32", "int64"))
uint16, uint32, uint64 = (DTYPES[n] for n in ("uint16", "uint32", "uint64"))
float16, float32, float64, bfloat16 = (DTYPES[n] for n in ("float16", "float32", "float64", "bfloat16"))
float8_e4m3fn, float8_e5m2 = DTYPES["float8_e4m3fn"], DTYPES["float8_e5m2"]
complex32, complex64, complex128 = (DTYPES[n] for n in ("complex32", "complex64", "complex128"))
# `bool`, `int` and `float` keep Python's meaning in this module.
bool_, half, double, short, long = DTYPES["bool"], float16, float64, int16, int64
float8_e5m2fnuz, float8_e4m3fnuz, float8_e8m0fnu = ALL[15:18]
chalf, cfloat, cdouble = complex32, complex64, complex128

FLOAT8 = frozenset(t for t in ALL if t._name.startswith("float8"))
_BAREBONES = frozenset((uint16, uint32, uint64))  # unsigned types that PyTorch does not promote among integers

_REAL = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX = {float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128}
_COMPLEX.update({c: c for c in _REAL})


def is_integral(t, include_bool=False):
    """Whether `t` holds integers (and, if asked, truth values)."""
    return t.category == INTEGRAL or (include_bool and t.category == BOOL)


# ---------------------------------------------------------------- NumPy and Python types

_FROM_NUMPY = {t.numpy: t for t in ALL if t is not complex32}
_FROM_NUMPY[np.dtype(np.complex64)] = complex64
# Platform aliases (np.longlong beside np.int64) compare equal but need not hash alike on every NumPy.
for _t in (np.longlong, np.ulonglong, np.intc, np.uintc, np.int_, np.uint):
    _FROM_NUMPY.setdefault(np.dtype(_t), _FROM_NUMPY[np.dtype(f"{np.dtype(_t).kind}{np.dtype(_t).itemsize}")])

_FROM_PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}


def from_numpy_dtype(dt):
    """The dtype of arrays of NumPy dtype `dt` (ml_dtypes' bfloat16 and float8 included).

    TypeError where there is none, ValueError for a foreign byte order. Source: PyTorch, torch.from_numpy."""
    try:
        return _FROM_NUMPY[dt]
    except (KeyError, TypeError):
        pass
    dt = np.dtype(dt)
    if dt in _FROM_NUMPY:
        return _FROM_NUMPY[dt]
    if not dt.isnative and dt.newbyteorder("=") in _FROM_NUMPY:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    raise TypeError(
        f"can't convert np.ndarray of type {dt.type.__module__}.{dt.type.__name__}. The only supported types are: "
        "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
        "and bool."
    )


def from_python_type(t):
    """The dtype that a Python type stands for as a `dtype=` argument (`float` → float64), or None."""
    return _FROM_PYTHON.get(t)


# ---------------------------------------------------------------- the default dtype

_default = float32
_default_lock = threading.Lock()


def get_default_dtype():
    """The dtype of floating Python numbers and of factories without `dtype=`. Source: PyTorch."""
    return _default


def set_default_dtype(d):
    """Set the default dtype of the process; TypeError unless a floating type. Source: PyTorch."""
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d in FLOAT8:
        raise TypeError(f"couldn't find storage object {d.scalar_name}Storage")
    with _default_lock:
        _default = d


def get_default_complex_dtype():
    """The dtype of complex Python numbers."""
    return _COMPLEX[_default]


# ---------------------------------------------------------------- promotion

_LADDER = {t: i for i, t in enumerate((int8, int16, int32, int64))}


def _promote(a, b):
    """The smallest type that holds both by PyTorch's lattice, or None where PyTorch refuses."""
    if a is b:
        return a
    if a in FLOAT8 or b in FLOAT8:
        return None
    if a.category > b.category:
        a, b = b, a  # b is the higher category now
    if a in _BAREBONES or b in _BAREBONES:
        return b if b.category == FLOATING else None
    if b.category == COMPLEX:
        if a.category < FLOATING:
            return b
        width = max(_COMPLEX[a].itemsize, b.itemsize)
        return {4: complex32, 8: complex64, 16: complex128}[width]
    if b.category == FLOATING:
        if a.category < FLOATING:
            return b
        if a.itemsize == b.itemsize:  # float16 with bfloat16: neither holds the other
            return float32
        return a if a.itemsize > b.itemsize else b
    if a.category == BOOL:
        return b
    if uint8 in (a, b):
        signed = a if b is uint8 else b
        return int16 if signed is int8 else signed
    return a if _LADDER[a] > _LADDER[b] else b


_PROMOTE = {(a, b): _promote(a, b) for a in ALL for b in ALL}


def promote_types(type1, type2):
    """The smallest dtype both can be cast to. RuntimeError for float8 and for mixed unsigned types.

    Source: PyTorch, torch.promote_types."""
    try:
        found = _PROMOTE[type1, type2]
    except (KeyError, TypeError):
        for position, (name, t) in enumerate((("type1", type1), ("type2", type2)), 1):
            if not isinstance(t, dtype):
                raise TypeError(
                    f"promote_types(): argument '{name}' (position {position}) must be torch.dtype, "
                    f"not {type(t).__name__}"
                ) from None
        raise
    if found is None:
        kind = "Float8 Types" if (type1 in FLOAT8 or type2 in FLOAT8) else "uint16, uint32, uint64 types"
        raise RuntimeError(
            f"Promotion for {kind} is not supported, attempted to promote {type1.scalar_name} and {type2.scalar_name}"
        )
    return found


def can_cast(from_, to):
    """Whether a result of type `from_` may be written into `to`: never down a category.

    TypeError for anything but dtypes. Source: PyTorch, torch.can_cast."""
    for place, given in enumerate((from_, to), 1):
        if not isinstance(given, dtype):
            raise TypeError(f"can_cast(): argument '{('from_', 'to')[place - 1]}' (position {place}) must be torch.dtype, not "
                            f"{type(given).__name__}")
    if from_.is_complex:
        return to.is_complex
    if from_.is_floating_point:
        return to.category >= FLOATING
    return from_.category == BOOL or to.category != BOOL


def scalar_dtype(value):
    """The dtype that a Python or NumPy number takes part in promotion with, or None if it is no number.

    NumPy scalars count by their kind only, as PyTorch treats them as Python numbers."""
    kind = type(value)
    if kind is bool or kind is np.bool_:
        return bool_
    if kind is int:
        return int64
    if kind is float:
        return _default
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating, ml_dtypes.bfloat16)):
        return _default
    if isinstance(value, (complex, np.complexfloating)):
        return _COMPLEX[_default]
    return None


def _combine(higher, lower):
    """A stronger priority keeps its type unless the weaker one is of a higher category."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.category == COMPLEX:
        return higher
    if higher.category == FLOATING:
        return higher.to_complex() if lower.category == COMPLEX else higher
    if lower.category == COMPLEX:
        return lower  # also beside uint16 and its like, for which promote_types refuses
    if higher.category == BOOL or lower.category >= FLOATING:
        return promote_types(higher, lower)
    return higher


@lru_cache(maxsize=4096)
def _result(key):
    best = [None, None, None]
    for t, priority in key:
        best[priority] = t if best[priority] is None else promote_types(best[priority], t)
    return _combine(best[DIMENSIONED], _combine(best[ZERO_DIM], best[WRAPPED]))


def result_dtype(typed):
    """The dtype of an operation over `typed`, a sequence of (dtype, DIMENSIONED | ZERO_DIM | WRAPPED).

    The types of one priority are promoted together; tensors with dimensions outweigh zero-dim tensors, and those
    outweigh Python numbers, unless the weaker is of a higher category."""
    return _result(tuple(typed))


def result_type(operands):
    """The dtype of an operation over tensors (`.dtype`, `.dim()`) and Python or NumPy numbers.

    Source: PyTorch, torch.result_type. TypeError for anything else."""
    typed = []
    for x in operands:
        t = getattr(x, "dtype", None)
        if isinstance(t, dtype):
            typed.append((t, DIMENSIONED if x.dim() else ZERO_DIM))
            continue
        t = scalar_dtype(x)
        if t is None:
            raise TypeError(f"result_type(): expected a tensor or a number, got {type(x).__name__}")
        typed.append((t, WRAPPED))
    return _result(tuple(typed))


# ---------------------------------------------------------------- finfo, iinfo

# dtype → (bits of precision with the hidden one, exponent of the smallest normal, largest value); where a type departs
# from the rule (min = -max, eps = 2 ** (1 - precision)), PyTorch's figure is in _ODD.
_FLOATS = {
    float16: (11, -14, 65504.0),
    bfloat16: (8, -126, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)),
    float32: (24, -126, float(np.finfo(np.float32).max)),
    float64: (53, -1022, float(np.finfo(np.float64).max)),
    float8_e4m3fn: (4, -6, 448.0),
    float8_e5m2: (3, -14, 57344.0),
    float8_e4m3fnuz: (4, -7, 240.0),
    float8_e5m2fnuz: (3, -15, 57344.0),
    float8_e8m0fnu: (1, -127, 2.0**127),
}
_ODD = {float8_e5m2fnuz: {"eps": 0.125}, float8_e8m0fnu: {"min": 2.0**-127}}


class _Info:
    __slots__ = ()
    __hash__ = None  # PyTorch's are unhashable

    def __eq__(self, other):
        return type(self) is type(other) and self.dtype == other.dtype

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute '{name}' of 'torch.{type(self).__name__}' objects is not writable")

    def _set(self, **fields):
        for key, value in fields.items():
            object.__setattr__(self, key, value)


class finfo(_Info):
    """Limits of a floating (or the real part of a complex) dtype; without an argument, of the default dtype.

    Source: PyTorch, torch.finfo. TypeError for other types."""

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")
    __module__ = "torch"

    def __init__(self, type=None):
        t = _default if type is None else type
        if not isinstance(t, dtype):
            raise TypeError(f"finfo(): argument 'type' (position 1) must be torch.dtype, not {t.__class__.__name__}")
        t = t.to_real()
        if t not in _FLOATS:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        precision, exponent, largest = _FLOATS[t]
        tiny = math.ldexp(1.0, exponent)
        self._set(
            bits=8 * t.itemsize, eps=math.ldexp(1.0, 1 - precision), max=largest, min=-largest, tiny=tiny,
            smallest_normal=tiny, resolution=float(f"1e-{int((precision - 1) * math.log10(2))}"), dtype=t._name,
        )
        self._set(**_ODD.get(t, {}))

    def __repr__(self):
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):g}' for n in names)}, dtype={self.dtype})"


class iinfo(_Info):
    """Limits of an integer dtype. Source: PyTorch, torch.iinfo. TypeError for other types."""

    __slots__ = ("bits", "dtype", "max", "min")
    __module__ = "torch"

    def __init__(self, *args, type=None):
        if not args and type is None:
            raise TypeError('iinfo() missing 1 required positional arguments: "type"')
        t = args[0] if args else type
        if not isinstance(t, dtype):
            raise TypeError(f"iinfo(): argument 'type' (position 1) must be torch.dtype, not {t.__class__.__name__}")
        if t is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if t.category != INTEGRAL:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        bits = 8 * t.itemsize
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if t.is_signed else (0, (1 << bits) - 1)
        self._set(bits=bits, min=low, max=high, dtype=t._name)

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


# ---------------------------------------------------------------- layouts and memory formats


class layout(_Singleton):
    """How a tensor's elements lie in memory. Source: PyTorch, torch.layout."""

    __slots__ = ("_name",)
    __module__ = "torch"
    __new__, __init_subclass__ = _closed("layout")


class memory_format(_Singleton):
    """The order of a tensor's dimensions in memory. Source: PyTorch, torch.memory_format."""

    __slots__ = ("_name",)
    __module__ = "torch"
    __new__, __init_subclass__ = _closed("memory_format")


_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
LAYOUTS = {n: _make(layout, _name=n) for n in _LAYOUTS}
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
MEMORY_FORMATS = {n: _make(memory_format, _name=n) for n in _FORMATS}
strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged = LAYOUTS.values()
contiguous_format, preserve_format, channels_last, channels_last_3d = MEMORY_FORMATS.values()
