"""A request fails although a free block fits; the same request directly after it is served."""

from common import MIB, device_is_busy, runs_out, tensor, torch

FIELD = {
    "thread": "pytorch/pytorch#189504",
    "finding": "waiting for events before the retry frees a large enough block, but PyTorch "
    "does not search the pool again. The same request succeeds a moment later",
    "card": "1GiB,context=0",
    "says": "pending",
    "frees_mib": 400,
    "caught": True,
}

side = torch.cuda.Stream()
whole = tensor(800 * MIB)
del whole
block, neighbour = tensor(400 * MIB), tensor(400 * MIB)
rest = tensor(200 * MIB)
device_is_busy()
block.record_stream(side)
del block
assert runs_out(lambda: tensor(400 * MIB))
again = tensor(400 * MIB)
