"""A program with a stand-in for vLLM's allocator: the interface of its sleep mode, without any effect."""

import torch
from vllm.device_allocator.cumem import CuMemAllocator

allocator = CuMemAllocator()
with allocator.use_memory_pool(tag="weights"):
    weights = torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
with allocator.use_memory_pool():
    other = torch.empty(20 << 20, dtype=torch.uint8, device="cuda")
try:
    with allocator.use_memory_pool("kv_cache"):
        raise KeyError("kv_cache")
except KeyError as error:
    print(error)
allocator.sleep(offload_tags=("weights",))
allocator.wake_up(["weights", "kv_cache"])
allocator.wake_up(tags=None)
print(allocator.calls)
