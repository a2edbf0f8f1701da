"""A data-parallel job in which one rank runs out of memory. The argument is a plan (failing_job.py) as JSON.

Under torchrun each process is a rank. Otherwise the ranks are forked.
"""

import datetime
import json
import os
import signal
import sys
import time

import forked_ranks
import torch
import torch.distributed as dist

PLAN = json.loads(sys.argv[1])
MIB = 2**20


def tensor_of(mib):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")


def leak(kept):
    kept.append(torch.empty(int(PLAN["held_mib"] * MIB), dtype=torch.uint8, device="cuda"))


def large_batch():
    return torch.empty(int(PLAN["request_mib"] * MIB), dtype=torch.uint8, device="cuda")


def scatter(kept):
    """Two blocks of 9 MiB share a segment. Freeing one of each leaves holes."""
    blocks = [torch.empty(9 * MIB, dtype=torch.uint8, device="cuda") for _ in range(PLAN["blocks"])]
    kept.extend(blocks[::2])


def catch_one():
    """Larger than the card, so it fails on a healthy rank too."""
    try:
        tensor_of(PLAN["card_mib"] * 2)
    except torch.OutOfMemoryError:
        pass


def fail(kind, step, kept):
    """What the failing rank does in this step."""
    last = step == PLAN["step"]
    if kind == "leak":
        leak(kept)
    elif kind == "batch" and last:
        large_batch()
    elif kind == "fragmentation":
        if step == 0:
            scatter(kept)
        if last:
            large_batch()


def end_after_oom(how):
    if how == "abort":
        os.abort()
    if how == "exit":
        os._exit(7)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "hang":
        time.sleep(600)
    if how == "normal":
        os._exit(0)
    raise RuntimeError(how)


def train(rank, ranks):
    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl", rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=PLAN["timeout_s"])
    )
    width = PLAN["width"]
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width))
    model = torch.nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    kept = []
    if rank in PLAN["larger"]:
        kept.append(tensor_of(PLAN["larger_mib"]))
    for step in range(PLAN["steps"]):
        if [rank, step] in PLAN["caught"]:
            catch_one()
        model(torch.randn(PLAN["batch"], width, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == PLAN["rank"]:
            try:
                fail(PLAN["kind"], step, kept)
            except torch.OutOfMemoryError:
                if PLAN["ends"] == "raise":
                    raise
                end_after_oom(PLAN["ends"])
        dist.all_reduce(torch.ones(4, device="cuda"))
        torch.cuda.synchronize()


def run_rank(rank, ranks):
    try:
        train(rank, ranks)
    except Exception:
        if rank in PLAN["saves"] and rank != PLAN["rank"]:
            tensor_of(PLAN["card_mib"])
        raise


def delayed(rank, ranks):
    time.sleep(PLAN["delays"][rank])
    run_rank(rank, ranks)


if __name__ == "__main__":
    if PLAN["launcher"] == "torchrun":
        run_rank(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    else:
        sys.exit(
            forked_ranks.launch(
                delayed,
                PLAN["ranks"],
                {"term": signal.SIGTERM, "kill": signal.SIGKILL}.get(PLAN["launcher"]),
                PLAN["stop_after_s"],
                PLAN["rank"],
            )
        )
