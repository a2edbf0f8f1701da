"""Trains a model large enough that a small card decides whether it fits. Arguments: the way, the ranks."""

import os
import sys

import forked_ranks
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

WIDTH = 1024
STEPS = 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(WIDTH, 2 * WIDTH, device="cuda")
        self.outer = nn.Linear(2 * WIDTH, WIDTH, device="cuda")

    def forward(self, x):
        return self.outer(self.inner(x).relu()) + x


def blocks(count):
    return nn.Sequential(*[Block() for _ in range(count)])


def train(model, optimizer=None):
    optimizer = optimizer or torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        model(torch.randn(512, WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()


def ddp(rank, ranks):
    train(nn.parallel.DistributedDataParallel(blocks(6), device_ids=[rank]))


def zero_1(rank, ranks):
    model = nn.parallel.DistributedDataParallel(blocks(6), device_ids=[rank])
    train(model, ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW))


def fsdp_1(rank, ranks):
    train(FullyShardedDataParallel(blocks(6)))


def fsdp_2(rank, ranks):
    model = blocks(6)
    for block in model:
        fully_shard(block)
    train(fully_shard(model))


def hsdp(rank, ranks):
    mesh = init_device_mesh("cuda", (2, ranks // 2), mesh_dim_names=("replicate", "shard"))
    model = blocks(6)
    for block in model:
        fully_shard(block, mesh=mesh)
    train(fully_shard(model, mesh=mesh))


def pipeline(rank, ranks):
    """Stages of 2, 2, 7 and 2 blocks."""
    device = torch.device("cuda", rank)
    stage = blocks(7 if rank == 2 else 2)
    optimizer = torch.optim.AdamW(stage.parameters())
    run = Schedule1F1B(
        PipelineStage(stage, rank, ranks, device), n_microbatches=4, loss_fn=nn.functional.mse_loss
    )
    whole = torch.randn(512, WIDTH, device="cuda")
    for _ in range(STEPS):
        if rank == 0:
            run.step(whole)
        elif rank == ranks - 1:
            run.step(target=whole, losses=[])
        else:
            run.step()
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()


def work(rank, ranks):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    globals()[sys.argv[1]](rank, ranks)
    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(forked_ranks.launch(work, int(sys.argv[2])))
