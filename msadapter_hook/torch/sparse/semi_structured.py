"""Semi-structured (2:4) sparsity: PyTorch has kernels for it on CUDA only; each name says so."""

from msadapter_hook.errors import unsupported

_ADVICE = "2:4 sparsity needs CUDA's kernels; keep the weight dense (masked by multiplication), or use torch.Tensor.to_sparse_csr"


class SparseSemiStructuredTensor:
    """Refused: there are no kernels for it here. Source: PyTorch, torch.sparse.SparseSemiStructuredTensor."""

    def __new__(cls, *args, **kwargs):
        raise unsupported(f"torch.sparse.{cls.__name__}", _ADVICE)

    @classmethod
    def from_dense(cls, original_tensor):
        raise unsupported(f"torch.sparse.{cls.__name__}.from_dense", _ADVICE)


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """Refused like its base."""


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """Refused like its base."""


def to_sparse_semi_structured(original_tensor, transposed=False):
    """Refused. Source: PyTorch, torch.sparse.to_sparse_semi_structured."""
    raise unsupported("torch.sparse.to_sparse_semi_structured", _ADVICE)
