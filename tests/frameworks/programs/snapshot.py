"""Trains with batches of varying length, a second stream and an OOM; dumps PyTorch's own snapshots.

snapshot.py FOLDER      whole.pickle (from the start), late.pickle (history from mid-life on),
                        state.pickle (no history); late.pickle only if the release supports it
"""

import pathlib
import sys

import torch
from torch import nn


def main():
    folder = pathlib.Path(sys.argv[1])
    memory = torch.cuda.memory
    torch.manual_seed(1)
    memory._record_memory_history(max_entries=200000)
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    other = torch.cuda.Stream()
    generator = torch.Generator().manual_seed(2)

    def step():
        length = int(torch.randint(100, 4000, (), generator=generator))
        batch = torch.zeros(length, 1024, device="cuda")
        with torch.cuda.stream(other):
            batch.record_stream(other)
            side = batch * 2
        del batch
        loss = model(torch.zeros(length, 1024, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return side

    for i in range(12):
        step()
        if i == 7:
            torch.cuda.empty_cache()
    try:
        torch.empty(64 << 30, dtype=torch.uint8, device="cuda")
    except RuntimeError as refused:
        print("refused:", str(refused)[:60])
    memory._dump_snapshot(str(folder / "whole.pickle"))
    memory._record_memory_history(enabled=None)
    for _ in range(3):
        step()
    memory._dump_snapshot(str(folder / "state.pickle"))
    memory._record_memory_history(max_entries=200000)
    for _ in range(12):
        step()
    memory._dump_snapshot(str(folder / "late.pickle"))


if __name__ == "__main__":
    main()
