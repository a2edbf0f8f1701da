"""Under max_split_size_mb:20 a free 20 MiB segment is oversized and serves no smaller request."""

from common import MIB, tensor

FIELD = {
    "thread": "vllm-project/vllm#51205",
    "finding": "with max_split_size_mb:20 a free 20 MiB segment may not be split and may not "
    "serve smaller requests. Each expert tensor allocates a new segment until "
    "memory runs out",
    "card": "4GiB,context=0",
    "conf": "max_split_size_mb:20",
    "kind": "retries",
    "says": "releasable",
    "remedies": ["default settings"],
}

weights = tensor(3000 * MIB)
slab = tensor(8 * MIB)
for expert in range(120):
    slab = None
    slab = tensor((4 + expert % 5) * MIB)
