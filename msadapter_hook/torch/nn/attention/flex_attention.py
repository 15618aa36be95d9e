# torch.nn.attention.flex_attention: attention with scores changed by a function, and masks that are kept as blocks.
import itertools
import math
from typing import NamedTuple

from ... import (
    Tensor,
    arange,
    argsort,
    float32,
    inf,
    int32,
    logsumexp,
    ones,
    where,
    zeros_like,
)
from ... import (
    bool as bool_,
)
from ..._functorch.vmap import vmap
from .. import functional as F

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "create_nested_block_mask",
           "flex_attention", "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30


class AuxRequest(NamedTuple):
    """What flex_attention gives beside its result. Source: PyTorch, torch.nn.attention.flex_attention.AuxRequest."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for, each (B, H, Q) float32 or None. Source: PyTorch, torch.nn.attention.flex_attention.AuxOutput."""

    lse: object = None
    max_scores: object = None


def noop_mask(batch, head, token_q, token_kv):
    """A mask that lets everything through."""
    return batch.new_ones(size=(), dtype=bool_)


def and_masks(*mask_mods):
    """A mask that lets through what all of them do. RuntimeError where one cannot be called."""
    return _joined(mask_mods, lambda a, b: a & b, True)


def or_masks(*mask_mods):
    """A mask that lets through what any of them does. RuntimeError where one cannot be called."""
    return _joined(mask_mods, lambda a, b: a | b, False)


def _joined(mask_mods, join, start):
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def joined(b, h, q_idx, kv_idx):
        result = b.new_full((), start, dtype=bool_)
        for mod in mask_mods:
            result = join(result, mod(b, h, q_idx, kv_idx))
        return result

    return joined


def _mapped(mod, scores=False):
    """`mod` over whole tensors: of the indices (B,), (H,), (Q,), (K,), after scores (B, H, Q, K) where it takes them."""
    for place in (3, 2, 1, 0):
        dims = tuple([0 if i == place else None for i in range(4)])
        mod = vmap(mod, in_dims=(0, *dims) if scores else dims)
    return mod


def _indices(*lengths, device=None):
    return [arange(n, device=device) for n in lengths]


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """(B, H, Q_LEN, KV_LEN) of bool from a mask function, of the changed zeros (float32) from a score function; None for B or H is 1.
    Source: PyTorch, torch.nn.attention.flex_attention.create_mask."""
    import inspect

    B, H = 1 if B is None else B, 1 if H is None else H
    places = _indices(B, H, Q_LEN, KV_LEN, device=device)
    count = sum(p.default is p.empty for p in inspect.signature(mod_fn).parameters.values())
    if count == 5:
        scores = ones((B, H, Q_LEN, KV_LEN), device=device) * 0
        return _mapped(mod_fn, scores=True)(scores, *places)
    if count != 4:
        raise AssertionError(f"mod_fn must be a function of 4 (a mask) or 5 (a score) arguments, but takes {count}")
    made = _mapped(mod_fn)(*places)
    return made.expand(B, H, Q_LEN, KV_LEN)


def _sizes(block):
    return (block, block) if isinstance(block, int) else tuple(block)


def _blocks(mask, block):
    """(B, H, rows, columns) int64: how many elements of each block the mask lets through; past the end nothing is."""
    q, k = block
    mask = F.pad(mask, (0, -mask.shape[-1] % k, 0, -mask.shape[-2] % q))
    b, h, n, m = mask.shape
    return mask.view(b, h, n // q, q, m // k, k).sum(dim=(3, 5))


def _ordered(dense):
    """(counts, indices), int32: how many blocks of each row are set, and the columns, those set first."""
    return dense.sum(-1).to(int32), argsort(dense.to(int32), dim=-1, descending=True, stable=True).to(int32)


def _dense(counts, indices, columns):
    """The inverse of _ordered: (…, rows, columns) int32."""
    rank = arange(columns, device=counts.device)
    used = (rank < counts.unsqueeze(-1)).to(int32)
    return zeros_like(indices).scatter(-1, indices.long(), used)


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, _compile=False,
                      separate_full_blocks=True):
    """The BlockMask of a mask function of (batch, head, query index, key index). Source: PyTorch,
    torch.nn.attention.flex_attention.create_block_mask."""
    block = _sizes(BLOCK_SIZE)
    count = _blocks(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), block)
    full = count == block[0] * block[1]
    partial = (count > 0) & ~full if separate_full_blocks else count > 0
    parts = _ordered(partial) + (_ordered(full) if separate_full_blocks else (None, None))
    return BlockMask.from_kv_blocks(*parts, BLOCK_SIZE=block, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))


