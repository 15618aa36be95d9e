"""torch.xpu: Intel's devices are not there."""

from . import _absent_device as _absent

_absent.common(globals(), "Torch not compiled with XPU enabled")
_absent.answer(False, "is_current_stream_capturing", globals())
_absent.classes("torch.xpu.{} requires XPU support", "Stream Event", globals())
