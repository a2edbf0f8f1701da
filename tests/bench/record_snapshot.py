"""Trains a small transformer and dumps the allocator's history: a snapshot of real structure.

    fragtrace run --virtual-gpu 16GiB -- python record_snapshot.py ENTRIES FILE [--warm STEPS]
                                                                  [--least]

Every three entries are a tensor's life (alloc, free_requested, free_completed). With --warm the
history is switched on in mid-life. With --least there are stacks of allocations only, of Python.
"""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("entries", type=int)
    parser.add_argument("file")
    parser.add_argument("--warm", type=int, default=0)
    parser.add_argument("--least", action="store_true")
    arguments = parser.parse_args()

    model = nn.Sequential(*[nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0) for _ in range(6)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    generator = torch.Generator().manual_seed(1)

    def step():
        length = int(torch.randint(32, 512, (), generator=generator))
        loss = model(torch.zeros(length, 4, 128, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(arguments.warm):
        step()
    torch.cuda.memory._record_memory_history(
        context="alloc" if arguments.least else "all",
        stacks="python" if arguments.least else "all",
        max_entries=arguments.entries,
    )
    taken = 0
    while taken < arguments.entries:
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        step()
        taken += 3 * (torch.cuda.memory_stats()["allocation.all.allocated"] - before)
    torch.cuda.memory._dump_snapshot(arguments.file)


if __name__ == "__main__":
    main()
