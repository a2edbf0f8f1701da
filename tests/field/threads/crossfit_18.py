"""Batches sorted by length, the shortest first: no batch fits where the previous one was."""

import sys

from common import MIB, tensor

FIELD = {
    "thread": "rapidsai/crossfit#18",
    "finding": "batches of ascending length each allocate new segments beside those of smaller "
    "batches. With the longest batch first, all later batches reuse its segments",
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
