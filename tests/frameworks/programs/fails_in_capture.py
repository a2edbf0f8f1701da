"""A capture whose requests are served by another pool, while the default pool has cached memory.

fails_in_capture.py handle|mem_pool|raw
"""

import sys

import torch
from common import MIB, tensor

kind = sys.argv[1]
handle = torch.cuda.graph_pool_handle() if kind == "handle" else None
inner, side = torch.cuda.MemPool(), torch.cuda.Stream()
cached = [tensor(100 * MIB) for _ in range(10)]
kept = []
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, pool=handle):  # empties the cache on entry
    cached.clear()
    for _ in range(6):
        if kind == "handle":
            kept.append(tensor(200 * MIB))
        elif kind == "mem_pool":
            with torch.cuda.use_mem_pool(inner):
                kept.append(tensor(200 * MIB))
        else:
            kept.append(torch.cuda.caching_allocator_alloc(200 * MIB, stream=side))
