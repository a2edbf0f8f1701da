"""Inside a MemPool the cache of that pool is not released before the retry."""

from common import GIB, tensor, torch

FIELD = {
    "thread": "pytorch/pytorch#159674",
    "finding": "60 GiB cached in a MemPool in use are not released for the retry. The same "
    "program without the MemPool runs",
    "card": "80GiB,context=0",
    "says": "other_pool",
}

pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    first = tensor(60 * GIB)
    del first
    second = tensor(70 * GIB)
