# torch.distributed.checkpoint.state_dict: state of models and optimizers under the names of the bare model, whatever wraps it.
from dataclasses import dataclass

from msadapter_hook.errors import unsupported

from ... import no_grad, zeros_like
from ...nn.parallel import DataParallel, DistributedDataParallel

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip


@dataclass
class StateDictOptions:
    """How states are given and taken. `full_state_dict` and `cpu_offload` say what is so anyway: tensors are whole and on the CPU.

    Source: PyTorch, torch.distributed.checkpoint.state_dict.StateDictOptions.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def _checked(options, submodules=None):
    options = options if options is not None else StateDictOptions()
    if submodules is not None:
        raise unsupported("torch.distributed.checkpoint.state_dict(submodules=…)", "give the submodule itself as the model")
    if options.broadcast_from_rank0:
        raise unsupported("torch.distributed.checkpoint.state_dict.StateDictOptions(broadcast_from_rank0=True)",
                          "load on every rank, or broadcast the state with torch.distributed.broadcast_object_list")
    return options


def _bare_names(model, names):
    """{name: name without the steps through wrappers}."""
    wrapped = sorted((f"{name}.module" if name else "module" for name, m in model.named_modules()
                      if isinstance(m, (DistributedDataParallel, DataParallel))), key=len, reverse=True)
    bare = {}
    for name in names:
        short = name
        for prefix in wrapped:
            if short.startswith(prefix + "."):
                kept = prefix[: -len("module")]
                short = kept + short[len(prefix) + 1:]
        bare[name] = short
    return bare


def get_model_state_dict(model, *, submodules=None, options=None):
    """The model's state_dict without the prefixes of DistributedDataParallel. Source: PyTorch, the same name."""
    options = _checked(options, submodules)
    state = model.state_dict()
    bare = _bare_names(model, state)
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad} if options.ignore_frozen_params else ()
    return type(state)((bare[name], value) for name, value in state.items() if name not in frozen)


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Load what get_model_state_dict gave; the missing and unexpected keys. Source: PyTorch, the same name."""
    options = _checked(options)
    bare = _bare_names(model, model.state_dict())
    wrapped = {short: name for name, short in bare.items()}
    return model.load_state_dict({wrapped.get(key, key): value for key, value in model_state_dict.items()}, strict=options.strict)


def _names_of_parameters(model):
    bare = _bare_names(model, [name for name, _ in model.named_parameters()])
    return {id(p): bare[name] for name, p in model.named_parameters()}


def _optimizers(optimizers):
    return list(optimizers) if isinstance(optimizers, (list, tuple, set)) else [optimizers]


def _with_state(optimizer):
    """Make the state of an optimizer that has not stepped yet, by a step that changes no parameter."""
    if optimizer.state:
        return
    params = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if any(p.grad is not None for p in params):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    with no_grad():
        for p in params:
            p.grad = zeros_like(p)
        for group in optimizer.param_groups:
            if "lr" in group:
                group["lr"] = zeros_like(group["lr"]) if hasattr(group["lr"], "dtype") else 0.0
        optimizer.step()
        for group, rate in zip(optimizer.param_groups, rates):
            if rate is not None:
                group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The optimizers' state with the names of the parameters instead of their numbers; an optimizer that has not stepped gets its
    state made. Flat, with dotted keys, with `flatten_optimizer_state_dict`. Source: PyTorch, the same name."""
    options = _checked(options, submodules)
    names, whole = _names_of_parameters(model), {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        _with_state(optimizer)
        state = optimizer.state_dict()
        keys = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        whole["state"].update({keys[i]: entry for i, entry in state["state"].items()})
        whole["param_groups"] += [group | {"params": [keys[i] for i in group["params"]]} for group in state["param_groups"]]
    return _flat(whole) if options.flatten_optimizer_state_dict else whole


def _flat(whole):
    made = {f"state.{name}.{key}": value for name, entry in whole["state"].items() for key, value in entry.items()}
    for group in whole["param_groups"]:
        for name in group["params"]:
            made.update({f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"})
    return made


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Load what get_optimizer_state_dict gave, nested or flat. Source: PyTorch, the same name."""
    options = _checked(options)
    names = _names_of_parameters(model)
    for optimizer in _optimizers(optimizers):
        _with_state(optimizer)
        local = optimizer.state_dict()
        keys = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        if options.flatten_optimizer_state_dict:
            local["state"] = {i: {k: optim_state_dict[f"state.{keys[i]}.{k}"] for k in entry} for i, entry in local["state"].items()}
            groups = [{k: optim_state_dict[f"param_groups.{keys[group['params'][0]]}.{k}"] for k in group if k != "params"}
                      for group in local["param_groups"]]
        else:
            local["state"] = {i: optim_state_dict["state"][key] for i, key in enumerate(keys) if key in optim_state_dict["state"]}
            groups = [_group_with(optim_state_dict["param_groups"], keys[group["params"][0]]) for group in local["param_groups"]]
        local["param_groups"] = [new | {"params": old["params"]} for new, old in zip(groups, local["param_groups"])]
        optimizer.load_state_dict(local)


def _group_with(groups, name):
    for group in groups:
        if name in group["params"]:
            return group
    raise RuntimeError(f"no parameter group of the optimizer's state holds {name}")


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """(state of the model, state of the optimizers). Source: PyTorch, the same name."""
    return (get_model_state_dict(model, submodules=submodules, options=options),
            get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options))


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Load both. Source: PyTorch, the same name."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
