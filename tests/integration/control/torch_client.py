"""Holds tensors of many sizes, makes and drops many more, runs out of memory, and says what it holds.

    torch_client.py FILE    writes [[address, bytes], ...] of the blocks that PyTorch counts as active
"""

import json
import sys
import time

import torch

held = [torch.empty(512 * (1 + 37 * number % 4000), dtype=torch.uint8, device="cuda")
        for number in range(300)]
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
time.sleep(1.5)
del held
