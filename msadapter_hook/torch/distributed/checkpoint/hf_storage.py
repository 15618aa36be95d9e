"""torch.distributed.checkpoint.hf_storage: refused; checkpoints of many processes are read and written in PyTorch's own format."""

from ..._refusal import refuse_all as _refuse_all

_refuse_all(globals(), "torch.distributed.checkpoint.hf_storage", "HuggingFaceStorageReader HuggingFaceStorageWriter",
            "use safetensors.torch.save_file and load_file in one process")
