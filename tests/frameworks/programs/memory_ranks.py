"""Trains in one way of ways.py. Arguments: the way, the ranks."""

import os
import sys

import forked_ranks
import torch
import torch.distributed as dist
import ways


def work(rank, ranks):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    getattr(ways, sys.argv[1])(rank, ranks)
    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(forked_ranks.launch(work, int(sys.argv[2])))
