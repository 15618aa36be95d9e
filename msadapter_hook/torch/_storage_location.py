# Where storages of a checkpoint lie: tags for the file, and the rules that bring a loaded storage to a device.
import sys

from msadapter_hook.tensor import UntypedStorage
from msadapter_hook.tensor import device as _device

from .storage import PendingStorage

_ROOT = __package__

_package_registry = []


def register_package(priority, tagger, deserializer):
    """Adds a rule: `tagger(storage) -> str | None`, `deserializer(storage, location) -> storage | None`."""
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda entry: entry[0])


def _location_of(storage):
    return str(storage.device) if storage.device.type in ("cpu", "meta") else None


def _restore_host(storage, location):
    return storage if location == "cpu" else None


def _restore_meta(storage, location):
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


def _tag_accelerator(storage):
    device = storage.device
    return f"{device.type}:{device.index or 0}" if device.type not in ("cpu", "meta") else None


def _restore_accelerator(storage, location):
    kind = location.partition(":")[0]
    if kind not in ("cuda", "npu", "privateuseone", "mps", "xpu"):
        return None
    backend = getattr(sys.modules[_ROOT], kind, None)
    if backend is None or not backend.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. "
            "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to "
            "map your storages to the CPU."
        )
    return _DeviceStorage(storage, _device(location))


register_package(10, _location_of, _restore_host)
register_package(20, _tag_accelerator, _restore_accelerator)
register_package(22, _location_of, _restore_meta)


class _DeviceStorage(PendingStorage):
    """Memory whose tensors are moved to an accelerator as they are made."""

    def __init__(self, storage, device):
        memory = storage._array if isinstance(storage, PendingStorage) else storage.numpy_bytes()
        super().__init__(memory, device)

    def tensor(self, dtype, size, stride, offset):
        return super().tensor(dtype, size, stride, offset).to(self.device)


def validate_cuda_device(location):
    """The index of a "cuda:N" that exists. RuntimeError otherwise."""
    index = _device(location).index or 0
    cuda = sys.modules[_ROOT].cuda
    if not cuda.is_available():
        _restore_accelerator(None, location)
    if index >= cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is "
            f"{cuda.device_count()}. Please use torch.load with map_location to map your storages to an existing "
            "device."
        )
    return index


def location_tag(storage):
    """Where a storage lies, as a string for the file."""
    for _, tagger, _ in _package_registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError("don't know how to determine data location of torch.storage.UntypedStorage")


def default_restore_location(storage, location):
    """A loaded storage on the device that `location` names."""
    for _, _, restore in _package_registry:
        result = restore(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})"
    )


def _get_restore_location(map_location):
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        name = map_location.decode() if isinstance(map_location, bytes) else map_location
        return lambda storage, location: default_restore_location(storage, name)
    if isinstance(map_location, _device):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def restore(storage, location):
        plain = storage.storage() if isinstance(storage, PendingStorage) else storage
        result = map_location(plain, location)
        if result is None:
            return default_restore_location(storage, location)
        return storage if result is plain else result

    return restore
