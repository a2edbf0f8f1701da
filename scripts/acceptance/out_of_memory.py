"""Fragments PyTorch's pool until a request fails, for scripts/gpu-acceptance.

The process may use 1,894 MiB of the card. Half of the blocks is freed, and each free block is too small for
the last request, which enough free memory could serve.
"""

import torch

MIB = 2**20
LIMIT = 1894 * MIB
total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(LIMIT / total)


def block():
    return torch.empty(9 * MIB, dtype=torch.uint8, device="cuda")


def keep():
    return block()


kept, dropped = [], []
for _ in range(94):
    kept.append(keep())
    dropped.append(block())
dropped.clear()
large = torch.empty(256 * MIB, dtype=torch.uint8, device="cuda")
print("served")
