"""Anomaly mode names the user's lines, and nothing of what runs the program."""


PROGRAM = """
import torch

def root(x):
    return torch.sqrt(x)

with torch.autograd.set_detect_anomaly(True):
    try:
        (root(torch.tensor([0.0], requires_grad=True)) * 0).sum().backward()
    except RuntimeError as error:
        print(error)
"""


def test_the_command_is_not_among_the_lines(checkout, tmp_path):
    script = tmp_path / "nan.py"
    script.write_text(PROGRAM)
    done = checkout("-m", "msadapter_hook", script)
    assert "Function 'SqrtBackward0' returned nan values in its 0th output." in done.stdout
    shown = done.stderr.partition("Traceback of forward call that caused the error:")[2]
    files = [line.split('"')[1] for line in shown.splitlines() if line.startswith("  File ")]
    assert files == [str(script)] * 2
