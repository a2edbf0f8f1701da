"""Steps of varying length that each keep a block: a program whose phases are marked by NVTX.

STEPS_EMPTY_CACHE=1 empties the cache at the end of each step, a common advice. The last line has PyTorch's
own statistics of the run.
"""

import json
import os

import torch

EMPTY = os.environ.get("STEPS_EMPTY_CACHE") == "1"
MIB = 2**20


def block(mib):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")


def main():
    torch.cuda.init()
    weights = [block(12) for _ in range(8)]
    kept = []
    for step in range(12):
        torch.cuda.nvtx.range_push("step")
        length = 21 + 17 * (step * 5 % 7)
        activations = [block(length + 3 * layer) for layer in range(6)]
        kept.append(block(1.5 + step % 3))
        small = [torch.empty(1024 * (1 + i), device="cuda") for i in range(10)]
        del activations, small
        if EMPTY:
            torch.cuda.empty_cache()
        torch.cuda.nvtx.range_pop()
    statistics = torch.cuda.memory_stats()
    print(
        json.dumps(
            {
                "weights": len(weights),
                "kept": len(kept),
                "reserved": statistics.get("reserved_bytes.all.peak", 0),
                "segments": statistics.get("segment.all.allocated", 0),
                "retries": statistics.get("num_alloc_retries", 0),
            }
        )
    )


if __name__ == "__main__":
    main()
