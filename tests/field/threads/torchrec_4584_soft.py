"""What is free lies in separate segments, each of them too small."""

from common import GIB, tensor

FIELD = {
    "thread": "meta-pytorch/torchrec#4584, soft fragmentation",
    "finding": "the free memory is whole segments, each too small: it comes back when the pool "
    "gives them to the driver, at the price of a retry",
    "card": "40GiB,context=0",
    "kind": "retries",
    "says": "releasable",
    "frees_mib": 18 * GIB,
    "remedies": ["expandable_segments:True"],
}

dense = tensor(16 * GIB)
activations = [tensor(2 * GIB) for _ in range(9)]
del activations
tables = tensor(18 * GIB)
