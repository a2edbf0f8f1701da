"""A MemPool whose free memory serves other requests before they fail (use_on_oom)."""

import inspect

import torch
from common import MIB, not_here, say, tensor

if (
    not hasattr(torch.cuda, "MemPool")
    or "use_on_oom" not in inspect.signature(torch.cuda.MemPool.__init__).parameters
):
    not_here("MemPool with use_on_oom")
pool = torch.cuda.MemPool(use_on_oom=True)
with torch.cuda.use_mem_pool(pool):
    inside = [tensor(300 * MIB), tensor(40 * MIB)]
inside.pop(0)
kept = [tensor(5 * MIB)]
kept.append(tensor(torch.cuda.mem_get_info()[0] - 30 * MIB))
kept += [tensor(200 * MIB), tensor(50 * MIB)]  # only the pool has memory for them
del kept[2]
failed = 0
try:
    tensor(220 * MIB)
except torch.cuda.OutOfMemoryError:
    failed = 1
kept += [tensor(150 * MIB), tensor(9 * MIB)]
say(pools=[list(pool.id)], failed=failed)
