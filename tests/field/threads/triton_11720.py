"""Each call of a benchmark makes a stream, so no other call can reuse its freed memory."""

from common import MIB, tensor, torch

FIELD = {
    "thread": "triton-lang/triton#11720",
    "finding": "one stream per call: memory freed in one case cannot serve the next, and "
    "reserved grows by each case's working set",
    "card": "8GiB,context=0",
    "kind": "retries",
    "says": "releasable",
    "also": "stream_bound",
}


def benchmark():
    with torch.cuda.stream(torch.cuda.Stream()):
        return [tensor(256 * MIB) for _ in range(2)]


x = tensor(16 * MIB)
for case in range(24):
    benchmark()
