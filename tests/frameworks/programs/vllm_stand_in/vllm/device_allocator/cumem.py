"""The parts of vLLM's sleep mode that fragtrace's adaptor uses."""

import contextlib

import torch


class CuMemAllocator:
    default_tag = "default"

    def __init__(self):
        self.allocator_and_pools = {}
        self.calls = []

    @contextlib.contextmanager
    def use_memory_pool(self, tag=None):
        tag = tag or self.default_tag
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            self.allocator_and_pools[tag] = (pool, None)
            yield

    def sleep(self, offload_tags=None):
        self.calls.append(("sleep", offload_tags))

    def wake_up(self, tags=None):
        self.calls.append(("wake_up", tags))
