"""With two batches, the shorter one first runs out of memory; the longer one first does not."""

import sys

from common import MIB, tensor

FIELD = {
    "thread": "pytorch/pytorch#1529",
    "finding": "batch A then batch B runs out of memory, B then A fits: the free memory that A "
    "leaves cannot serve B",
    "card": "2GiB,context=0",
    "says": "stitchable",
    "culprit": "optimizer_state",
    "arguments": ["A", "B"],
    "runs_well": ["B", "A"],
}
LENGTHS = {"A": 150, "B": 210}


def optimizer_state():
    return [tensor(80 * MIB) for _ in range(6)]


def step(batch, state):
    layers = [tensor(LENGTHS[batch] * MIB) for _ in range(6)]
    del layers
    return state or optimizer_state()


model = tensor(300 * MIB)
state = []
for batch in sys.argv[1:]:
    state = step(batch, state)
