#!/usr/bin/env python3
"""Frees every other small block, then requests one large block: out of memory with half of it free.

Allocates 188 blocks of 9 MiB, frees every other one and requests 256 MiB. Made for a card of 1894 MiB:

    fragtrace run --virtual-gpu 1894MiB,context=0 -- python holes.py
"""

import torch

MIB = 2**20


def main():
    blocks = [torch.empty(9 * MIB, dtype=torch.uint8, device="cuda") for _ in range(188)]
    del blocks[1::2]
    print(
        f"{torch.cuda.memory_allocated() // MIB} MiB live, "
        f"{torch.cuda.memory_reserved() // MIB} MiB reserved; asking for 256 MiB",
        flush=True,
    )
    large = torch.empty(256 * MIB, dtype=torch.uint8, device="cuda")
    print(f"served: {large.numel() // MIB} MiB")


if __name__ == "__main__":
    main()
