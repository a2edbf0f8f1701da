"""What the programs of this folder share."""

import ctypes

import torch

MIB = 2**20
GIB = 2**30

# Of so many bytes; their line is that of the caller.
tensor = torch.cuda.ByteTensor


def runs_out(request):
    """Whether it does, caught as programs catch it."""
    try:
        request()
    except torch.cuda.OutOfMemoryError:
        return True
    return False


def device_is_busy(busy=True):
    """Work that was given to the device does not end before somebody waits for it."""
    ctypes.CDLL(None).field_device_is_busy(int(busy))


def collective(byte_count):
    """A communication library beside PyTorch's pool asks the driver itself; what CUDA answered."""
    return ctypes.CDLL(None).field_collective_buffer(ctypes.c_size_t(byte_count))
