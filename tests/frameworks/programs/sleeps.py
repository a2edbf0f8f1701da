"""A program with two regions of torch_memory_saver that sleep while the rest of the program needs the card.

sleeps.py MODE [fails]: MODE is torch or preload. With `fails`, a request fails while the regions are asleep.
Prints the bytes that PyTorch and the driver report.
"""

import json
import os
import sys

import torch
from torch_memory_saver import torch_memory_saver as saver

MIB = 2**20
seen = []


def note(what):
    free, total = torch.cuda.mem_get_info()
    seen.append(
        {
            "at": what,
            "reserved": torch.cuda.memory_reserved(),
            "allocated": torch.cuda.memory_allocated(),
            "used": total - free,
        }
    )


def block(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


if sys.argv[1] != "preload":
    saver.hook_mode = sys.argv[1]
with saver.region(tag="weights"):
    weights = [block(40) for _ in range(4)]
with saver.region("kv_cache"):
    cache = block(300)
outside = block(50)
note("awake")
saver.pause("kv_cache")
saver.pause("weights")
note("asleep")
training = block(600)  # fits only while the regions are asleep
note("training")
if sys.argv[2:] == ["fails"]:
    try:
        block(500)
    except torch.OutOfMemoryError:
        note("failed")
del training
torch.cuda.empty_cache()
saver.resume("weights")
saver.resume("kv_cache")
note("awake again")
print(json.dumps(seen), flush=True)
os._exit(0)  # at a usual exit the library's torch mode ends the process with 1
