"""What a program used of torch: names, by which path, for how long, and what was missing.

The operators call this module only while `enabled` is true; it imports next to nothing and stores only counts.
"""

import threading
import time

#: Operators look at this before they take the time; `enable()` or an observer switches it on.
enabled = False

_counting = False
_observers = []  # objects with `begin(name, arguments)` and `end(name, path)`, called around every call that is measured

#: path of an operator -> what the table says of it
PATHS = {
    "primitive": "a MindSpore primitive",
    "composition": "several primitives",
    "host": "NumPy or SciPy on the host",
}

_lock = threading.Lock()
_calls = {}  # (name, path) -> [calls, seconds]
_missing = {}  # name -> times asked for
_events = {}  # text -> times
_backward = [0, 0, 0]  # backward passes, segments replayed in them, the most in one


def enable(on=True):
    """Start (or stop) counting."""
    global enabled, _counting
    _counting = on
    enabled = on or bool(_observers)


def observe(observer):
    """Have `observer.begin(name, arguments)` and `observer.end(name, path)` called around every call that is measured."""
    global enabled
    _observers.append(observer)
    enabled = True


def forget(observer):
    """Undo an `observe`."""
    global enabled
    _observers.remove(observer)
    enabled = _counting or bool(_observers)


def clear():
    """Forget what was counted."""
    with _lock:
        _calls.clear()
        _missing.clear()
        _events.clear()
        _backward[:] = 0, 0, 0


def count(name, path, seconds):
    """One call of the public torch name `name`, which went by `path` (a key of PATHS) and took `seconds`."""
    if not _counting:
        return
    if path not in PATHS:
        raise ValueError(f"unknown path {path!r}: one of {', '.join(PATHS)}")
    with _lock:
        entry = _calls.setdefault((name, path), [0, 0.0])
        entry[0] += 1
        entry[1] += seconds


_work = [0, 0]  # calls of primitives: by MindSpore's kernel, by NumPy's


def primitive(on_mindspore):
    """A primitive was called (or noted for later)."""
    _work[0 if on_mindspore else 1] += 1


def measure(name, run, *args, **kwargs):
    """`run(*args, **kwargs)`, counted under `name` with its time (what it calls included) and the path that it took."""
    before = tuple(_work)
    observers = list(_observers)
    for observer in observers:
        observer.begin(name, args)
    path = "composition"
    start = time.perf_counter()
    try:
        result = run(*args, **kwargs)
        seconds = time.perf_counter() - start
        native, host = _work[0] - before[0], _work[1] - before[1]
        path = "host" if host and not native else "primitive" if native == 1 and not host else "composition"
    finally:
        for observer in observers:
            observer.end(name, path)
    count(name, path, seconds)
    return result


def note(event):
    """Something worth a line happened (a program compiled, ...); counted by its text."""
    if not _counting:
        return
    with _lock:
        _events[event] = _events.get(event, 0) + 1


def events():
    """A copy of the events: {text: times}."""
    with _lock:
        return dict(_events)


def backward(segments):
    """A backward pass is over that replayed so many segments through MindSpore's gradient."""
    if not _counting:
        return
    with _lock:
        _backward[:] = _backward[0] + 1, _backward[1] + segments, max(_backward[2], segments)


def backward_passes():
    """(backward passes, segments replayed in all of them, the most in one)."""
    with _lock:
        return tuple(_backward)


def missing(name):
    """A name was asked for that the adapter lacks."""
    if not _counting:
        return
    with _lock:
        _missing[name] = _missing.get(name, 0) + 1


def calls():
    """A copy of the counts: {(name, path): (calls, seconds)}."""
    with _lock:
        return {key: tuple(entry) for key, entry in _calls.items()}


def missing_names():
    """A copy of the missing names: {name: times}."""
    with _lock:
        return dict(_missing)


def table():
    """The report as text: names by time, then sums by path, then what was missing."""
    used, lacking = calls(), missing_names()
    lines = ["msadapter_hook report"]
    if used:
        width = max(4, *(len(name) for name, _ in used))
        lines.append(f"  {'name':<{width}}  {'path':<11}  {'calls':>8}  {'ms':>10}")
        for (name, path), (number, seconds) in sorted(used.items(), key=lambda item: (-item[1][1], item[0])):
            lines.append(f"  {name:<{width}}  {path:<11}  {number:>8}  {seconds * 1e3:>10.2f}")
        for path, meaning in PATHS.items():
            chosen = [entry for (_, other), entry in used.items() if other == path]
            if chosen:
                number, seconds = sum(n for n, _ in chosen), sum(s for _, s in chosen)
                lines.append(f"  {path} ({meaning}): {len(chosen)} names, {number} calls, {seconds * 1e3:.2f} ms")
    else:
        lines.append("  no operator was called")
    passes, segments, most = backward_passes()
    if passes:
        lines.append(f"  backward passes: {passes}, with {segments} segments replayed through mindspore.grad (at most {most} in one)")
    for event, times in sorted(events().items()):
        lines.append(f"  {event}: {times}")
    if lacking:
        lines.append("  missing (asked for, not provided):")
        lines += [
            f"    {name}  {times}x" for name, times in sorted(lacking.items(), key=lambda item: (-item[1], item[0]))
        ]
    else:
        lines.append("  nothing was missing")
    return "\n".join(lines)
