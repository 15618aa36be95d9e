# Programs over torch.nn in `programs/`, run with what they print collected, and the comparison of two such outputs.
import contextlib
import io
import pathlib
import re
import warnings

FOLDER = pathlib.Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")


def run(name, torch, nn):
    """Lines that the program prints, then its warnings; an exception that it does not expect is the last line."""
    out = io.StringIO()

    def show_raised(function):
        try:
            function()
        except Exception as error:
            print(type(error).__name__, error)
        else:
            print("no error")

    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        torch.manual_seed(0)
        source = (FOLDER / f"{name}.py").read_text()
        try:
            exec(compile(source, f"{name}.py", "exec"), {"torch": torch, "nn": nn, "T": show_raised})
        except Exception as error:
            print("stopped by", type(error).__name__, error)
    lines = re.sub(r"0x[0-9a-f]+", "0x", out.getvalue()).splitlines()
    kinds = (FutureWarning, UserWarning, DeprecationWarning)
    seen = [f"{w.category.__name__}: {w.message}" for w in caught if w.category in kinds]
    return lines + [text for text in seen if "nested tensors" not in text and "pynvml" not in text]


def difference(expected, got, tolerance=2e-4):
    """First line that differs, as a text; None when only the rounding of numbers does."""
    for index in range(max(len(expected), len(got))):
        a = expected[index] if index < len(expected) else "(nothing)"
        b = got[index] if index < len(got) else "(nothing)"
        numbers = list(zip(map(float, _NUMBER.findall(a)), map(float, _NUMBER.findall(b))))
        close = all(abs(x - y) <= tolerance * (1 + abs(x)) for x, y in numbers)
        # Spaces align columns: they follow the digits.
        if _NUMBER.sub("#", a).split() != _NUMBER.sub("#", b).split() or not close:
            return f"line {index}\n expected: {a}\n      got: {b}"
    return None
