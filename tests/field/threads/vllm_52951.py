"""Two buffers of 1 GiB on two new streams at each synchronisation of weights."""

from common import GIB, MIB, tensor, torch

FIELD = {
    "thread": "vllm-project/vllm#52951",
    "finding": "the buffers of each weight transfer stay cached on the streams made for it. "
    "One pair of streams for all transfers limits them",
    "card": "24GiB,context=0",
    "says": "stream_bound",
    "culprit": "transfer",
}


def transfer():
    """A slow receiver still reads the packed data, so a slice of each buffer stays live."""
    kept = []
    for _ in range(2):
        with torch.cuda.stream(torch.cuda.Stream()):
            buffer = tensor(GIB)
            del buffer
            kept.append(tensor(24 * MIB))
    return kept


weights = tensor(8 * GIB)
received = [transfer() for _ in range(7)]
sequence = tensor(2 * GIB - 100)
sequence = [sequence, tensor(900 * MIB)]
