"""A model whose blocks carry the names of their modules. Prints the bytes per name, as hooks count them."""

import json

import fragtrace
import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)
        )

    def forward(self, x):
        return x + self.mlp(x)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x, fail=False):
        for layer in self.layers:
            x = layer(x)
        if fail:
            raise KeyError
        return x


net = Net().cuda()
x = torch.ones(2048, 1024, device="cuda")
net(x)  # allocates the workspace of cuBLAS
names = fragtrace.name_modules(net, "net")
try:
    net(x, fail=True)
except KeyError:
    pass
unnamed = torch.ones(5 << 18, device="cuda")  # 5 MiB
out = net(x)
row = 2048 * 4
expected = {
    # out of each layer, and of the first and last operation in it: kept for the backward pass
    f"net.layers.{layer}{part}": row * width
    for layer in range(2)
    for part, width in (("", 1024), (".mlp.0", 4096), (".mlp.1", 4096))
}
names.remove()
also_unnamed = net(x)
hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules())
print(json.dumps([expected, hooks]))
