"""PyTorch Geometric: a graph network on graphs of many sizes."""

import torch
from torch_geometric.nn import GCNConv


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GCNConv(256, 512)
        self.second = GCNConv(512, 40)

    def forward(self, nodes, edges):
        return self.second(self.first(nodes, edges).relu(), edges)


def main():
    torch.manual_seed(1)
    model = Network().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(8):
        nodes = int(torch.randint(20_000, 60_000, (1,)))
        links = int(torch.randint(100_000, 400_000, (1,)))
        kinds = torch.randint(0, 40, (nodes,)).cuda()
        found = model(torch.randn(nodes, 256).cuda(), torch.randint(0, nodes, (2, links)).cuda())
        torch.nn.functional.cross_entropy(found, kinds).backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
