"""Data-parallel training in ranks that torch.multiprocessing starts, without torchrun."""

import os
import socket

import torch
import torch.distributed as dist
from blocks import blocks, train


def work(rank, ranks, port):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    train(torch.nn.parallel.DistributedDataParallel(blocks(6), device_ids=[rank]))
    torch.cuda.synchronize()
    print(f"{rank} done\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(work, (2, port), 2)
