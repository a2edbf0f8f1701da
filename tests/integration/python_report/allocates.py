"""Allocates without a framework: 300 MiB at most, and one request that is refused."""

import ctypes

MIB = 2**20
cuda = ctypes.CDLL("libcudart.so.13")


def allocate(mib, expected=0):
    address = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib * MIB)) == expected
    return address


first = allocate(100)
second = allocate(200)
assert cuda.cudaFree(first) == 0
allocate(2048, 2)
third = allocate(50)
