"""torch.mps: Apple's devices are not there."""

from . import _absent_device as _absent

_absent.answer(False, "is_available", globals())
_absent.answer(0, "device_count", globals())
_absent.answer(None, "manual_seed seed", globals())
_absent.refuse(RuntimeError, "there is no MPS backend", "current_allocated_memory driver_allocated_memory recommended_max_memory "
               "get_rng_state set_rng_state synchronize empty_cache set_per_process_memory_fraction compile_shader", globals())
_absent.classes("torch.mps.{} requires MPS support", "Event", globals())
