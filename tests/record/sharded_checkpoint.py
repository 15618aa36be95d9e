"""Writes, with real PyTorch, the checkpoint folder that the tests of torch.distributed.checkpoint read:
PYTHON_WITH_TORCH tests/record/sharded_checkpoint.py. One tensor of it lies in two chunks on two workers."""

import os
import shutil
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

FOLDER = Path(__file__).resolve().parents[1] / "goldens" / "sharded_checkpoint"


def save(rank, world):
    os.chdir(FOLDER.parent)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29655")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    rows = distribute_tensor(torch.arange(10.0).view(5, 2), mesh, [Shard(0)])
    # a relative path: it is kept in the metadata
    dcp.save({"rows": rows, "model": {"w": torch.arange(3, dtype=torch.bfloat16)}, "epoch": 3}, checkpoint_id=FOLDER.name)
    dist.destroy_process_group()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    mp.spawn(save, args=(2,), nprocs=2)
