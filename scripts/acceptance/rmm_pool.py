"""Fragments a pool of RMM until a request fails, for scripts/gpu-acceptance."""

import fragtrace.rmm
import rmm

MIB = 2**20
pool = rmm.mr.PoolMemoryResource(
    rmm.mr.CudaMemoryResource(), initial_pool_size=64 * MIB, maximum_pool_size=64 * MIB
)
reported = fragtrace.rmm.reported(pool, limit=64 * MIB)
blocks = [reported.allocate(MIB) for _ in range(64)]
for address in blocks[::2]:
    reported.deallocate(address, MIB)
try:
    reported.allocate(16 * MIB)
    print("served")
except MemoryError:
    print("failed")
