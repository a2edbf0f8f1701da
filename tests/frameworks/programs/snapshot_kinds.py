"""Dumps PyTorch's snapshots as programs record them: by default, and with less, or more.

snapshot_kinds.py FOLDER      a file NAME.pickle of each kind; prints the names of those that this
                              release cannot write
"""

import gc
import pathlib
import sys

import torch
from torch import nn

memory = torch.cuda.memory
MIB = 1 << 20


def allocate(count, mebibytes):
    return [torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda") for _ in range(count)]


def train(steps=2):
    model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(3)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        loss = model(torch.zeros(4000, 512, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return model, optimizer


def with_holes():
    blocks = allocate(20, 9)
    del blocks[::2]
    return blocks


def start_over():
    memory._record_memory_history(enabled=None)
    gc.collect()
    torch.cuda.empty_cache()


def main():
    folder = pathlib.Path(sys.argv[1])

    def dump(name):
        memory._dump_snapshot(str(folder / f"{name}.pickle"))

    def recorded(name, **options):
        memory._record_memory_history(**options)
        held = train(), with_holes()
        dump(name)
        del held
        start_over()

    recorded("defaults")
    recorded("python", stacks="python")
    recorded("no_stacks", context=None)
    recorded("stacks_of_state", context="state")
    recorded("stacks_of_allocations", context="alloc")
    recorded("state", enabled="state")
    held = train(), with_holes()
    dump("never")
    # From here on the history begins in mid-life.
    memory._record_memory_history(stacks="python")
    for _ in range(3):
        allocate(2, 9)
    dump("nothing_obtained")
    grown = allocate(3, 300)
    dump("midlife")
    del grown, held
    start_over()
    torch._C._cuda_attach_out_of_memory_observer(lambda *_: dump(name))
    for name, options in (("oom", {}), ("oom_of_state", {"enabled": "state"})):
        memory._record_memory_history(**options)
        held = with_holes()
        try:
            allocate(1, 100 << 10)
        except RuntimeError as refused:
            print("refused:", str(refused)[:40])
        del held
        start_over()
    if not hasattr(memory, "_annotate_tensor"):
        print("not written: labels")
        return
    memory._record_memory_history(record_pinned_host_memory=True)
    memory._set_memory_metadata("first blocks")
    held = allocate(4, 30)
    memory._set_memory_metadata("")
    cache = allocate(1, 200)[0]
    memory._annotate_tensor(cache, "kv cache")
    pinned = [torch.empty(8 * MIB, dtype=torch.uint8, pin_memory=True) for _ in range(4)]
    dump("labels")
    del held, cache, pinned


if __name__ == "__main__":
    main()
