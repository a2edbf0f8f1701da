"""Started by torchrun with two processes: data-parallel training over the stand-in for NCCL."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
model = DistributedDataParallel(torch.nn.Linear(512, 512).cuda(), device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
total = torch.ones(4, device="cuda")
dist.all_reduce(total)
dist.barrier()
print(f"{rank} done\n", end="", flush=True)
dist.destroy_process_group()
