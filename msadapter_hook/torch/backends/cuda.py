"""torch.backends.cuda: flags of a library that is not there."""


class _Flags:
    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Flags()


def is_built():
    return False
