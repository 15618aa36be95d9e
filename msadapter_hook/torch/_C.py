"""torch._C: the few names of PyTorch's compiled module that Python programs reach for."""

from msadapter_hook.ops.overrides import DisableTorchFunctionSubclass  # noqa: F401
from msadapter_hook.tensor.core import DISABLED as _disabled_torch_function_impl  # noqa: F401
from msadapter_hook.tensor import Size, Tensor, device, dtypes  # noqa: F401
from msadapter_hook.tensor.generator import Generator  # noqa: F401

DisableTorchFunction = DisableTorchFunctionSubclass
dtype, layout, memory_format = dtypes.dtype, dtypes.layout, dtypes.memory_format


