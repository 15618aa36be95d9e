"""torch.return_types: the named tuples that operators give."""

from msadapter_hook.ops import RETURN_TYPES as _types

globals().update(_types)
