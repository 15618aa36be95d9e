"""torch.fx.passes: analyses and changes of graphs."""

from . import shape_prop
