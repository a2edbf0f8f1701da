"""A training step captured as a CUDA graph, replayed between ordinary work."""

import torch
from models import MIB, tensor
from torch import nn

with torch.device("cuda"):
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
batch = torch.zeros(512, 1024, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    model(batch).square().mean().backward()
    optimizer.step()


warm = torch.cuda.Stream()
warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(warm)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
kept = []
for turn in range(12):
    graph.replay()
    kept.append(tensor((3 + 5 * turn % 17) * MIB))
    if turn % 3 == 2:
        del kept[0]
    scratch = torch.zeros(100 + 90 * turn, 4096, device="cuda") @ model[2].weight.t().detach()
del graph
torch.cuda.empty_cache()
kept.append(tensor(70 * MIB))
