# torch.utils._dtype_abbrs: short names of dtypes, as f32 for float32.
from msadapter_hook.tensor.dtype import ALL

dtype_abbrs = {dtype: dtype.abbr for dtype in ALL}
