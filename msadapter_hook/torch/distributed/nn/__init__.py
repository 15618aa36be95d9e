# torch.distributed.nn: collectives as differentiable functions; remote modules are refused by name.
from .api.remote_module import RemoteModule
from .functional import *
