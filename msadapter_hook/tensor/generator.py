"""`Generator`: the state of PyTorch's CPU random number generator (MT19937), seed for seed.
The streams drawn from it are in streams.py; tensors do not appear here (states are byte arrays)."""

import os
import struct

import numpy as np

from msadapter_hook.tensor.device import device as Device

DEFAULT_SEED = 67280421310721
_WORDS = 624
STATE_BYTES = 5056
# little-endian: seed; draws left before the next refill, seeded flag; position; then 624 words of 8 bytes;
# then the normals: x, y, rho, valid + padding; then a float32 normal, its valid flag + padding
_HEAD = struct.Struct("<QiiQ")
_NORMALS = struct.Struct("<dddii")
_TAIL = struct.Struct("<fBxxx")
_WORDS_AT = _HEAD.size
_NORMALS_AT = _WORDS_AT + 8 * _WORDS


def state_out(array):
    """How `get_state` hands out its bytes; the tensor layer sets this to make a ByteTensor."""
    return array


def state_in(state):
    """How `set_state` reads what it is given: a uint8 array, or TypeError; the tensor layer sets its own."""
    if not isinstance(state, np.ndarray):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
    if state.dtype != np.uint8:
        raise TypeError("RNG state must be a torch.ByteTensor")
    return state


def check_seed(seed):
    """`seed` as an unsigned 64-bit number; negative ones count from 2**64. ValueError beyond the range."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
    seed = int(seed)
    if not -(1 << 63) <= seed < 1 << 64:
        raise ValueError("Overflow when unpacking long long")
    return seed & 0xFFFFFFFFFFFFFFFF


class Generator:
    """A pseudorandom number generator whose streams are those of PyTorch on CPU.

    `Generator(device="cpu")`; an accelerator's generator draws on the host from the same streams.
    Source: PyTorch, torch.Generator."""

    __slots__ = ("__weakref__", "_bits", "_device", "_legacy", "_seed", "cached_normal")
    __module__ = "torch._C"

    def __init__(self, device=None):
        self._device = Device("cpu" if device is None else device)
        if self._device.type == "meta":
            raise RuntimeError("META device type not an accelerator.")
        if self._device.type not in ("cpu", "cuda", "npu", "xpu", "mps", "hpu", "mtia", "privateuseone"):
            raise RuntimeError(f"{self._device.type.upper()} device type not an accelerator.")
        self._bits = np.random.MT19937(0)
        # Over the same bits: hands out large blocks as uint32, half the memory of random_raw.
        self._legacy = np.random.RandomState(self._bits)
        self._reseed(DEFAULT_SEED)

    def _reseed(self, seed):
        self._seed = seed
        self._bits._legacy_seeding(seed & 0xFFFFFFFF)  # init_genrand, in C
        self.cached_normal = None  # the second value of the scalar normal, kept between calls

    @property
    def device(self):
        """The device the generator belongs to."""
        return self._device

    def manual_seed(self, seed, /):
        """Start the stream of `seed` (−2**63 … 2**64 − 1) and return the generator. Source: PyTorch."""
        self._reseed(check_seed(seed))
        return self

    def seed(self):
        """Seed from the system's entropy and return the seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self._reseed(seed)
        return seed

    def initial_seed(self):
        """The seed last set."""
        return self._seed

    # ------------------------------------------------------------ raw draws

    def draw(self):
        """One 32-bit draw, as a Python int."""
        return self._bits.random_raw()

    def draw53(self):
        """One uniform of 53 bits in [0, 1), as a Python float: two draws, the high word first."""
        raw = self._bits.random_raw
        high = raw()
        return (((high << 32) | raw()) & 0x1FFFFFFFFFFFFF) * 2.0**-53

    def draws(self, n):
        """`n` 32-bit draws, as an integer array (uint32 or uint64)."""
        if n > 4096:
            return self._legacy.randint(0, 1 << 32, size=n, dtype=np.uint32)
        return self._bits.random_raw(n)

    def draws64(self, n):
        """`n` 64-bit draws (two words each, the high one first), as a uint64 array."""
        if n > 2048:
            words = self._legacy.randint(0, 1 << 32, size=2 * n, dtype=np.uint32).reshape(n, 2)
            # little-endian words swapped in place of a shift and an or
            return np.ascontiguousarray(words[:, ::-1]).view("<u8").reshape(n).astype(np.uint64, copy=False)
        words = self._bits.random_raw(2 * n)
        return (words[0::2] << np.uint64(32)) | words[1::2]

    # ------------------------------------------------------------ state

    def _to_bytes(self):
        """The state as 5,056 bytes in PyTorch's layout."""
        inner = self._bits.state["state"]
        words, position = inner["key"], int(inner["pos"])
        left, following = 625 - position, position
        if position == _WORDS and self._is_fresh(words):
            following = 0  # PyTorch distinguishes "nothing drawn yet" from "all drawn"
        cached = self.cached_normal
        return b"".join((
            _HEAD.pack(self._seed, left, 1, following),
            np.asarray(words, "<u8").tobytes(),
            _NORMALS.pack(0.0, 0.0 if cached is None else cached, 0.0, cached is not None, 0),
            _TAIL.pack(0.0, 0),
        ))

    def _is_fresh(self, words):
        twin = np.random.MT19937(0)
        twin._legacy_seeding(self._seed & 0xFFFFFFFF)
        return np.array_equal(twin.state["state"]["key"], words)

    def _from_bytes(self, data):
        if len(data) != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG state size to be "
                f"{len(data)}"
            )
        seed, left, seeded, following = _HEAD.unpack_from(data)
        if not seeded or not 0 < left <= _WORDS or following > _WORDS:
            raise RuntimeError("Invalid mt19937 state")
        words = np.frombuffer(data, "<u8", _WORDS, _WORDS_AT).astype(np.uint32)
        _, cached, _, valid, _ = _NORMALS.unpack_from(data, _NORMALS_AT)
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": words, "pos": 625 - left}}
        self._seed = seed
        self.cached_normal = cached if valid else None

    def get_state(self):
        """The state as 5,056 bytes (uint8). Source: PyTorch, torch.Generator.get_state."""
        return state_out(np.frombuffer(self._to_bytes(), np.uint8).copy())

    def set_state(self, new_state, /):
        """Continue from a state of `get_state`, PyTorch's own included; returns the generator.

        TypeError unless uint8, RuntimeError for a wrong size or an impossible state."""
        self._from_bytes(state_in(new_state).tobytes())
        return self

    def clone_state(self):
        """A new generator in the same state, independent from here on."""
        other = type(self)(self._device)
        other._from_bytes(self._to_bytes())
        return other

    def fork(self):
        """A new generator seeded by a draw of this one (one 64-bit draw)."""
        return type(self)(self._device).manual_seed(int(self.draws64(1)[0]))

    def graphsafe_get_state(self):
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state):
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def get_offset(self):
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset):
        raise RuntimeError("CPU Generator does not use offset")

    def __repr__(self):
        return f"<torch._C.Generator object at {id(self):#x}>"

    def __deepcopy__(self, memo):
        return self.clone_state()

    __copy__ = clone_state

    def __reduce__(self):
        return type(self), (self._device,), (self._seed, None, self.get_state())

    def __setstate__(self, state):
        seed, _offset, bits = state
        self.manual_seed(seed)
        self.set_state(bits)


default_generator = Generator()
default_generator.seed()  # of the system's entropy, as PyTorch's: a program that sets no seed draws other numbers each time
