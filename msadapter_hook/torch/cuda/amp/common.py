"""torch.cuda.amp.common: whether mixed precision on an accelerator is out of the question."""

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available():
    """Whether there is no accelerator that `torch.cuda` stands for. Source: PyTorch, the same name."""
    from .. import is_available  # torch.cuda imports this first

    return not is_available()
