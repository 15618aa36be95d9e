"""torch.sparse: sparse layouts are not provided; each name says so and what to do instead."""

__all__ = ["addmm", "log_softmax", "mm", "softmax", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
           "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "sum"]


def _refused(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"torch.{name}: sparse tensors are not supported; use dense tensors (index_put with accumulate=True "
                                  "builds a dense tensor from coordinates)")

    refuse.__name__ = refuse.__qualname__ = name.rsplit(".", 1)[-1]
    refuse.__doc__ = f"Refused: sparse tensors are not supported. Source: PyTorch, torch.{name}."
    return refuse


for _name in ("sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor",
              "sparse_compressed_tensor"):
    globals()[_name] = _refused(_name)
for _name in ("mm", "addmm", "sum", "softmax", "log_softmax"):
    globals()[_name] = _refused("sparse." + _name)
