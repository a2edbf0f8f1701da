"""Batches sorted by length, the shortest first: no batch fits where the one before it was."""

import sys

from common import MIB, tensor

FIELD = {
    "thread": "rapidsai/crossfit#18",
    "finding": "batches of ascending length each take new segments beside those that smaller "
    "batches left; the longest first reuses its own for all that follow",
    "card": "2GiB,context=0",
    "kind": "retries",
    "says": "releasable",
    "remedies": ["expandable_segments:True"],
    "arguments": ["ascending"],
    "runs_well": ["descending"],
}

model = tensor(400 * MIB)
lengths = sorted(range(64, 513, 64), reverse=sys.argv[1] == "descending")
for length in lengths:
    attention = tensor(length * MIB)
    hidden = tensor(length // 2 * MIB)
    del attention, hidden
