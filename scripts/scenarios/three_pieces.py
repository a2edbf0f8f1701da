"""On a card of 6 GB: three free pieces of 1, 1 and 2 GB, and a request of 3 GB. --empty-cache first releases
what can be released. --one-block allocates the space of the three pieces before anything else."""

import sys

import torch

MIB = 2**20
GB = 1024 * MIB


def block(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def main():
    small = 16 * MIB
    if "--one-block" in sys.argv:
        large = block(3 * GB)
        del large
    # Each piece shares its segment with a block that stays allocated.
    pieces, kept = [], []
    for size in (GB, GB, 2 * GB):
        both = block(size + small)
        del both
        pieces.append(block(size))
        kept.append(block(small))
    del pieces
    if "--empty-cache" in sys.argv:
        torch.cuda.empty_cache()
    print(
        f"{torch.cuda.memory_allocated() // MIB} MiB allocated, "
        f"{torch.cuda.memory_reserved() // MIB} MiB reserved; asking for 3 GB",
        flush=True,
    )
    large = block(3 * GB)
    print(f"served: {large.numel() // MIB} MiB")


if __name__ == "__main__":
    main()
