"""torch.onnx.operators: shapes as tensors."""


def shape_as_tensor(x):
    """The shape as an int64 tensor. Source: PyTorch, torch.onnx.operators.shape_as_tensor."""
    from .. import tensor

    return tensor(tuple(x.shape))


def reshape_from_tensor_shape(x, shape):
    """`x` reshaped to the sizes in an int64 tensor. Source: PyTorch, torch.onnx.operators.reshape_from_tensor_shape."""
    return x.reshape(shape.tolist())
