"""Waking a KV cache by cuMemCreate (here: cudaMalloc) fails because of PyTorch's cache."""

from common import MIB, collective, tensor

FIELD = {
    "thread": "verl-project/verl#6912",
    "finding": "a 38883 MiB mapping fails on a card of 81008 MiB while PyTorch caches 48604 "
    "MiB. Call empty_cache first",
    "card": "81008MiB,context=0",
    "says": "releasable",
    "requester": "library",
    "frees_mib": 48604,
}

residual = tensor(48604 * MIB)
del residual
assert collective(38883 * MIB) == 2
