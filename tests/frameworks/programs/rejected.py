"""With throw_on_cudamalloc_oom a request is rejected despite 500 MiB of cache, and the error is caught."""

import torch
from common import MIB, tensor

kept = [tensor(100 * MIB) for _ in range(5)]
cached = [tensor(100 * MIB) for _ in range(5)]
cached.clear()
try:
    kept.append(tensor(300 * MIB))
    print("served")
except torch.OutOfMemoryError:
    print("rejected")
kept.append(tensor(90 * MIB))
