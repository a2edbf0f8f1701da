"""Graphs, streams, pinned memory, private pools, several devices. Each line printed means that part ran."""

import os

import torch
from torch.utils.data import DataLoader, TensorDataset


def copies():
    assert torch.tensor([1, 2, 3.5], device="cuda").tolist() == [1, 2, 3.5]
    known = torch.tensor([7], device="cuda")
    other = torch.tensor([5], device="cuda")
    known *= 2  # a kernel makes its operands unknown, and no others
    assert known.item() == 0
    assert other.item() == 5
    other += 2  # one of the few kernels that are computed
    assert other.item() == 7
    assert torch.cat([other, torch.full((2,), 3, device="cuda")]).sum().item() == 13
    assert torch.arange(3, device="cuda").nonzero().shape == (0, 1)


def graphs():
    model = torch.nn.Linear(64, 64).cuda()
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    x = torch.randn(32, 64, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad()
    with torch.cuda.graph(graph):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
    for _ in range(4):
        graph.replay()
    assert loss.item() == 0


def streams():
    side = torch.cuda.Stream(priority=-1)
    for _ in range(20):
        block = torch.empty(1 << 20, device="cuda")
        with torch.cuda.stream(side):
            block.mul_(2)
            block.record_stream(side)
        del block
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    torch.ones(4, device="cuda")
    last.record()
    torch.cuda.synchronize()
    assert first.elapsed_time(last) > 0


def pinned():
    data = TensorDataset(torch.randn(64, 10), torch.arange(64))
    for inputs, labels in DataLoader(data, batch_size=8, num_workers=2, pin_memory=True):
        assert inputs.is_pinned()
        assert labels.cuda(non_blocking=True).tolist() == labels.tolist()


def pools():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        block = torch.empty(5 << 20, device="cuda")
    assert block.is_cuda


def devices():
    assert torch.cuda.device_count() == 2
    assert "fragtrace virtual GPU" in torch.cuda.get_device_name(1)
    there = torch.tensor([3], device="cuda:1")
    assert there.to("cuda:0").tolist() == [3]


def after_fork():
    child = os.fork()
    if child == 0:
        try:
            torch.zeros(1, device="cuda")
        except RuntimeError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


for feature in (copies, graphs, streams, pinned, pools, devices, after_fork):
    feature()
    print(feature.__name__, flush=True)
