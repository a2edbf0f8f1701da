"""Two threads that allocate at the same time, one of them into a MemPool if the release has MemPools."""

import contextlib
import random
import threading

import torch
from common import MIB, say, tensor

torch.empty(1, device="cuda")
pool = torch.cuda.MemPool() if hasattr(torch.cuda, "MemPool") else None
kept = [[], []]


def work(number):
    generator = random.Random(number)
    mine = kept[number]
    for _ in range(200):
        routed = number == 1 and pool is not None
        with torch.cuda.use_mem_pool(pool) if routed else contextlib.nullcontext():
            mine.append(tensor(generator.randint(1, 4 * MIB)))
        if len(mine) > 15:
            mine.pop(generator.randrange(len(mine)))


threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
say(pools=[list(pool.id)] if pool is not None else [])
