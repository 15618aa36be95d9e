"""torch.distributed.checkpoint._consolidate_hf_safetensors: refused, see hf_storage."""

from ..._refusal import refuse_all as _refuse_all

_refuse_all(globals(), "torch.distributed.checkpoint._consolidate_hf_safetensors", "consolidate_safetensors_files",
            "use safetensors.torch.save_file and load_file in one process")
