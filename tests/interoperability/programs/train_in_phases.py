"""Trains in nested phases, profiles it, runs out of memory, and dumps PyTorch's own snapshot.

train_in_phases.py FOLDER       writes profile.json, profile.json.gz and snapshot.pickle there
"""

import gzip
import pathlib
import sys

import fragtrace
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

MIB = 2**20


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.cuda.memory._record_memory_history(max_entries=100000)
    torch.manual_seed(1)
    model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    other = torch.cuda.Stream()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for step in range(8):
            with fragtrace.phase(f"step {step}"), record_function("profiled step"):
                with fragtrace.phase("forward"):
                    batch = torch.zeros(100 + 50 * step, 512, device="cuda")
                    with torch.cuda.stream(other):
                        batch.record_stream(other)
                    loss = model(batch).square().mean()
                    del batch
                with fragtrace.phase("backward"):
                    loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                fragtrace.mark("stepped")
    profiler.export_chrome_trace(str(folder / "profile.json"))
    (folder / "profile.json.gz").write_bytes(gzip.compress((folder / "profile.json").read_bytes()))
    blocks = [torch.empty(9 * MIB, dtype=torch.uint8, device="cuda") for _ in range(80)]
    del blocks[1::2]
    with fragtrace.phase("too large"):
        try:
            torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            print("out of memory")
    torch.cuda.memory._dump_snapshot(str(folder / "snapshot.pickle"))


if __name__ == "__main__":
    main()
