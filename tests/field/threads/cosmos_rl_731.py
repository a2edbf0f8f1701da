"""NCCL fails beside a cache of 56 GiB: there is no out-of-memory of PyTorch's to read."""

from common import GIB, collective, tensor

FIELD = {
    "thread": "nvidia-cosmos/cosmos-rl#731",
    "finding": "NCCL's own cudaMalloc fails while PyTorch holds 113 GiB for 57 GiB of tensors: "
    "empty_cache before the collective",
    "card": "115GiB,context=0",
    "says": "releasable",
    "requester": "library",
    "frees_mib": 56 * GIB,
}

model = tensor(57 * GIB)
activations = [tensor(7 * GIB) for _ in range(8)]
del activations
assert collective(4 * GIB) == 2
