"""How a program is replayed: operation by operation, or compiled where that pays."""

import logging
import statistics
import time
from collections import deque

from msadapter_hook import backend, report, settings

_log = logging.getLogger("msadapter_hook")

_COMPILED_AT_MOST = 16
_LONGEST = 1000  # lines; 800 take 13 s, thousands never end
_SAMPLES = 7
_SHARE = 25  # compiling may take one part in so many of the time a program has run


class _Policy:
    """What all replays share: how many are compiled, and whether a program has asked for it (torch.compile, graph mode)."""

    compiled = 0
    wanted = 0


policy = _Policy()


class Replay:
    """`(inputs, cotangents) -> (outputs, gradients)` of a function of `length` lines, by the faster of two ways.

    Compiling takes up to seconds. Under `auto` it is tried once the program has run for so long that compiling costs it no more
    than a few percent, and kept only if it is measured faster; `on` compiles at the third run; `off` never. Programs of more
    than 1,000 lines are not compiled.
    """

    __slots__ = ("_function", "_positions", "_plain", "_compiled", "_runs", "_spent", "_price", "_times", "_way")

    def __init__(self, function, positions, length):
        self._function = function
        self._positions = positions
        self._plain = backend.Gradient(function, positions)
        self._compiled = None
        self._runs = 0
        self._spent = 0.0
        self._price = 0.1 + 0.01 * length  # seconds that compiling takes, measured from 10 to 400 lines
        self._times = {"plain": deque(maxlen=_SAMPLES), "compiled": []}
        self._way = "plain" if length <= _LONGEST else "long"

    def __call__(self, inputs, cotangents):
        with backend.lock:  # MindSpore records what any thread runs meanwhile
            return self._run(inputs, cotangents)

    def _run(self, inputs, cotangents):
        self._runs += 1
        way = self._way
        if way == "compiled":
            return self._by_compiled(inputs, cotangents)
        if way == "settled":
            return self._plain(inputs, cotangents)
        if way == "long":
            if self._asked() and self._runs > 2:
                report.note("programs too long to be compiled")
                self._way = "settled"
            return self._plain(inputs, cotangents)
        if way == "plain" and self._due():
            self._compile(inputs)
            way = self._way
        # both ways take turns while they are compared: what else runs on the machine slows down both
        chosen = self._by_compiled if way == "trying" and (self._runs % 2 or self._asked()) else self._plain
        start = time.perf_counter()
        try:
            result = chosen(inputs, cotangents)
        except Exception as error:
            if chosen is self._plain or self._times["compiled"]:
                raise
            policy.compiled -= 1
            return self._give_up(error)(inputs, cotangents)  # compiling happens at the first call
        spent = time.perf_counter() - start
        self._spent += spent
        if chosen is self._plain:
            self._times["plain"].append(spent)
        else:
            self._judge(spent)
        return result

    def _by_compiled(self, inputs, cotangents):
        """By the compiled program; where it is not made for such inputs, operation by operation."""
        found = self._compiled(inputs, cotangents)
        return self._plain(inputs, cotangents) if found is None else found

    @staticmethod
    def _asked():
        """Whether the program is to be compiled whatever it costs."""
        return settings.current().jit == "on" or policy.wanted > 0

    def _due(self):
        if settings.current().jit == "off" or policy.compiled >= _COMPILED_AT_MOST:
            return False
        if self._asked():
            return self._runs > 2
        return self._runs > 20 and self._spent > _SHARE * self._price

    def _compile(self, inputs):
        try:
            self._compiled = backend.compile_gradient(self._function, inputs, self._positions)
        except Exception as error:
            self._give_up(error)
            return
        policy.compiled += 1
        self._way = "trying"

    def _give_up(self, error):
        """Replay goes on as before, whatever MindSpore raised: it has many kinds for what it cannot compile."""
        _log.info("a program is replayed without compiling: %s", error)
        report.note("programs that could not be compiled")
        self._way, self._compiled = "settled", None
        return self._plain

    def _judge(self, spent):
        """Compare medians; the first compiled run compiles, and does not count."""
        times = self._times["compiled"]
        if not times:
            report.note("programs compiled")
        times.append(spent)
        if len(times) <= _SAMPLES:
            return
        faster = statistics.median(times[1:]) <= statistics.median(self._times["plain"] or [float("inf")])
        if faster or self._asked():
            self._way = "compiled"
        else:
            self._way, self._compiled = "settled", None
            policy.compiled -= 1
            report.note("programs compiled and found slower")
