"""Functions shared by the programs of this folder."""

import ctypes

import torch

MIB = 2**20
GIB = 2**30

# Allocates so many bytes. The line in the report is the caller's.
tensor = torch.cuda.ByteTensor


def runs_out(request):
    """Whether `request` runs out of memory. The error is caught as programs catch it."""
    try:
        request()
    except torch.cuda.OutOfMemoryError:
        return True
    return False


def device_is_busy(busy=True):
    """Work on the device does not end before somebody waits for it."""
    ctypes.CDLL(None).field_device_is_busy(int(busy))


def collective(byte_count):
    """A communication library outside PyTorch's pool calls cudaMalloc itself. Returns CUDA's result."""
    return ctypes.CDLL(None).field_collective_buffer(ctypes.c_size_t(byte_count))
