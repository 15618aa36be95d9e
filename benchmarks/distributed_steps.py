"""Data-parallel training steps in plain PyTorch, run by every worker of benchmarks/distributed.py: it knows neither side.

Prints, on rank 0, one line of JSON: {workload: {"step": ms, "alone": ms without communication, "MiB": of gradients}, …,
"all_reduce": {elements: ms}}; each time as [median, minimum].
"""
import contextlib
import json
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from workloads import MODELS


def measure(name, rank, world, steps):
    torch.manual_seed(0)
    model, x, y, optimizer = MODELS[name]()
    x, y = x.chunk(world)[rank], y.chunk(world)[rank]
    model = DistributedDataParallel(model)

    def step(local):
        with model.no_sync() if local else contextlib.nullcontext():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
        optimizer.step()
        return loss.item()

    times = {True: [], False: []}
    for i in range(-5, steps):
        for local in (False, True):
            dist.barrier()  # so that a step does not wait for another worker's last one
            start = time.perf_counter()
            step(local)
            if i >= 0:
                times[local].append((time.perf_counter() - start) * 1e3)
    size = sum(p.numel() * p.element_size() for p in model.parameters()) / 2**20
    return {"step": summary(times[False]), "alone": summary(times[True]), "MiB": round(size, 2)}


def summary(values):
    return [round(sorted(values)[len(values) // 2], 2), round(min(values), 2)]


def all_reduce(elements, steps):
    t = torch.ones(elements)
    times = []
    for _ in range(steps):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(t)
        times.append((time.perf_counter() - start) * 1e3)
    return summary(times)


if __name__ == "__main__":
    names, steps = sys.argv[1].split(","), int(sys.argv[2])
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(max(1, int(sys.argv[3]) // world))
    found = {name: measure(name, rank, world, steps) for name in names}
    found["all_reduce"] = {elements: all_reduce(elements, steps) for elements in (1, 1000, 100_000, 1_000_000)}
    if rank == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()
