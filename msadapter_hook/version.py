"""The version of this package and of the PyTorch it serves: the only place where either is written."""

__version__ = "0.1.0"

#: The PyTorch whose behaviour is served, and its public spelling (a local part tells what runs underneath).
PYTORCH_VERSION = "2.13.0"
TORCH_VERSION = PYTORCH_VERSION + "+mindspore2.10"
