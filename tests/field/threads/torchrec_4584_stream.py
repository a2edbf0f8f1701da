"""A copy stream has free memory between memory that it still needs."""

from common import GIB, tensor, torch

FIELD = {
    "thread": "meta-pytorch/torchrec#4584, stream fragmentation",
    "finding": "free segments of another stream cannot serve a request on this stream. "
    "Allocate on one stream",
    "card": "40GiB,context=0",
    "says": "stream_bound",
    "culprit": "copies",
}


def copies():
    whole = tensor(18 * GIB)
    del whole
    return tensor(2 * GIB)


dense = tensor(16 * GIB)
with torch.cuda.stream(torch.cuda.Stream()):
    staging = copies()
tables = tensor(12 * GIB)