def create_nested_block_mask(*args, **kwargs):
    """NotImplementedError: attention of nested tensors is not there."""
    from msadapter_hook.errors import unsupported

    raise unsupported("torch.nn.attention.flex_attention.create_nested_block_mask", "pad the sequences and use create_block_mask")


_TENSORS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices", "full_q_num_blocks",
            "full_q_indices")


class BlockMask:
    """A mask by blocks: which are partly let through (`mask_mod` decides there) and which wholly (`full_…`).

    For each row of blocks `kv_num_blocks` (B, H, rows) and `kv_indices` (B, H, rows, columns), int32; the same by columns as
    `q_num_blocks` and `q_indices`. Source: PyTorch, torch.nn.attention.flex_attention.BlockMask.
    """

    def __init__(self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices,
                 full_q_num_blocks, full_q_indices, BLOCK_SIZE, mask_mod):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        given = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices, full_q_num_blocks,
                 full_q_indices)
        self.__dict__.update(zip(_TENSORS, given))
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, _sizes(BLOCK_SIZE), mask_mod or noop_mask

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None,
                       BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, mask_mod=None, seq_lengths=None, compute_q_blocks=True):
        """A mask from its rows of blocks; the columns are computed. Source: PyTorch, BlockMask.from_kv_blocks."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        block, columns = _sizes(BLOCK_SIZE), kv_indices.shape[-1]
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * block[0], columns * block[1])

        def turned(counts, indices):
            if counts is None or not compute_q_blocks:
                return None, None
            return _ordered(_dense(counts, indices, columns).transpose(-2, -1))

        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *turned(kv_num_blocks, kv_indices),
                   *turned(full_kv_num_blocks, full_kv_indices), block, mask_mod)

    def as_tuple(self, flatten=True):
        """All parts in order. Source: PyTorch, BlockMask.as_tuple."""
        sizes = (*self.seq_lengths, *self.BLOCK_SIZE) if flatten else (self.seq_lengths, self.BLOCK_SIZE)
        half = len(sizes) // 2
        return (*sizes[:half], *[getattr(self, name) for name in _TENSORS], *sizes[half:], self.mask_mod)

    @property
    def shape(self):
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        """The number of elements."""
        return math.prod(self.shape)

    def sparsity(self):
        """Percent of the elements that lie in no block."""
        blocks = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def _partial(self):
        return _dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])

    def _full(self):
        if self.full_kv_num_blocks is None:
            return zeros_like(self.kv_indices)
        return _dense(self.full_kv_num_blocks, self.full_kv_indices, self.kv_indices.shape[-1])

    def to_dense(self):
        """(B, H, rows, columns) int32: 1 where a block is there. Source: PyTorch, BlockMask.to_dense."""
        return self._partial() | self._full()

    def _elements(self, B, H, Q, K, device):
        """(1 or B, 1 or H, Q, K) bool: what is let through, element by element."""
        def spread(dense):
            rows, columns = self.BLOCK_SIZE
            return dense.bool().repeat_interleave(rows, -2)[..., :Q, :].repeat_interleave(columns, -1)[..., :K]

        mask = create_mask(self.mask_mod, B, H, Q, K, device)
        return spread(self._full()) | (spread(self._partial()) & mask)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        index = tuple([slice(i, i + 1 if i != -1 else None) if isinstance(i, int) else i for i in index])
        parts = {n: None if getattr(self, n) is None else getattr(self, n)[index] for n in _TENSORS[:4]}
        return BlockMask.from_kv_blocks(*parts.values(), BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=None, seq_lengths=self.seq_lengths,
                                        compute_q_blocks=self.q_indices is not None)

    def to(self, device):
        """The same on another device. Source: PyTorch, BlockMask.to."""
        parts = [t.to(device) if isinstance(t := getattr(self, n), Tensor) else t for n in _TENSORS]
        return BlockMask(self.seq_lengths, *parts, self.BLOCK_SIZE, self.mask_mod)

    def to_string(self, grid_size=(20, 20), limit=4):
        """A drawing of the blocks, of `limit` heads: full where all blocks under a sign are there. Source: PyTorch,
        BlockMask.to_string."""
        dense = self.to_dense()
        rows, columns = dense.shape[-2:]
        steps = [max(1, -(-n // g)) if g != -1 else 1 for n, g in zip((rows, columns), _sizes(grid_size))]
        text, heads = "", list(itertools.product(*[range(n) for n in dense.shape[:-2]]))
        for head in heads[:limit]:
            lines = []
            for r in range(0, rows, steps[0]):
                line = ""
                for c in range(0, columns, steps[1]):
                    share = dense[head][r : r + steps[0], c : c + steps[1]].float().mean().item()
                    line += "██" if share == 1 else "░░" if share else "  "
                lines.append(line)
            text += f"{head}\n" + "\n".join(lines) + "\n\n"
        return text.rstrip("\n") + ("\n..." if len(heads) > limit else "")

    def __str__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()}\n)"

    def __repr__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False,
                   kernel_options=None, *, return_aux=None):
    """softmax(score_mod(query @ keyᵀ · scale) where the mask lets through) @ value.

    query (B, H, Q, E), key (B, H, K, E), value (B, H, K, V) → (B, H, Q, V); with `enable_gqa` key and value have fewer heads.
    `score_mod(score, b, h, q, k)` sees one score. A query that sees nothing gets zeros. With `return_aux` (or, of old,
    `return_lse`) also the logarithm of the sum of exponentials of each row. `kernel_options` choose kernels and change nothing.
    ValueError where shapes do not fit. Source: PyTorch, torch.nn.attention.flex_attention.flex_attention.
    """
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.dtype != key.dtype or query.dtype != value.dtype:
        raise ValueError("Expected query, key, and value to have the same dtype, "
                         f"but got query.dtype: {query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead.")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"Expect query and key/value to have the same embedding dimension but got E={query.shape[-1]} and "
                         f"E={key.shape[-1]}.")
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux. return_lse is deprecated, please use return_aux instead.")
    B, H, Q, E = query.shape
    if key.shape[2] != value.shape[2]:
        raise ValueError(f"Expect key and value to have the same length, but got {key.shape[2]} and {value.shape[2]}.")
    if key.shape[1] != H:
        if not enable_gqa:
            raise ValueError(f"Expect query and key/value to have the same number of heads but got Hq={H} and Hkv={key.shape[1]}. Try "
                             "setting enable_gqa=True for GQA.")
        if H % key.shape[1]:
            raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={H} and "
                             f"Hkv={key.shape[1]}.")
        key, value = [t.repeat_interleave(H // t.shape[1], 1) for t in (key, value)]
    K = key.shape[2]
    scores = (query @ key.transpose(-2, -1)).to(float32 if query.dtype.itemsize < 4 else query.dtype)
    scores = scores * (1 / math.sqrt(E) if scale is None else scale)
    if score_mod is not None:
        scores = _mapped(score_mod, scores=True)(scores, *_indices(B, H, Q, K, device=query.device))
    if block_mask is not None:
        scores = where(block_mask._elements(B, H, Q, K, query.device), scores, -inf)
    lse = logsumexp(scores, -1)
    weights = (scores - where(lse == -inf, 0.0, lse).unsqueeze(-1)).exp()
    result = (weights.to(value.dtype) @ value).to(query.dtype)
    if return_lse:
        return result, lse
    if return_aux is None:
        return result
    return result, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
