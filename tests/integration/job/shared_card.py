"""A PyTorch process on a shared card. It reads commands, one per line, and answers each with a line.

take NAME MIB PHASE   allocates a tensor in the phase; "ok", or "out of memory"
drop NAME             frees it; its memory stays in PyTorch's cache
empty                 returns the cache to the driver
phase PHASE           begins a phase that stays open
over                  ends it
"""

import sys

import torch

MIB = 2**20
kept = {}


def take(name, mib):
    kept.setdefault(name, []).append(torch.empty(mib * MIB, dtype=torch.uint8, device="cuda"))


def take_in_phase(name, mib, phase):
    torch.cuda.nvtx.range_push(phase)
    try:
        take(name, int(mib))
    except torch.OutOfMemoryError:
        return "out of memory"
    finally:
        torch.cuda.nvtx.range_pop()
    return "ok"


def drop(name):
    del kept[name]


COMMANDS = {
    "take": take_in_phase,
    "drop": drop,
    "empty": torch.cuda.empty_cache,
    "phase": torch.cuda.nvtx.range_push,
    "over": torch.cuda.nvtx.range_pop,
}

torch.cuda.init()
print("ready", flush=True)
for line in sys.stdin:
    command, *words = line.split()
    said = COMMANDS[command](*words)
    print(said if command == "take" else "ok", flush=True)
torch.cuda.synchronize()
