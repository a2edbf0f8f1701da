"""Started by torchrun with four processes: every way of training with several ranks, one after the other.
Each line printed means that a rank has run that part."""

import datetime
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

WIDTH = 128


class Block(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        return super().forward(x) + x


def model():
    return nn.Sequential(*[Block() for _ in range(3)]).cuda()


def train(parallel, steps=2):
    optimizer = torch.optim.AdamW(parallel.parameters())
    for _ in range(steps):
        parallel(torch.randn(16, WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def collectives(rank, ranks):
    total = torch.tensor([rank + 1.0, 2.0], device="cuda")
    dist.all_reduce(total)
    assert total.tolist() == [ranks * (ranks + 1) / 2, 2.0 * ranks]
    sizes = [torch.empty(rank_ + 1, dtype=torch.long, device="cuda") for rank_ in range(ranks)]
    dist.all_gather(sizes, torch.tensor([rank] * (rank + 1), device="cuda"))
    assert [size.tolist() for size in sizes] == [[other] * (other + 1) for other in range(ranks)]


def objects(rank, ranks):
    gathered = [None] * ranks
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * 100 * rank})
    assert gathered == [{"rank": other, "text": "x" * 100 * other} for other in range(ranks)]
    listed = ["a", {"b": 1}, [3] * 50] if rank == 1 else [None] * 3
    dist.broadcast_object_list(listed, src=1)
    assert listed == ["a", {"b": 1}, [3] * 50]
    mine = [None]
    dist.scatter_object_list(mine, ["y" * (other + 1) for other in range(ranks)] if rank == 0 else None)
    assert mine == ["y" * (rank + 1)]


def data_parallel(rank, ranks):
    train(nn.parallel.DistributedDataParallel(model(), device_ids=[rank], bucket_cap_mb=1))


def sharded_1(rank, ranks):
    train(FullyShardedDataParallel(model()))


def sharded_2(rank, ranks):
    sharded = model()
    for block in sharded:
        fully_shard(block)
    train(fully_shard(sharded))


def hybrid(rank, ranks):
    mesh = init_device_mesh("cuda", (2, ranks // 2), mesh_dim_names=("replicate", "shard"))
    sharded = model()
    for block in sharded:
        fully_shard(block, mesh=mesh)
    train(fully_shard(sharded, mesh=mesh))


def tensor_parallel(rank, ranks):
    mesh = init_device_mesh("cuda", (ranks // 2, 2), mesh_dim_names=("data", "tensor"))
    parallel = model()
    for block in parallel:
        parallelize_module(block, mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        fully_shard(block, mesh=mesh["data"])
    train(fully_shard(parallel, mesh=mesh["data"]))


def pipeline(schedule, stages_per_rank, rank, ranks):
    device = torch.device("cuda", rank)
    stages = [
        PipelineStage(Block().cuda(), rank + turn * ranks, ranks * stages_per_rank, device)
        for turn in range(stages_per_rank)
    ]
    run = schedule(
        stages if stages_per_rank > 1 else stages[0], n_microbatches=4, loss_fn=nn.functional.mse_loss
    )
    whole = torch.randn(32, WIDTH, device="cuda")
    for _ in range(2):
        if rank == 0:
            run.step(whole)
        elif rank == ranks - 1:
            run.step(target=whole, losses=[])
        else:
            run.step()


def gpipe(rank, ranks):
    pipeline(ScheduleGPipe, 1, rank, ranks)


def one_forward_one_backward(rank, ranks):
    pipeline(Schedule1F1B, 1, rank, ranks)


def interleaved(rank, ranks):
    pipeline(ScheduleInterleaved1F1B, 2, rank, ranks)


def context_parallel(rank, ranks):
    """Ring attention: each rank has a part of the sequence, and the keys and values go round."""
    query, key, value = (torch.randn(2, 4, 64, 32, device="cuda", requires_grad=True) for _ in range(3))
    held = torch.stack([key, value]).detach()
    outputs = []
    for _ in range(ranks):
        weights = (query @ held[0].transpose(-1, -2)).softmax(-1)
        outputs.append(weights @ held[1])
        received = torch.empty_like(held)
        for work in dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, held, (rank + 1) % ranks),
                dist.P2POp(dist.irecv, received, (rank - 1) % ranks),
            ]
        ):
            work.wait()
        held = received
    torch.stack(outputs).sum().backward()


def early_message(rank, ranks):
    """A message that is sent long before the other rank asks for it."""
    store = dist.distributed_c10d._get_default_store()
    tensor = torch.tensor([rank, 7], device="cuda")
    if rank == 0:
        work = dist.isend(tensor, 1)
        store.set("sent", "1")
        work.wait()
    elif rank == 1:
        store.wait(["sent"])
        dist.recv(tensor, 0)
        assert tensor.tolist() == [0, 7]


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    # With a device, the groups of a mesh are made by ncclCommSplit.
    dist.init_process_group(
        "nccl", device_id=torch.device("cuda", rank), timeout=datetime.timedelta(seconds=120)
    )
    for part in (
        collectives,
        objects,
        data_parallel,
        sharded_1,
        sharded_2,
        hybrid,
        tensor_parallel,
        gpipe,
        one_forward_one_backward,
        interleaved,
        context_parallel,
        early_message,
    ):
        part(rank, ranks)
        dist.barrier()
        print(f"{rank} {part.__name__}\n", end="", flush=True)
    dist.destroy_process_group()


main()
