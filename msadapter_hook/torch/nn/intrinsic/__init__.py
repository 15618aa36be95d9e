# torch.nn.intrinsic: quantization is not available; every name says so.


def __getattr__(name):
    raise AttributeError(f"torch.nn.intrinsic.{name}: there is no quantization here; use the modules of torch.nn.")
