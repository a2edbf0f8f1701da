"""188 blocks of 9 MiB, every other one freed, then one of 256 MiB.

Prints MiB allocated and reserved before the last request, and whether that request was served.
"""

import torch

MIB = 2**20
blocks = [torch.empty(9 * MIB, dtype=torch.uint8, device="cuda") for _ in range(188)]
del blocks[::2]
print(torch.cuda.memory_allocated() // MIB, torch.cuda.memory_reserved() // MIB)
try:
    big = torch.empty(256 * MIB, dtype=torch.uint8, device="cuda")
    print("served")
except torch.OutOfMemoryError as error:
    print("out of memory:", error)
