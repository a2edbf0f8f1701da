"""NCCL fails because of PyTorch's cache of 56 GiB, so PyTorch reports no out-of-memory."""

from common import GIB, collective, tensor

FIELD = {
    "thread": "nvidia-cosmos/cosmos-rl#731",
    "finding": "NCCL's own cudaMalloc fails while PyTorch reserves 113 GiB for 57 GiB of "
    "tensors. Call empty_cache before the collective",
    "card": "115GiB,context=0",
    "says": "releasable",
    "requester": "library",
    "frees_mib": 56 * GIB,
}

model = tensor(57 * GIB)
activations = [tensor(7 * GIB) for _ in range(8)]
del activations
assert collective(4 * GIB) == 2
