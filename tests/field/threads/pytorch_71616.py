"""A side stream delays frees: allocated is far below reserved, and all of reserved is active."""

from common import MIB, device_is_busy, tensor, torch

FIELD = {
    "thread": "pytorch/pytorch#71616",
    "finding": "the missing memory is freed memory that waits for events of a side stream, not fragmentation",
    "card": "40540MiB,context=0",
    "says": "pending",
    "frees_mib": 10 * 648,
}


def parameters():
    return [tensor(648 * MIB) for _ in range(36)]


def step(communication):
    """Each bucket lies in one half of a segment whose other half is in use."""
    whole = [tensor(1296 * MIB) for _ in range(10)]
    del whole
    halves = [tensor(648 * MIB) for _ in range(20)]
    for bucket in halves[::2]:
        bucket.record_stream(communication)
    return halves[1::2]


model = parameters()
communication = torch.cuda.Stream()
device_is_busy()
gradients = step(communication)
buffers = [tensor(648 * MIB) for _ in range(6)]
last = tensor(648 * MIB)
