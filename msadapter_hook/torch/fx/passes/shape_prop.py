"""torch.fx.passes.shape_prop: running a graph to note the shapes and dtypes of its values."""

from typing import NamedTuple

from ... import Tensor
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What `ShapeProp` notes of a tensor, in `node.meta["tensor_meta"]`. Source: PyTorch,
    torch.fx.passes.shape_prop.TensorMetadata."""

    shape: object
    dtype: object
    requires_grad: bool
    stride: tuple
    memory_format: object
    is_quantized: bool
    qparams: dict


def _extract_tensor_metadata(result, include_contiguity=True):
    from ... import channels_last, contiguous_format

    form = None
    if include_contiguity:
        for candidate in (contiguous_format, *((channels_last,) if result.dim() == 4 else ())):
            if result.is_contiguous(memory_format=candidate):
                form = candidate
                break
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), form, False, {})


class ShapeProp(Interpreter):
    """Runs a graph and notes shape and dtype of each node. Source: PyTorch, torch.fx.passes.shape_prop.ShapeProp."""

    def run_node(self, n: Node):
        result = super().run_node(n)
        found = []

        def note(x):
            if isinstance(x, Tensor):
                found.append(x)
                return _extract_tensor_metadata(x)
            return x

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run with these inputs. Source: PyTorch, ShapeProp.propagate."""
        return super().run(*args)
