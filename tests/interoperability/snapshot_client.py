"""A PyTorch program for test_snapshot.py, made for a card of 1 GiB.

It has a retry, frees that wait for another stream, a private pool, phases, and an out-of-memory at the end.
"""

import sys

import fragtrace
import torch

MIB = 2**20


def block(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def keep_some():
    blocks = [block(9 * MIB + 5) for _ in range(20)]
    return blocks[::2]


def wait_for_another_stream():
    stream = torch.cuda.Stream()
    for _ in range(8):
        shared = block(3 * MIB + 1)
        shared.record_stream(stream)
        with torch.cuda.stream(stream):
            torch.add(shared, 1)
            own = block(700)
        del shared, own


def use_a_private_pool():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        return pool, block(4 * MIB)


def retry():
    with torch.cuda.stream(torch.cuda.Stream()):
        cached = [block(30 * MIB) for _ in range(12)]
    del cached  # its memory serves only that stream
    return block(600 * MIB)


with fragtrace.phase("load"):
    kept = keep_some()
    wait_for_another_stream()
with fragtrace.phase("work"):
    private = use_a_private_pool() if hasattr(torch.cuda, "MemPool") else None
    large = retry()
    small = [block(1000 + i) for i in range(50)]
    del small[::3]
try:
    block(700 * MIB)
except torch.OutOfMemoryError:
    print("out of memory", file=sys.stderr)
