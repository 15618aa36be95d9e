"""The catalogue of primitives, with their gradients: all that operators may compute with."""

from msadapter_hook.tape.primitive import PREFER_HOST

from . import arithmetic, kernels, shapes  # noqa: F401  (give Values their arithmetic, and shapes to what has no data)
from .activation import *  # noqa: F403
from .attention import *  # noqa: F403
from .convolution import *  # noqa: F403
from .host import host_call  # noqa: F401
from .linalg import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .movement import *  # noqa: F403
from .normalization import *  # noqa: F403
from .pointwise import *  # noqa: F403
from .pooling import *  # noqa: F403
from .recurrent import *  # noqa: F403
from .reduction import *  # noqa: F403
from .resampling import *  # noqa: F403
from .sparse import *  # noqa: F403

kernels.install(PREFER_HOST)
