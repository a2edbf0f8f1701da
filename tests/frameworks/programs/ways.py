"""Ways of training with several ranks that need PyTorch alone, one function each.

parallel.py runs all of them one after the other, memory_ranks.py one alone.
"""

import torch
import torch.distributed as dist
from blocks import ROWS, STEPS, WIDTH, blocks, train
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

HEADS = 8


def ddp(rank, ranks):
    train(nn.parallel.DistributedDataParallel(blocks(6), device_ids=[rank]))


def zero_1(rank, ranks):
    model = nn.parallel.DistributedDataParallel(blocks(6), device_ids=[rank])
    train(model, ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW))


def fsdp_1(rank, ranks):
    train(FullyShardedDataParallel(blocks(6)))


def train_sharded(model, mesh=None):
    for block in model:
        fully_shard(block, mesh=mesh)
    train(fully_shard(model, mesh=mesh))


def fsdp_2(rank, ranks):
    train_sharded(blocks(6))


def hsdp(rank, ranks):
    mesh = init_device_mesh("cuda", (2, ranks // 2), mesh_dim_names=("replicate", "shard"))
    train_sharded(blocks(6), mesh)


def tensor_parallel(ranks):
    """The model, of which each rank has half, and the mesh of the ranks that have the same half."""
    mesh = init_device_mesh("cuda", (ranks // 2, 2), mesh_dim_names=("data", "tensor"))
    model = blocks(6)
    for block in model:
        parallelize_module(block, mesh["tensor"], {"inner": ColwiseParallel(), "outer": RowwiseParallel()})
    return model, mesh["data"]


def tp_fsdp_2(rank, ranks):
    train_sharded(*tensor_parallel(ranks))


def tp_dp(rank, ranks):
    model, mesh = tensor_parallel(ranks)
    train(nn.parallel.DistributedDataParallel(model, device_mesh=mesh))


def pipeline(schedule, stages_per_rank, rank, ranks):
    """Stages of 2, 2, 7 and 2 blocks."""
    device = torch.device("cuda", rank)
    whole = nn.ModuleList(blocks(7 if rank == 2 else 2) for _ in range(stages_per_rank))
    stages = [
        PipelineStage(part, rank + turn * ranks, ranks * stages_per_rank, device)
        for turn, part in enumerate(whole)
    ]
    optimizer = torch.optim.AdamW(whole.parameters())
    run = schedule(
        stages if stages_per_rank > 1 else stages[0], n_microbatches=4, loss_fn=nn.functional.mse_loss
    )
    batch = torch.randn(ROWS, WIDTH, device="cuda")
    for _ in range(STEPS):
        if rank == 0:
            run.step(batch)
        elif rank == ranks - 1:
            run.step(target=batch, losses=[])
        else:
            run.step()
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()


def pipeline_1f1b(rank, ranks):
    pipeline(Schedule1F1B, 1, rank, ranks)


def pipeline_gpipe(rank, ranks):
    pipeline(ScheduleGPipe, 1, rank, ranks)


def pipeline_interleaved(rank, ranks):
    pipeline(ScheduleInterleaved1F1B, 2, rank, ranks)


def exchange(sent, step):
    """Passes a tensor `step` ranks on in the ring. Returns the tensor that arrives."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(sent)
    for work in dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, sent, (rank + step) % ranks),
            dist.P2POp(dist.irecv, received, (rank - step) % ranks),
        ]
    ):
        work.wait()
    return received


class PassOn(torch.autograd.Function):
    """To the next rank; the gradient goes back to the previous one."""

    @staticmethod
    def forward(_, sent):
        return exchange(sent, 1)

    @staticmethod
    def backward(_, gradient):
        return exchange(gradient.contiguous(), -1)


class RingAttention(nn.Module):
    """Each rank has a part of the sequence. Keys and values go round, as in Megatron's context parallel."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(WIDTH, 3 * WIDTH, device="cuda")
        self.outer = nn.Linear(WIDTH, WIDTH, device="cuda")

    def forward(self, x):
        query, key, value = self.inner(x).unflatten(-1, (3, HEADS, -1)).permute(1, 2, 0, 3)
        held = torch.stack([key, value])
        outputs, sums = [], []
        for turn in range(dist.get_world_size()):
            if turn > 0:
                held = PassOn.apply(held)
            scores = query @ held[0].transpose(-1, -2)
            outputs.append(scores.softmax(-1) @ held[1])
            sums.append(scores.logsumexp(-1, keepdim=True))
        attended = (torch.stack(outputs) * torch.stack(sums).softmax(0)).sum(0)
        return self.outer(attended.transpose(0, 1).flatten(1)) + x


def context_parallel(rank, ranks):
    model = blocks(3)
    for index in range(3):
        model.insert(2 * index, RingAttention())
    train(nn.parallel.DistributedDataParallel(model, device_ids=[rank]))


ALL = (
    ddp,
    zero_1,
    fsdp_1,
    fsdp_2,
    hsdp,
    tp_fsdp_2,
    tp_dp,
    pipeline_1f1b,
    pipeline_gpipe,
    pipeline_interleaved,
    context_parallel,
)
