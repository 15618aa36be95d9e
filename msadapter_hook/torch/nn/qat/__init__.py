# torch.nn.qat: quantization is not available; every name says so.


def __getattr__(name):
    raise AttributeError(f"torch.nn.qat.{name}: there is no quantization here; use the modules of torch.nn.")
