"""Activations that are freed in an interleaved order leave small holes."""

from common import GIB, tensor

FIELD = {
    "thread": "meta-pytorch/torchrec#4584, hard fragmentation",
    "finding": "free memory is interleaved with live blocks of the same segment. Nothing can "
    "be released; only moving live blocks would merge it",
    "card": "40GiB,context=0",
    "says": "stitchable",
    "culprit": "forward",
    "remedies": ["expandable_segments:True"],
}


def forward():
    return [tensor(GIB) for _ in range(18)]


tables = tensor(18 * GIB)
dense = tensor(16 * GIB)
del tables  # stashed on the host: its segment serves the activations
activations = forward()
del activations[::2]
tables = tensor(9 * GIB)
