"""Settings that change while the program runs, one of which is refused."""

import torch
from common import MIB, say, tensor

try:
    change = torch._C._accelerator_setAllocatorSettings
except AttributeError:
    change = torch.cuda.memory._set_allocator_settings
kept = [tensor(1200 * (step + 1)) for step in range(30)]
change("roundup_power2_divisions:4")
kept += [tensor(1_100_000 * (step + 1)) for step in range(30)]
try:
    change("no_such_setting:1")
except (RuntimeError, ValueError):
    pass
change("max_split_size_mb:40")
kept += [tensor(50 * MIB), tensor(9 * MIB)]
del kept[::3]
kept += [tensor(2 * MIB + step) for step in range(9)]
say()
