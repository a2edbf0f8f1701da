"""Started by torchrun: rank 1 is killed in a collective of the first generation, after a step of training.

The second generation ends well.
"""

import os
import signal

import torch
import torch.distributed as dist
from blocks import STEPS, blocks, train_step

generation = os.environ["TORCHELASTIC_RESTART_COUNT"]
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(blocks(6), device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters())
for step in range(STEPS):
    total = torch.tensor([rank + 1], device="cuda")
    if (step, rank, generation) == (1, 1, "0"):
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(total)
    assert total.item() == 3 or generation == "0"
    train_step(model, optimizer)
torch.cuda.synchronize()
dist.barrier()
print(f"{rank} done in generation {generation}\n", end="", flush=True)
dist.destroy_process_group()
