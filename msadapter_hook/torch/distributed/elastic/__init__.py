# torch.distributed.elastic: what programs use of it inside a worker. The launcher is torch.distributed.run.
