"""Functions shared by the programs of this folder.

The programs run on every PyTorch from 2.1 on, as far as it has the functions that they use. They end with one
line of JSON: PyTorch's own account of its memory.
"""

import json
import os
import sys

import torch

MIB = 2**20


def tensor(byte_count):
    return torch.empty(byte_count, dtype=torch.uint8, device="cuda")


def not_here(what):
    """Ends a program that this release of PyTorch cannot run."""
    print(f"skipped: PyTorch {torch.__version__} has no {what}")
    sys.exit(77)


def say(**more):
    """Prints the final state and ends the process before anything is freed."""
    torch.cuda.synchronize()
    segments = [
        {
            "address": segment["address"],
            "bytes": segment["total_size"],
            "pool": list(segment.get("segment_pool_id", (0, 0))),
            "live": [
                [block["address"], block["size"], block["requested_size"]]
                for block in blocks_of(segment)
                if block["state"] == "active_allocated"
            ],
        }
        for segment in snapshot()
    ]
    print(json.dumps({"segments": segments, "release": torch.__version__, **more}), flush=True)
    os._exit(0)


def snapshot():
    try:
        return torch.cuda.memory_snapshot()
    except RuntimeError:  # the allocator has no statistics
        return []


def blocks_of(segment):
    address = segment["address"]
    for block in segment["blocks"]:
        yield {"address": address, **block}
        address += block["size"]
