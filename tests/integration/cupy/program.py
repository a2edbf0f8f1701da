"""A program with CuPy's own memory pool, on the virtual GPU. Its argument names what it does.

It prints what CuPy itself counts, as JSON. The blocks are reported by the adaptor alone: there is no call of
fragtrace here.
"""

import json
import random
import sys
import threading

from cupy_over_stand_in import cupy

KIB, MIB = 1 << 10, 1 << 20


def counts(pool):
    return {"used": pool.used_bytes(), "total": pool.total_bytes(), "limit": pool.get_limit()}


def churn(seed):
    """Random requests on three streams, with frees, empties and failures at a limit."""
    pick = random.Random(seed)
    pool = cupy.get_default_memory_pool()
    pool.set_limit(size=32 * MIB)
    streams = [cupy.cuda.Stream.null, cupy.cuda.Stream(), cupy.cuda.Stream()]
    live, made, failed, peak = [], 0, 0, 0
    for _ in range(3000):
        if live and pick.random() < 0.45:
            live.pop(pick.randrange(len(live)))
        elif pick.random() < 0.005:
            pool.free_all_blocks()
        else:
            size = pick.choice([512, 1024, 4096, pick.randrange(1, 64 * KIB), pick.randrange(1, 4 * MIB)])
            with pick.choice(streams):
                try:
                    live.append(cupy.cuda.alloc(size))
                    made += 1
                except cupy.cuda.memory.OutOfMemoryError:
                    failed += 1
        peak = max(peak, pool.used_bytes())
    # The end of the interpreter frees no blocks: they are live in the report as well.
    return {**counts(pool), "made": made, "failed": failed, "peak": peak, "blocks": len(live)}, live


def scratch():
    return cupy.cuda.alloc(MIB)


def keep():
    return cupy.cuda.alloc(MIB)


def fragment(empties=False, limit=64 * MIB):
    """Small blocks split a large one, and every second one stays."""
    pool = cupy.get_default_memory_pool()
    pool.set_limit(size=limit)
    large = cupy.cuda.alloc(64 * MIB)
    del large
    if empties:
        pool.free_all_blocks()
    kept, dropped = [], []
    for _ in range(32):
        dropped.append(scratch())
        kept.append(keep())
    dropped.clear()
    try:
        kept.append(cupy.cuda.alloc(16 * MIB))
    except cupy.cuda.memory.OutOfMemoryError:
        return {**counts(pool), "failed": 1}, kept
    return {**counts(pool), "failed": 0}, kept


def cached():
    """The limit is reached by free segments. CuPy releases them, and tries again."""
    pool = cupy.get_default_memory_pool()
    pool.set_limit(size=64 * MIB)
    blocks = [cupy.cuda.alloc(8 * MIB) for _ in range(8)]
    blocks.clear()
    blocks.append(cupy.cuda.alloc(16 * MIB))
    return counts(pool), blocks


def refused():
    """The card is too small: CuPy empties its pool, and tries again."""
    pool = cupy.get_default_memory_pool()
    blocks = [cupy.cuda.alloc(100 * MIB) for _ in range(6)]
    del blocks[1:4]
    blocks.append(cupy.cuda.alloc(300 * MIB))
    try:
        cupy.cuda.alloc(1 << 40)
    except cupy.cuda.memory.OutOfMemoryError:
        pass
    return counts(pool), blocks


def several():
    """Two pools, a thread, and a pool that ends."""
    default = cupy.get_default_memory_pool()
    own = cupy.cuda.MemoryPool()
    blocks = [cupy.cuda.alloc(MIB), own.malloc(2 * MIB)]
    in_thread = []
    thread = threading.Thread(target=lambda: in_thread.append(cupy.cuda.alloc(3 * MIB)))
    thread.start()
    thread.join()
    cupy.cuda.set_allocator(own.malloc)
    blocks.append(cupy.cuda.alloc(4 * MIB))
    own.set_limit(size=8 * MIB)
    try:
        cupy.cuda.alloc(16 * MIB)
    except cupy.cuda.memory.OutOfMemoryError:
        pass
    cupy.cuda.set_allocator(default.malloc)
    result = counts(default)
    del blocks[1:], own
    return result, (blocks, in_thread)


def broken():
    """The adaptor fails in the middle. CuPy's pool works on."""
    import fragtrace._recorder as recorder

    blocks = [cupy.cuda.alloc(8 * MIB) for _ in range(2)]
    recorder.block_alloc = None  # a call of it raises
    blocks += [cupy.cuda.alloc(8 * MIB) for _ in range(2)]
    del blocks[0]
    return counts(cupy.get_default_memory_pool()), blocks


def main():
    scenes = {
        "fragment": lambda: fragment(limit=int(sys.argv[2]) if len(sys.argv) > 2 else 64 * MIB),
        "broken": broken,
        "emptied": lambda: fragment(empties=True),
        "cached": cached,
        "refused": refused,
        "several": several,
    }
    result, kept = scenes[sys.argv[1]]() if sys.argv[1] in scenes else churn(int(sys.argv[1]))
    print(json.dumps(result))
    return kept


kept_until_the_end = main()
