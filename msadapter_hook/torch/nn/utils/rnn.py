# Sequences of different lengths: packing, padding, and back.
import itertools
from collections import namedtuple

from ... import Tensor, arange, as_tensor, cat, empty_like, int64, tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence",
    "unpad_sequence", "pack_sequence", "unpack_sequence",
]  # fmt: skip


class PackedSequence_(namedtuple("PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])):
    __slots__ = ()


def bind(optional, fn):
    """`fn(optional)`, or None for None."""
    return None if optional is None else fn(optional)


class PackedSequence(PackedSequence_):
    """Sequences without padding: step by step, the values of those that are still running. Source: PyTorch,
    torch.nn.utils.rnn.PackedSequence.

    `data` (total, *), `batch_sizes` (T) on the CPU, and the permutations that sort by length and back, or None.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        return super().__new__(cls, *_packed_sequence_init_args(data, batch_sizes, sorted_indices, unsorted_indices))

    def _with(self, data, sorted_indices, unsorted_indices):
        return type(self)(data, self.batch_sizes, sorted_indices, unsorted_indices)

    def pin_memory(self):
        return self._with(
            self.data.pin_memory(),
            bind(self.sorted_indices, lambda t: t.pin_memory()),
            bind(self.unsorted_indices, lambda t: t.pin_memory()),
        )

    def to(self, *args, **kwargs):
        """Move and/or cast the data; the indices only move."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        kwargs = {key: value for key, value in kwargs.items() if key not in ("device", "dtype")}
        return self._with(
            data,
            bind(self.sorted_indices, lambda t: t.to(data.device, **kwargs)),
            bind(self.unsorted_indices, lambda t: t.to(data.device, **kwargs)),
        )

    def cuda(self, *args, **kwargs):
        if tensor((), device=self.data.device).to(*args, **kwargs).is_cuda:
            return self.to(*args, **kwargs)
        return self.to(*args, **{**kwargs, "device": "cuda"})

    def cpu(self, *args, **kwargs):
        if tensor((), device=self.data.device).to(*args, **kwargs).device.type == "cpu":
            return self.to(*args, **kwargs)
        return self.to(*args, **{**kwargs, "device": "cpu"})

    def _cast(self, name):
        data = getattr(self.data, name)()
        return self if data is self.data else self._with(data, self.sorted_indices, self.unsorted_indices)

    def double(self):
        return self._cast("double")

    def float(self):
        return self._cast("float")

    def half(self):
        return self._cast("half")

    def long(self):
        return self._cast("long")

    def int(self):
        return self._cast("int")

    def short(self):
        return self._cast("short")

    def char(self):
        return self._cast("char")

    def byte(self):
        return self._cast("byte")

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def _packed_sequence_init_args(data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
    if unsorted_indices is None:
        unsorted_indices = invert_permutation(sorted_indices)
    if batch_sizes is not None:
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. https://pytorch.org/docs/main/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return data, batch_sizes, sorted_indices, unsorted_indices
    if not isinstance(data, (list, tuple)) or len(data) != 2:
        raise AssertionError("Expected data to be a list or tuple of length 2")
    return data[0], data[1], sorted_indices, unsorted_indices


def invert_permutation(permutation):
    """The permutation that undoes `permutation` (1-d indices), None for None."""
    if permutation is None:
        return None
    inverse = empty_like(permutation)
    inverse.scatter_(0, permutation, arange(0, permutation.numel(), device=permutation.device))
    return inverse


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack input (T, B, *) (batch first: (B, T, *)) whose b-th sequence has `lengths[b]` steps.

    `enforce_sorted`: the lengths must fall (RuntimeError), else they are sorted here. RuntimeError also for lengths
    that are not positive or not as many as the batch. Source: PyTorch, torch.nn.utils.rnn.pack_padded_sequence.
    """
    if not isinstance(lengths, Tensor):
        lengths = as_tensor(lengths, dtype=int64, device="cpu")
    elif lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got 1D {lengths.device} {lengths.dtype} tensor"
        )
    sorted_indices = None
    if not enforce_sorted:
        from ... import sort

        lengths, sorted_indices = sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.dim() != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D cpu {lengths.dtype.scalar_name} "
                           "tensor")
    sizes = [int(n) for n in lengths.tolist()]
    if batch_first:
        input = input.transpose(0, 1)
    if len(sizes) != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={input.size(1)})"
        )
    if any(a < b for a, b in zip(sizes, sizes[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if sizes[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if sizes[0] > input.size(0):
        raise RuntimeError(f"Expected lengths of at most {input.size(0)} steps, but got {sizes[0]}")
    batch_sizes = [sum(1 for n in sizes if n > t) for t in range(sizes[0])]
    # Steps of equal batch size are cut out together.
    parts = []
    for size, group in itertools.groupby(range(sizes[0]), key=batch_sizes.__getitem__):
        steps = list(group)
        part = input[steps[0] : steps[-1] + 1, :size]
        parts.append(part.reshape(len(steps) * size, *input.shape[2:]))
    data = cat(parts) if len(parts) > 1 else parts[0]
    return _packed_sequence_init(data, tensor(batch_sizes, dtype=int64), sorted_indices, None)


def _packed_sequence_init(data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
    return PackedSequence(data, batch_sizes, sorted_indices, unsorted_indices)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(padded (T, B, *) or batch first (B, T, *), lengths (B)) of a packed sequence, T at least `total_length`.

    ValueError when `total_length` is shorter than the longest sequence. Source: PyTorch,
    torch.nn.utils.rnn.pad_packed_sequence.
    """
    data, batch_sizes, _, unsorted_indices = sequence
    sizes = batch_sizes.tolist()
    longest = len(sizes)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    batch = sizes[0]
    rest = tuple(data.shape[1:])
    parts = []
    row = 0
    for size, group in itertools.groupby(sizes):
        steps = len(list(group))
        part = data[row : row + steps * size].reshape(steps, size, *rest)
        row += steps * size
        if size < batch:
            part = cat([part, data.new_full((steps, batch - size, *rest), padding_value)], 1)
        parts.append(part)
    if longest > len(sizes):
        parts.append(data.new_full((longest - len(sizes), batch, *rest), padding_value))
    padded = cat(parts) if len(parts) > 1 else parts[0]
    # The b-th sequence runs as long as more than b sequences run.
    lengths = tensor([sum(1 for size in sizes if size > b) for b in range(batch)], dtype=int64)
    if batch_first:
        padded = padded.transpose(0, 1)
    if unsorted_indices is not None:
        return padded.index_select(0 if batch_first else 1, unsorted_indices), lengths[unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Stack sequences (Lᵢ, *) into (T, B, *) or (B, T, *), padded to the longest on one side. Source: PyTorch,
    torch.nn.utils.rnn.pad_sequence.
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, (list, tuple)):
        if not hasattr(sequences, "__iter__"):
            raise RuntimeError(
                f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
            )
        sequences = tuple(sequences)
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = sequences[0]
    longest = max(sequence.size(0) for sequence in sequences)
    shape = (len(sequences), longest) if batch_first else (longest, len(sequences))
    padded = first.new_full((*shape, *first.shape[1:]), padding_value)
    for index, sequence in enumerate(sequences):
        length = sequence.size(0)
        steps = slice(0, length) if padding_side == "right" else slice(longest - length, longest)
        if batch_first:
            padded[index, steps] = sequence
        else:
            padded[steps, index] = sequence
    return padded


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded tensor, each cut to its length. Source: PyTorch,
    torch.nn.utils.rnn.unpad_sequence.
    """
    if not batch_first:
        # In place, as PyTorch does it: the caller's tensor is batch first afterwards.
        padded_sequences.transpose_(0, 1)
    return [sequence[:length] for sequence, length in zip(padded_sequences, lengths.tolist())]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of sequences (Lᵢ, *). Source: PyTorch, torch.nn.utils.rnn.pack_sequence."""
    lengths = as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The list of sequences of a packed one. Source: PyTorch, torch.nn.utils.rnn.unpack_sequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
