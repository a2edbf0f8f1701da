"""A program with RMM's own pools, from its wheel, on the virtual GPU. Its argument names what it does.

RMM's pools take their memory from a resource of the program, which calls the CUDA runtime that the process
finds. So no part of RMM calls the runtime that is linked into its wheel.
"""

import ctypes
import json
import random
import sys

import fragtrace.rmm
import rmm

KIB, MIB = 1 << 10, 1 << 20
CUDA = ctypes.CDLL("libcudart.so.13")


def allocate(size, stream):
    address = ctypes.c_void_p()
    if CUDA.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) != 0:
        raise MemoryError
    return address.value


def free(address, size, stream, function=CUDA.cudaFree, pointer=ctypes.c_void_p):
    function(pointer(address))


def make(kind):
    upstream = rmm.mr.CallbackMemoryResource(allocate, free)
    initial = 64 * MIB if kind == "whole" else 16 * MIB
    return rmm.mr.PoolMemoryResource(upstream, initial_pool_size=initial, maximum_pool_size=64 * MIB)


def churn(resource, seed):
    pick = random.Random(seed)
    live, made, failed, held, peak = [], 0, 0, 0, 0
    for _ in range(2000):
        if live and pick.random() < 0.48:
            address, size = live.pop(pick.randrange(len(live)))
            resource.deallocate(address, size)
            held -= -(-size // 256) * 256
        else:
            size = pick.choice([256, 1024, pick.randrange(1, 64 * KIB), pick.randrange(1, 4 * MIB)])
            try:
                live.append((resource.allocate(size), size))
                made += 1
                held += -(-size // 256) * 256
            except MemoryError:
                failed += 1
        peak = max(peak, held)
    return {"made": made, "failed": failed, "peak": peak}, live


def keep(resource):
    return resource.allocate(MIB)


def fragment(resource):
    blocks = [keep(resource) for _ in range(64)]
    for address in blocks[::2]:
        resource.deallocate(address, MIB)
    try:
        resource.allocate(16 * MIB)
    except MemoryError:
        return {"kept": len(blocks[1::2])}, blocks
    return None, blocks


kind, what = sys.argv[1:3]
pool = make(kind)
reported = fragtrace.rmm.reported(pool, limit=64 * MIB)
result, kept = fragment(reported) if what == "fragment" else churn(reported, int(what))
print(json.dumps({**result, "same": reported is pool}))
