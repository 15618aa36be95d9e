"""torch.distributed.algorithms._checkpoint: modules whose activations are computed anew in backward."""
