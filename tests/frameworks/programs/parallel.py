"""Started by torchrun with four processes: every way of training with several ranks, one after the other.
Each line printed means that a rank has run that part."""

import datetime
import os

import torch
import torch.distributed as dist
import ways


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
    for part in (collectives, objects, *ways.ALL, early_message):
        part(rank, ranks)
        dist.barrier()
        print(f"{rank} {part.__name__}\n", end="", flush=True)
    dist.destroy_process_group()


main()
