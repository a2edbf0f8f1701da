"""Programs for tight cards under expandable segments, one per name: expandable.py NAME [SEED]."""

import random
import sys

import torch

MIB = 2**20


def take(mib, stream=None):
    with torch.cuda.stream(stream):
        return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def refused_while_mapping():
    """For a pool of 1,150 MiB: the last request is refused while its pages are created."""
    first = take(400, torch.cuda.Stream())
    second = take(100)
    del first
    third = take(700)
    return second, third


def refused_in_second_hole():
    """For 800 MiB: the last request maps a hole, and is refused in the next one."""
    first, second, third = take(20), take(60), take(20)
    side = take(600, torch.cuda.Stream())
    del first
    torch.cuda.empty_cache()
    del second, third, side
    return take(400)


def refused_twice_in_second_hole():
    """For 800 MiB: the same, and the retry is refused too. The program continues with less."""
    first, second, third = take(20), take(60), take(20)
    side = take(600, torch.cuda.Stream())
    del first
    torch.cuda.empty_cache()
    del second, third
    try:
        take(400)
    except torch.OutOfMemoryError:
        del side
    return take(300), take(100)


def any_order(seed, calls=50, most_mib=400):
    """Random sizes, streams and frees, releases of cached memory, and caught out-of-memory errors."""
    draw = random.Random(seed)
    streams = [None, *(torch.cuda.Stream() for _ in range(draw.randint(0, 2)))]
    held = []
    for _ in range(calls):
        what = draw.random()
        if what < 0.55 or not held:
            mib = draw.choice((20, 40, 60, 80, 100, draw.randint(1, most_mib)))
            try:
                held.append(take(mib, draw.choice(streams)))
            except torch.OutOfMemoryError:
                held = held[1:]
        elif what < 0.9:
            del held[draw.randrange(len(held))]
        else:
            torch.cuda.empty_cache()


if __name__ == "__main__":
    globals()[sys.argv[1]](*map(int, sys.argv[2:]))
