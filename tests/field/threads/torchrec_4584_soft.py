"""Free memory lies in separate segments, each of them too small."""

from common import GIB, tensor

FIELD = {
    "thread": "meta-pytorch/torchrec#4584, soft fragmentation",
    "finding": "the free memory consists of whole segments, each too small. PyTorch releases "
    "them to the driver, at the cost of a retry",
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
