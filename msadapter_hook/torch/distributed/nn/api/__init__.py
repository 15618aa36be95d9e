# torch.distributed.nn.api: what is left of remote modules.
