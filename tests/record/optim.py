"""Records tests/goldens/optim.json. Run with an interpreter that has real PyTorch: python tests/record/optim.py"""

import json
import pathlib
import sys

import torch
from torch import optim

TESTS = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "torch" / "optim"))
import optim_cases as cases  # noqa: E402

goldens = {
    "torch": torch.__version__,
    "optimizers": {name: cases.run_optimizer(torch, optim, name) for name in cases.OPTIMIZERS},
    "schedulers": {name: cases.run_scheduler(torch, optim, name) for name in cases.SCHEDULERS},
    "schedulers_adam": {
        name: cases.run_scheduler(torch, optim, name, adam=True) for name in ("cyclic", "onecycle", "onecycle_three")
    },
    "plateau": cases.run_plateau(torch, optim),
    "reprs": {},
}
for cls in (
    "SGD",
    "Adam",
    "AdamW",
    "RMSprop",
    "Adagrad",
    "Adadelta",
    "Adamax",
    "NAdam",
    "RAdam",
    "ASGD",
    "Rprop",
    "SparseAdam",
    "Adafactor",
    "Muon",
    "LBFGS",
):
    p = torch.ones(2, 2, requires_grad=True)
    optimizer = getattr(optim, cls)([p], lr=0.1)
    if cls not in ("SparseAdam",):
        p.grad = torch.ones(2, 2)
        optimizer.step(lambda: torch.zeros(())) if cls == "LBFGS" else optimizer.step()
    goldens["reprs"][cls] = {
        "repr": repr(optimizer),
        "group_keys": list(optimizer.state_dict()["param_groups"][0]),
        "state_keys": list(optimizer.state_dict()["state"].get(0, {})),
    }
text = json.dumps(goldens, separators=(",", ":"))
(TESTS / "goldens" / "optim.json").write_text(text + "\n")
