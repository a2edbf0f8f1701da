"""Data-parallel training in ranks that torch.multiprocessing starts, without torchrun."""

import os
import socket

import torch
import torch.distributed as dist


def work(rank, ranks, port):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512).cuda(), device_ids=[rank])
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    dist.barrier()
    print(f"{rank} done\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(work, (2, port), 2)
