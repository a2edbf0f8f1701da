"""A tensor of a CUDA graph's pool that lives longer than the graph.

Under expandable segments PyTorch drops the pool with the graph, and never unmaps the tensor's memory.
"""

import torch
from models import MIB, tensor

kept = [tensor(MIB)]
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    whole = tensor(100 * MIB).zero_()
    del whole
    kept.append(tensor(20 * MIB))
del graph
torch.cuda.empty_cache()
kept.pop()
torch.cuda.empty_cache()
kept.append(tensor(70 * MIB))
