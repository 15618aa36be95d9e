"""Records tests/goldens/nn.json and nn_programs.json. Run with an interpreter that has real PyTorch."""

import base64
import json
import pathlib
import pickle
import sys

import torch
from torch import nn

TESTS = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "torch" / "nn"))
import nn_golden  # noqa: E402
import nn_programs  # noqa: E402


def rounded(value):
    """Seven significant digits, which is what float32 has."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 4), nn.LSTM(4, 3, bidirectional=True)
)
x = torch.arange(50.0).view(2, 1, 5, 5) / 50
goldens = {
    "torch": torch.__version__,
    "names": sorted(nn.modules.__all__),
    "pickle": base64.b64encode(pickle.dumps(model)).decode(),
    "pickle_repr": repr(model),
    "pickle_output": model.eval()(x)[0].flatten().tolist(),
    "cases": nn_golden.record_all(torch, nn),
}
folder = TESTS / "goldens"
(folder / "nn.json").write_text(json.dumps(rounded(goldens), indent=0).replace("\n", "").replace("},", "},\n") + "\n")
programs = {name: nn_programs.run(name, torch, nn) for name in nn_programs.NAMES}
(folder / "nn_programs.json").write_text(json.dumps(programs, indent=1) + "\n")
