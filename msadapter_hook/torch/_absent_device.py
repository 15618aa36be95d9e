"""The modules of devices that are not there: what programs ask before they decide is answered, everything else says so."""


def refuse(error, text, names, namespace):
    """Put a function that raises `error(text)` for each of the names (words of one string)."""
    for name in names.split():
        def function(*args, **kwargs):
            raise error(text)

        function.__name__ = function.__qualname__ = name
        function.__module__ = namespace["__name__"]
        namespace[name] = function


def answer(value, names, namespace):
    """Put a function that gives `value` (made anew where it is a type) for each of the names."""
    for name in names.split():
        def function(*args, **kwargs):
            return value() if isinstance(value, type) else value

        function.__name__ = function.__qualname__ = name
        function.__module__ = namespace["__name__"]
        namespace[name] = function


def classes(text, names, namespace):
    """Put a class that cannot be made (RuntimeError) for each of the names: for annotations and isinstance."""
    for name in names.split():
        def __new__(cls, *args, **kwargs):
            raise RuntimeError(text.format(cls.__name__))

        namespace[name] = type(name, (), {"__new__": __new__, "__module__": namespace["__name__"]})


class device:
    """Context that selects a device; with none there, only -1 and None can be selected. Source: PyTorch, torch.cuda.device."""

    def __init__(self, device):
        self.idx = device

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return False


class StreamContext:
    """Context of a stream; without the device there is none to select. Source: PyTorch, torch.cuda.StreamContext."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return None


def stream(stream):
    """A context in which work goes to `stream`; None selects nothing. Source: PyTorch, torch.cuda.stream."""
    return StreamContext(stream)


def common(namespace, reason):
    """What every such module has. `reason` is the text of its AssertionError."""
    answer(False, "is_available is_initialized is_bf16_supported", namespace)
    answer(0, "device_count memory_allocated max_memory_allocated memory_reserved max_memory_reserved", namespace)
    answer(None, "empty_cache manual_seed manual_seed_all seed seed_all", namespace)
    answer(list, "get_rng_state_all get_arch_list", namespace)
    answer(dict, "memory_stats", namespace)
    refuse(AssertionError, reason, "init current_device get_device_name get_device_properties get_device_capability synchronize "
           "reset_peak_memory_stats reset_accumulated_memory_stats mem_get_info current_stream default_stream set_stream get_rng_state "
           "set_rng_state initial_seed memory_summary memory_snapshot can_device_access_peer", namespace)
    namespace.update(device=device, stream=stream, StreamContext=StreamContext)

    def set_device(device):
        index = device if isinstance(device, int) else getattr(device, "index", 0) or 0
        if index >= 0:
            raise AssertionError(reason)

    def set_rng_state_all(new_states):
        for state in new_states:
            namespace["set_rng_state"](state)

    namespace.update(set_device=set_device, set_rng_state_all=set_rng_state_all)
