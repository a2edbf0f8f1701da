"""A PyTorch program that allocates and switches recording on and off, in the order of its arguments.

work=SEED       makes and drops tensors on three streams, some of which another stream still uses
pool=SEED       the same in a private pool, which is kept
empty_cache
start, stop     fragtrace_start() and so on
signal          sends SIGUSR2 to itself
wait=PATTERN    until the recorder has left such a file, at most a minute

Ends with one line of JSON: the segments and live blocks of torch.cuda.memory_snapshot().
"""

import ctypes
import json
import os
import pathlib
import random
import signal
import sys
import time

import torch

MIB = 2**20
SIZES = [700, 40_000, 300_000, MIB + 5, 3 * MIB, 9 * MIB, 21 * MIB]
program = ctypes.CDLL(None)
streams = [torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
kept = []
pools = []


def tensor(byte_count):
    return torch.empty(byte_count, dtype=torch.uint8, device="cuda")


def work(seed):
    generator = random.Random(seed)
    for step in range(300):
        with torch.cuda.stream(generator.choice(streams)):
            made = tensor(generator.choice(SIZES))
        if step % 3 == 0:
            made.record_stream(generator.choice(streams))
        kept.append(made)
        del made
        if len(kept) > 30:
            kept.pop(generator.randrange(len(kept)))


def pool(seed):
    generator = random.Random(seed)
    pools.append(torch.cuda.MemPool())
    with torch.cuda.use_mem_pool(pools[-1]):
        mine = [tensor(generator.choice(SIZES)) for _ in range(20)]
    kept.extend(mine[::2])


def wait_for(pattern):
    end = time.monotonic() + 60
    while not list(pathlib.Path(os.environ["FRAGTRACE_OUTPUT"]).glob(pattern)):
        if time.monotonic() > end:
            sys.exit(f"no {pattern} in a minute")
        time.sleep(0.05)


for argument in sys.argv[1:]:
    name, _, value = argument.partition("=")
    if name == "work":
        work(int(value))
    elif name == "pool":
        pool(int(value))
    elif name == "empty_cache":
        torch.cuda.empty_cache()
    elif name in ("start", "stop"):
        if getattr(program, f"fragtrace_{name}")() != 0:
            sys.exit(f"cannot {name}")
    elif name == "signal":
        os.kill(os.getpid(), signal.SIGUSR2)
    elif name == "wait":
        wait_for(value)
    else:
        sys.exit(f"unknown step {argument}")

torch.cuda.synchronize()
segments = []
for segment in torch.cuda.memory_snapshot():
    address = segment["address"]
    live = []
    for block in segment["blocks"]:
        if block["state"] == "active_allocated":
            live.append([address, block["size"]])
        address += block["size"]
    segments.append([segment["address"], segment["total_size"], live])
print(json.dumps(segments), flush=True)
os._exit(0)
