# Random streams of worker threads. PyTorch's workers are processes, each with its own torch, `random` and
# `numpy.random` generators; here a thread gets the same three, and the main thread's streams stay untouched.
# While workers live, the module functions of `random` and `numpy.random` look for the calling thread's generator
# first, and so does torch's default generator.
import importlib
import random
import threading

import numpy as np

_local = threading.local()
_lock = threading.Lock()  # guards _users and _undo
_users = 0
_undo = []


def numpy_seed(base_seed, worker_id):
    """The words a worker's numpy.random is seeded with: independent of `random`'s seed, as PyTorch has it."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4)


def _dispatchers(module, owner, local_name):
    """Replaces those functions of `module` that are methods of its global generator `owner`."""
    replaced = {}
    for name, function in list(vars(module).items()):
        if getattr(function, "__self__", None) is not owner or not callable(function):
            continue

        def dispatch(*args, _name=name, _plain=function, **kwargs):
            own = getattr(_local, local_name, None)
            return (_plain if own is None else getattr(own, _name))(*args, **kwargs)

        dispatch.__name__ = dispatch.__qualname__ = name
        dispatch.__doc__ = function.__doc__
        dispatch.__module__ = module.__name__
        replaced[name] = (function, dispatch)
        setattr(module, name, dispatch)

    def undo():
        for name, (function, dispatch) in replaced.items():
            if getattr(module, name, None) is dispatch:
                setattr(module, name, function)

    return undo


def _slot(name, generator_class):
    plain = generator_class.__dict__[name]

    def read(self):
        own = getattr(_local, "torch", None)
        return plain.__get__(self if own is None else own)

    def write(self, value):
        own = getattr(_local, "torch", None)
        plain.__set__(self if own is None else own, value)

    return property(read, write)


def _generator_module():
    return importlib.import_module("msadapter_hook.tensor.generator")


_threaded_class = None


def _thread_default_generator():
    """Makes the fields of torch's default generator those of the calling thread's own generator, where it has one."""
    global _threaded_class
    module = _generator_module()
    default, plain = module.default_generator, module.Generator
    if type(default) is not plain:
        return lambda: None
    if _threaded_class is None:
        fields = [name for name in plain.__slots__ if name not in ("__weakref__", "_device")]
        body = {"__slots__": (), "__module__": plain.__module__, **{name: _slot(name, plain) for name in fields}}
        _threaded_class = type(plain.__name__, (plain,), body)
    default.__class__ = _threaded_class

    def undo():
        default.__class__ = plain

    return undo


def enter(seed, np_seed):
    """Gives the calling thread generators of its own. Pair with `leave`."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            _undo.append(_dispatchers(random, random._inst, "random"))
            _undo.append(_dispatchers(np.random, np.random.mtrand._rand, "numpy"))
            _undo.append(_thread_default_generator())
    own = _generator_module().Generator()
    own.manual_seed(seed)
    _local.torch = own
    _local.random = random.Random(seed)
    _local.numpy = np.random.RandomState(np_seed)


def leave():
    """Takes the calling thread's generators away; the last one to leave restores the modules."""
    global _users
    _local.torch = _local.random = _local.numpy = None
    with _lock:
        _users -= 1
        if _users == 0:
            while _undo:
                _undo.pop()()
