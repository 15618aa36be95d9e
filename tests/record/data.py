"""Records tests/goldens/data.json. Run with an interpreter that has real PyTorch: python tests/record/data.py"""

import json
import pathlib
import random
import sys

import numpy as np
import torch
from torch.utils import data

TESTS = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "torch" / "data"))
import data_cases as cases  # noqa: E402

goldens = {"torch": torch.__version__}
for name, case in cases.ORDERS.items():
    torch.manual_seed(1)
    random.seed(0)
    np.random.seed(0)
    goldens[name] = {"order": case(torch, data), "after": torch.rand(2).tolist()}
(TESTS / "goldens" / "data.json").write_text(json.dumps(goldens, separators=(",", ":")) + "\n")
