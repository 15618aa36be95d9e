"""torch.distributed.checkpoint.optimizer: refused; optimizers are not sharded here."""

from ..._refusal import refuse_all as _refuse_all

_refuse_all(globals(), "torch.distributed.checkpoint.optimizer", "load_sharded_optimizer_state_dict",
            "save optimizer.state_dict() with torch.save, or with torch.distributed.checkpoint.save")
