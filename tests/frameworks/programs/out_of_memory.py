"""A failing request that is caught, an emptied cache, and a limit on the process."""

import torch
from common import MIB, say, tensor

kept = [tensor(9 * MIB + step) for step in range(40)]
del kept[::2]
total = torch.cuda.get_device_properties(0).total_memory
failed = []
try:
    tensor(total - 100 * MIB)
except torch.cuda.OutOfMemoryError:
    failed.append([total - 100 * MIB, torch.cuda.mem_get_info()[0]])
torch.cuda.empty_cache()
kept.append(tensor(30 * MIB))
torch.cuda.set_per_process_memory_fraction(0.5)
try:
    tensor(int(total * 0.6))
except torch.cuda.OutOfMemoryError:
    failed.append([int(total * 0.6), torch.cuda.mem_get_info()[0]])
kept.append(tensor(3 * MIB))
say(failed=failed)
