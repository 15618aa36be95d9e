# The old place of torch.hub's functions for pretrained weights.


def load_url(url, *args, **kwargs):
    """Loads a checkpoint from a URL (PyTorch, torch.utils.model_zoo.load_url)."""
    from .. import hub

    return hub.load_state_dict_from_url(url, *args, **kwargs)
