"""Started by torchrun: rank 1 does not take part in a collective. PyTorch's watchdog must end rank 0."""

import datetime
import os
import time

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=2))
total = torch.tensor([1.0], device="cuda")
dist.all_reduce(total)
torch.cuda.synchronize()
if rank == 0:
    dist.all_reduce(total)
    torch.cuda.synchronize()
    print("not reached", flush=True)
time.sleep(600)
