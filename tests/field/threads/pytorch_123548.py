"""max_split_size_mb and expandable_segments together: reserved grows without bound."""

from common import MIB, tensor

FIELD = {
    "thread": "pytorch/pytorch#123548",
    "finding": "max_split_size_mb together with expandable_segments makes reserved grow each "
    "cycle. Either setting alone does not",
    "card": "16GiB,context=0",
    "conf": "max_split_size_mb:128,expandable_segments:True",
    "kind": "retries",
    "says": "releasable",
    "remedies": ["expandable_segments:True", "max_split_size_mb:128"],
}

kept = []
for cycle in range(130):
    large = [tensor(69 * MIB) for _ in range(2)]
    kept.append(tensor(2 * MIB))  # stays between the end of the range and the rests of the large blocks
    del large
