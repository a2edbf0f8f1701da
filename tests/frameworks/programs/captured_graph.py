"""Two graphs captured into one private pool, replayed between ordinary work."""

import torch
from common import MIB, say, tensor

kept = [tensor(5 * MIB), tensor(300)]
start = torch.ones(1000, 1000, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    doubled = start * 2
    result = (doubled + 1).sum()
with torch.cuda.graph(second, pool=first.pool()):
    other = doubled.square()
    scratch = other + 1
    del scratch
    third = other * 3
for step in range(5):
    first.replay()
    kept.append(tensor(2 * MIB + step))
    second.replay()
pool = list(first.pool())
del first, doubled, result
torch.cuda.empty_cache()
kept.append(tensor(25 * MIB))
say(pools=[pool])
