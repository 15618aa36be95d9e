"""torch.hub: models from the network; without one, what lies in the cache."""

import os as _os
import re as _re
from urllib.parse import urlparse

try:
    from tqdm.auto import tqdm
except ImportError:  # a progress bar is a comfort: without the package there is a counter without a face

    class tqdm:
        """Counts as a progress bar does, and shows nothing."""

        def __init__(self, iterable=None, total=None, **options):
            self.iterable, self.total, self.n = iterable, total, 0

        def __iter__(self):
            for one in self.iterable:
                yield one
                self.update(1)

        def update(self, n=1):
            self.n += n

        def set_description(self, *args, **kwargs):
            """Nothing is shown."""

        def close(self):
            """Nothing to close."""

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            self.close()

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = _re.compile(r"-([a-f0-9]*)\.")
_dir = None


def _get_torch_home():
    return _os.path.expanduser(_os.path.join("~", ".cache", "torch"))


def get_dir():
    """Where files are kept. Source: PyTorch, torch.hub.get_dir."""
    return _dir if _dir is not None else _os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    """Keep files elsewhere. Source: PyTorch, torch.hub.set_dir."""
    global _dir
    _dir = _os.path.expanduser(d)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Fetch a file; the hash, where given, must agree. Source: PyTorch, torch.hub.download_url_to_file."""
    import hashlib
    import shutil
    import tempfile
    from urllib.request import Request, urlopen

    digest = hashlib.sha256()
    dst = _os.path.expanduser(dst)
    with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source, tempfile.NamedTemporaryFile(
            dir=_os.path.dirname(dst) or ".", delete=False) as target:
        try:
            while chunk := source.read(1 << 20):
                target.write(chunk)
                digest.update(chunk)
            target.close()
            if hash_prefix is not None and digest.hexdigest()[:len(hash_prefix)] != hash_prefix:
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            shutil.move(target.name, dst)
        finally:
            target.close()
            if _os.path.exists(target.name):
                _os.remove(target.name)


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None,
                             weights_only=False):
    """A checkpoint from the cache, or from the network. Source: PyTorch, torch.hub.load_state_dict_from_url."""
    from .serialization import load as load_file

    model_dir = model_dir if model_dir is not None else _os.path.join(get_dir(), "checkpoints")
    _os.makedirs(model_dir, exist_ok=True)
    name = file_name or _os.path.basename(urlparse(url).path)
    path = _os.path.join(model_dir, name)
    if not _os.path.exists(path):
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    return load_file(path, map_location=map_location, weights_only=weights_only)


def _entry(repo_or_dir, source):
    import importlib.util

    if source != "local":
        raise NotImplementedError("torch.hub with source='github' is not supported; clone the repository and pass "
                                  "source='local'")
    path = _os.path.join(_os.path.expanduser(repo_or_dir), "hubconf.py")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(repo_or_dir, model, *args, source="github", trust_repo=None, force_reload=False, verbose=True, skip_validation=False,
         **kwargs):
    """A model from the hubconf.py of a local folder. Source: PyTorch, torch.hub.load."""
    module = _entry(repo_or_dir, source)
    if not callable(getattr(module, model, None)):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return getattr(module, model)(*args, **kwargs)


def list(github, force_reload=False, skip_validation=False, trust_repo=None, verbose=True):
    """The entry points of a hubconf.py in a local folder. Source: PyTorch, torch.hub.list."""
    module = _entry(github, "local")
    return [f for f in dir(module) if callable(getattr(module, f)) and not f.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo=None):
    """The docstring of an entry point. Source: PyTorch, torch.hub.help."""
    return getattr(_entry(github, "local"), model).__doc__
