"""Allocates arrays of Warp, for scripts/gpu-acceptance. Prints the address and size of each, one per line."""

import warp

if hasattr(warp, "LOG_WARNING"):
    warp.config.log_level = warp.LOG_WARNING
else:
    warp.config.quiet = True
device = warp.get_device("cuda:0")
kept = []
for in_pool in (False, True):  # cudaMalloc, cudaMallocAsync
    if in_pool and not device.is_mempool_supported:
        continue
    warp.set_mempool_enabled(device, in_pool)
    for i in range(1, 26):
        array = warp.empty(i * 100000, dtype=warp.uint8, device=device)
        print(array.ptr, array.capacity)
        if i % 2:
            kept.append(array)
warp.synchronize()
