"""torch.distributed.device_mesh: meshes of processes for sharded tensors, which do not exist here."""

from msadapter_hook.errors import unsupported

_ADVICE = "there are no sharded tensors to lay over a mesh; make groups of processes with torch.distributed.new_group"


class DeviceMesh:
    """The type of a mesh, for annotations and isinstance. NotImplementedError on construction."""

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.distributed.device_mesh.DeviceMesh", _ADVICE)


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """NotImplementedError: see the module."""
    raise unsupported("torch.distributed.init_device_mesh", _ADVICE)
