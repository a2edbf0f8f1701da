"""Graphs whose captures free blocks that a second stream used. The frees wait until the capture has ended."""

import torch
from common import MIB, say, tensor

side = torch.cuda.Stream()
kept = [tensor(5 * MIB), tensor(300)]
before = [tensor(3 * MIB), tensor(6 * MIB)]  # recorded before the capture, freed within it
for block in before:
    block.record_stream(side)
del block


def work(pool=None):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        own = torch.cuda.current_stream()
        side.wait_stream(own)
        kept.append(tensor(2 * MIB))
        for step in range(6):
            used = tensor(3 * MIB + step * 700_000)
            small = tensor(5000 + step)
            with torch.cuda.stream(side):
                used.add_(1)
                other = tensor(4 * MIB)
            used.record_stream(side)
            small.record_stream(side)
            small.record_stream(torch.cuda.default_stream())
            other.record_stream(own)
            own_only = tensor(7 * MIB)
            own_only.record_stream(own)  # no effect: it is free at once
            del used, small, other, own_only
            kept.append(tensor(1 * MIB + step))
        before.clear()
        later = tensor(2 * MIB + 5)
        later.record_stream(side)  # freed after the capture
        own.wait_stream(side)
    return graph, later


def between():
    for step in range(4):
        kept.append(tensor(2 * MIB + step))
        late = tensor(9 * MIB)
        late.record_stream(side)
        del late
        with torch.cuda.stream(side):
            kept.append(tensor(30_000))


first, later = work()
late = kept.pop(0)
late.record_stream(side)
del late  # the first event after the capture, and it belongs to a free
first.replay()
between()
del later
second, later = work(first.pool())  # which begins with empty_cache
del later
torch.cuda.empty_cache()
second.replay()
between()
third, _ = work()
between()
if hasattr(torch.cuda, "use_mem_pool"):  # up to about 2.12 such a pool defers frees, too
    mem_pool = torch.cuda.MemPool()
    waits = tensor(8 * MIB)
    waits.record_stream(side)
    with torch.cuda.use_mem_pool(mem_pool):
        del waits
        kept.append(tensor(8 * MIB))
        inside = tensor(3 * MIB)
        inside.record_stream(side)
        del inside
        kept.append(tensor(3 * MIB))
    between()
torch.cuda.synchronize()
kept.append(tensor(12 * MIB))
say(pools=[list(first.pool()), list(third.pool())])
