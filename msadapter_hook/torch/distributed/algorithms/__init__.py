# torch.distributed.algorithms: communication hooks, model averaging, and uneven inputs (refused).
from .join import Join
