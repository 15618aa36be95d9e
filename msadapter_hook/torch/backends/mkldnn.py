"""torch.backends.mkldnn: oneDNN is used by MindSpore itself, not through PyTorch's switch."""

enabled = True


def is_available():
    return False
