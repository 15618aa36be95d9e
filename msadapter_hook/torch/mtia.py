"""torch.mtia: Meta's accelerators are not there."""

from . import _absent_device as _absent

_absent.common(globals(), "Torch not compiled with MTIA enabled")
_absent.classes("torch.mtia.{} requires MTIA support", "Stream Event", globals())
