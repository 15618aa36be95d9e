"""The class of nested tensors of jagged layout."""

from msadapter_hook.ops.nested.jagged import JaggedTensor as NestedTensor

__all__ = ["NestedTensor"]
