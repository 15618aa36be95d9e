# The programs whose numbers are compared with PyTorch's: every optimizer with its options, every scheduler.
# Written against a module `torch` given as an argument, so that the recorder and the tests run the same code.
OPTIMIZERS = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_momentum": ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    "sgd_nesterov": ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    "sgd_maximize": ("SGD", {"lr": 0.05, "momentum": 0.5, "maximize": True}),
    "adam": ("Adam", {"lr": 0.01}),
    "adam_amsgrad_decay": ("Adam", {"lr": 0.02, "amsgrad": True, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    "adam_maximize": ("Adam", {"lr": 0.01, "maximize": True}),
    "adamw": ("AdamW", {"lr": 0.01, "weight_decay": 0.05}),
    "adamw_amsgrad": ("AdamW", {"lr": 0.01, "amsgrad": True}),
    "rmsprop": ("RMSprop", {"lr": 0.01}),
    "rmsprop_centered": ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.9, "weight_decay": 0.01}),
    "rmsprop_momentum": ("RMSprop", {"lr": 0.01, "momentum": 0.5, "alpha": 0.9}),
    "adagrad": ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.01, "initial_accumulator_value": 0.1}),
    "adadelta": ("Adadelta", {"lr": 1.0, "rho": 0.8, "weight_decay": 0.01}),
    "adamax": ("Adamax", {"lr": 0.02, "weight_decay": 0.01}),
    "nadam": ("NAdam", {"lr": 0.02, "weight_decay": 0.01}),
    "nadam_decoupled": ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": ("RAdam", {"lr": 0.02, "weight_decay": 0.01}),
    "radam_decoupled": ("RAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "asgd": ("ASGD", {"lr": 0.05, "t0": 5, "weight_decay": 0.01}),
    "rprop": ("Rprop", {"lr": 0.01}),
    "adafactor": ("Adafactor", {"lr": 0.05, "weight_decay": 0.01}),
    "muon": ("Muon", {"lr": 0.05}),
    "muon_rms": ("Muon", {"lr": 0.05, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    "lbfgs": ("LBFGS", {"lr": 0.1, "max_iter": 5, "history_size": 4}),
    "lbfgs_wolfe": ("LBFGS", {"lr": 1, "max_iter": 6, "line_search_fn": "strong_wolfe"}),
}


def run_optimizer(torch, optim, name, steps=30):
    """Losses of `steps` steps of a small regression, and the sum of the absolute values of each parameter."""
    cls, options = OPTIMIZERS[name]
    torch.manual_seed(3)
    # these amplify the last bit of a gradient until nothing can be compared; in float64 they stay comparable
    dtype = torch.float64 if cls in ("LBFGS", "Adafactor") else torch.float32
    x, y = torch.randn(16, 5).to(dtype), torch.randn(16, 3).to(dtype)
    w1 = torch.randn(7, 5).mul(0.3).to(dtype).requires_grad_()
    w2 = torch.randn(3, 7).mul(0.3).to(dtype).requires_grad_()
    b = torch.zeros(3, dtype=dtype).requires_grad_()
    params = [w1, w2] if cls == "Muon" else [w1, w2, b]
    optimizer = getattr(optim, cls)(params, **options)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = ((torch.tanh(x @ w1.t()) @ w2.t() + b - y) ** 2).mean()
        loss.backward()
        return loss

    for _ in range(steps):
        losses.append(optimizer.step(closure).item())
    return {"losses": losses, "params": [p.detach().abs().sum().item() for p in params]}


def _one_cycle(S, o, **options):
    return S.OneCycleLR(o, [0.1, 0.05], total_steps=20, **options)


SCHEDULERS = {
    "lambda": lambda S, o: S.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "multiplicative": lambda S, o: S.MultiplicativeLR(o, lambda e: 0.8 + 0.01 * e),
    "step": lambda S, o: S.StepLR(o, 3, gamma=0.5),
    "multistep": lambda S, o: S.MultiStepLR(o, [2, 5, 5, 9], gamma=0.5),
    "constant": lambda S, o: S.ConstantLR(o, factor=0.25, total_iters=4),
    "linear": lambda S, o: S.LinearLR(o, start_factor=0.2, end_factor=0.7, total_iters=6),
    "exponential": lambda S, o: S.ExponentialLR(o, 0.9),
    "polynomial": lambda S, o: S.PolynomialLR(o, total_iters=7, power=2.0),
    "cosine": lambda S, o: S.CosineAnnealingLR(o, 6, eta_min=0.01),
    "restarts": lambda S, o: S.CosineAnnealingWarmRestarts(o, 3, T_mult=2, eta_min=0.001),
    "sequential": lambda S, o: S.SequentialLR(
        o, [S.LinearLR(o, total_iters=4), S.StepLR(o, 3), S.CosineAnnealingLR(o, 5)], [4, 9]
    ),
    "chained": lambda S, o: S.ChainedScheduler(
        [S.ConstantLR(o, factor=0.1, total_iters=3), S.ExponentialLR(o, 0.9)], o
    ),
    "cyclic": lambda S, o: S.CyclicLR(o, 0.01, 0.1, step_size_up=4, step_size_down=3),
    "cyclic2": lambda S, o: S.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], step_size_up=3, mode="triangular2"),
    "cyclic_exp": lambda S, o: S.CyclicLR(o, 0.01, 0.1, step_size_up=4, mode="exp_range", gamma=0.99),
    "cyclic_fn": lambda S, o: S.CyclicLR(o, 0.01, 0.1, step_size_up=4, scale_fn=lambda x: 0.9**x, scale_mode="cycle"),
    "onecycle": _one_cycle,
    "onecycle_linear": lambda S, o: _one_cycle(S, o, anneal_strategy="linear", pct_start=0.4),
    "onecycle_three": lambda S, o: _one_cycle(S, o, three_phase=True),
}


def run_scheduler(torch, optim, name, steps=19, adam=False):
    """Rates (and momenta) of two groups at each of `steps` epochs."""
    groups = [
        {"params": [torch.zeros(2, requires_grad=True)]},
        {"params": [torch.zeros(2, requires_grad=True)], "lr": 0.4},
    ]
    optimizer = optim.Adam(groups, lr=0.2) if adam else optim.SGD(groups, lr=0.2, momentum=0.9)
    scheduler = SCHEDULERS[name](optim.lr_scheduler, optimizer)
    rows = []
    for _ in range(steps):
        rows.append([g["lr"] for g in optimizer.param_groups])
        rows[-1] += [g["betas"][0] if adam else g["momentum"] for g in optimizer.param_groups]
        optimizer.step()
        scheduler.step()
    return {"rates": rows, "last": list(scheduler.get_last_lr())}


def run_plateau(torch, optim):
    """Rates under a metric that stalls twice."""
    optimizer = optim.SGD([torch.zeros(2, requires_grad=True)], lr=1.0)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2, cooldown=1, min_lr=0.1)
    metrics = [1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8]
    rates = []
    for metric in metrics:
        scheduler.step(metric)
        rates.append(optimizer.param_groups[0]["lr"])
    return rates
