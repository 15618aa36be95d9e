"""A first data-parallel program: a toy model, a training step, a checkpoint that rank 0 saves and all load.

    torchrun --nproc-per-node 2 ddp_tutorial.py     two processes, started by the launcher
    python ddp_tutorial.py --spawn 2                two processes, started by the program itself
"""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def demo_basic(rank):
    """Each process has its own batch; the gradients, and so the models, are the same on all."""
    torch.manual_seed(100 + rank)  # models differ until DDP makes them those of rank 0
    ddp_model = DDP(ToyModel())
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.05)

    for step in range(5):
        optimizer.zero_grad()
        outputs = ddp_model(torch.randn(20, 10))
        labels = torch.randn(20, 5)
        loss = loss_fn(outputs, labels)
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            print(f"step {step} mean loss {total.item() / dist.get_world_size():.6f}")

    mine = torch.cat([p.detach().flatten() for p in ddp_model.parameters()])
    everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, mine)
    if rank == 0:
        print(f"models differ by {max((other - mine).abs().max().item() for other in everyone):.1e}")


def demo_checkpoint(rank, path):
    ddp_model = DDP(ToyModel())
    if rank == 0:
        torch.save(ddp_model.state_dict(), path)
    dist.barrier()  # nobody loads before it has been saved
    map_location = {"cuda:0": f"cuda:{rank}"}
    ddp_model.load_state_dict(torch.load(path, map_location=map_location, weights_only=True))

    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.001)
    optimizer.zero_grad()
    outputs = ddp_model(torch.randn(20, 10))
    loss_fn(outputs, torch.randn(20, 5)).backward()
    optimizer.step()
    dist.barrier()
    if rank == 0:
        os.remove(path)
        print("checkpoint loaded on every rank")


def run(rank, world_size):
    print(f"rank {rank} of {world_size} is running")
    demo_basic(rank)
    demo_checkpoint(rank, os.path.join(tempfile.gettempdir(), f"toy_model_{os.environ['MASTER_PORT']}.checkpoint"))


def spawned(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    run(rank, world_size)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spawn", type=int, default=0, help="start so many processes; without it, the launcher has")
    parser.add_argument("--port", type=int, default=12355)
    args = parser.parse_args()
    if args.spawn:
        mp.spawn(spawned, args=(args.spawn, args.port), nprocs=args.spawn, join=True)
        return
    dist.init_process_group("gloo")
    run(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
