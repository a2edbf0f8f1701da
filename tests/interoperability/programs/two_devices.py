"""Allocates on two devices, with an out-of-memory on the second one. Its names are hard to write.

On device 0 the most that is live is 300 MiB. When 2 GiB are refused on device 1, 200 MiB are live on
device 0 and 50 MiB on device 1. At the end, only the 50 MiB are left. All allocations: 400 MiB and 50 MiB.
"""

import ctypes
import types

MIB = 2**20
# Separators of folded lines, formulas, quotes, and a number at the end.
NAMES = ("first;of two", '=HYPERLINK("a,b")', "third 12")
cuda = ctypes.CDLL("libcudart.so.13")


def allocate(mib, expected=0):
    address = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(mib * MIB)) == expected
    return address


def called(name, *arguments):
    """allocate() called by a function with this name, in a file with this name."""
    code = (lambda *passed: allocate(*passed)).__code__
    names = {"co_name": name, "co_filename": f"/made up/{name}.py"}
    if hasattr(code, "co_qualname"):
        names["co_qualname"] = name
    return types.FunctionType(code.replace(**names), globals())(*arguments)


assert cuda.cudaSetDevice(0) == 0
first = called(NAMES[0], 100)
second = called(NAMES[1], 200)
assert cuda.cudaFree(first) == 0
assert cuda.cudaSetDevice(1) == 0
third = called(NAMES[2], 50)
called(NAMES[1], 2048, 2)
assert cuda.cudaSetDevice(0) == 0
fourth = called(NAMES[0], 100)
assert cuda.cudaFree(second) == 0
assert cuda.cudaFree(fourth) == 0
