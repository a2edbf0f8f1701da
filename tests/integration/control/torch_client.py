"""Keeps tensors of many sizes, makes and drops many more, runs out of memory, and lists its live blocks.

torch_client.py FILE    writes [[address, bytes], ...] of the blocks that PyTorch counts as active
"""

import json
import os
import pathlib
import sys
import time

import torch

held = [
    torch.empty(512 * (1 + 37 * number % 4000), dtype=torch.uint8, device="cuda") for number in range(300)
]
for number in range(25000):
    torch.empty(512 * (1 + number % 5000), dtype=torch.uint8, device="cuda")
    if number % 100 == 0:
        del held[number % len(held)]
try:
    torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    pass
blocks = []
for segment in torch.cuda.memory_snapshot():
    address = segment["address"]
    for block in segment["blocks"]:
        if block["state"] == "active_allocated":
            blocks.append([address, block["size"]])
        address += block["size"]
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(blocks, file)
end = time.monotonic() + 30
while not list(pathlib.Path(os.environ["FRAGTRACE_OUTPUT"]).glob("*.oom1.ftrace")):
    if time.monotonic() > end:
        sys.exit("no copy of the out-of-memory in 30 seconds")
    time.sleep(0.05)
del held
