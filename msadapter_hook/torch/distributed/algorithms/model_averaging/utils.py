# Averaging parameters over the processes of a group.
from .... import cat, no_grad

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params, process_group):
    """Replace parameters by their mean over the group, in one all_reduce. Nothing where this process is not in it.

    Source: PyTorch, torch.distributed.algorithms.model_averaging.utils.average_parameters.
    """
    from .... import distributed as dist

    group = process_group if process_group is not None else dist.group.WORLD
    if dist.get_rank(group) < 0:
        return
    params = list(params)
    if not params:
        return
    with no_grad():
        flat = cat([p.detach().reshape(-1) for p in params])
        flat.div_(dist.get_world_size(group))
        dist.all_reduce(flat, group=group)
        for p, piece in zip(params, flat.split([p.numel() for p in params])):
            p.copy_(piece.view(p.shape))


def get_params_to_average(params):
    """The parameters, of a list of them or of parameter groups, that have a gradient."""
    chosen = []
    for item in params:
        if isinstance(item, dict):
            chosen += [p for p in item["params"] if p.grad is not None]
        elif item.grad is not None:
            chosen.append(item)
    return chosen


def average_parameters_or_parameter_groups(params, process_group):
    """average_parameters of those that have a gradient."""
    average_parameters(iter(get_params_to_average(params)), process_group)
