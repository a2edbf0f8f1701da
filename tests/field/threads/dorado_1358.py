"""A smaller request takes part of a large cached block; the next large one needs a new segment."""

from common import MIB, tensor

FIELD = {
    "thread": "nanoporetech/dorado#1358",
    "finding": "a smaller request takes part of a large cached block, so the next large "
    "request allocates new memory. A max_split_size_mb below the large size "
    "prevents this",
    "card": "6GiB,context=0",
    "says": "stitchable",
    "culprit": "decode",
    "remedies": ["max_split_size_mb:64", "max_split_size_mb:512"],
}


def basecall():
    return tensor(1500 * MIB)


def decode():
    return tensor(900 * MIB)


kept = []
for batch in range(5):
    scores = basecall()
    del scores
    kept.append(decode())
