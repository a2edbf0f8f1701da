"""A block that forty streams used is freed: the free waits for an event of each of them."""

import torch
from common import MIB, say, tensor

streams = [torch.cuda.Stream(priority=priority) for priority in (0, -1) for _ in range(20)]
block = tensor(3 * MIB)
for stream in streams:
    block.record_stream(stream)
del block
torch.cuda.synchronize()
tensor(3 * MIB)
say(streams=len({stream.cuda_stream for stream in streams}))
