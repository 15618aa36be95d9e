"""Families of oneDNN operations: each is compared with NumPy before its first use, and left alone where it differs or fails."""

from functools import lru_cache, wraps
from threading import Lock, get_ident

import numpy as np

from msadapter_hook.backend import onednn

FAMILIES = []
_TOLERANCE = 1e-4  # relative to the largest number; a wrong layout or an unset state is off by far more


class Family:
    """`check()` yields (found, expected) arrays of a small case; `reason` tells why the family is not used."""

    def __init__(self, name, check):
        self.name = name
        self._check = check
        self._trusted = None
        self._checker, self._lock = None, Lock()
        self.reason = None
        FAMILIES.append(self)

    @property
    def trusted(self):
        """Whether the operations may be used; found out at the first question, while other threads wait."""
        if self._trusted is None:
            if self._checker == get_ident():
                return True  # the check itself uses them
            with self._lock:
                if self._trusted is None:
                    self._checker = get_ident()
                    try:
                        self.reason = self._find_fault()
                        self._trusted = self.reason is None
                    finally:
                        self._checker = None
        return self._trusted

    def _find_fault(self):
        try:
            for found, expected in self._check():
                error = np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30)
                if not error <= _TOLERANCE:
                    return f"{self.name}: off by {error:.1e} in its self-test"
        except (onednn.Unavailable, RuntimeError) as error:
            return f"{self.name}: {error}"
        return None

    def operation(self, make):
        """Keep what `make` builds for hashable arguments; the result gives None where the family cannot be used, or not for
        these."""

        @lru_cache(maxsize=256)
        def build(*arguments):
            try:
                return make(*arguments)
            except onednn.Unavailable:
                return None

        @wraps(make)
        def get(*arguments):
            return build(*arguments) if self.trusted else None

        return get


def status():
    """One line on the library: its version, or what is not used and why."""
    try:
        version = onednn.library().version
    except onednn.Unavailable as error:
        return f"not used: {error}"
    failed = [f.reason for f in FAMILIES if not f.trusted]
    return f"{version}, kernels of MindSpore's libdnnl" + (f"; not used: {'; '.join(failed)}" if failed else "")
