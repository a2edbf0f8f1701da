"""Fragments CuPy's pool until a request fails, for scripts/gpu-acceptance."""

import cupy

MIB = 2**20
pool = cupy.get_default_memory_pool()
pool.set_limit(size=64 * MIB)
large = cupy.cuda.alloc(64 * MIB)
del large
kept, dropped = [], []
for _ in range(32):
    dropped.append(cupy.cuda.alloc(MIB))
    kept.append(cupy.cuda.alloc(MIB))
dropped.clear()
try:
    cupy.cuda.alloc(16 * MIB)
    print("served")
except cupy.cuda.memory.OutOfMemoryError:
    print("failed")
