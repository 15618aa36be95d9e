"""Batch normalization that keeps no running statistics, as function transforms want it."""


def replace_all_batch_norm_modules_(root):
    """Let every batch normalization of a module, in place, use the batch's own statistics and keep none.

    Source: PyTorch, torch.func.replace_all_batch_norm_modules_.
    """
    from ..nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
