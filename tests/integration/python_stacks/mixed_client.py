"""Allocates in Python functions that C code called from other Python functions, in several ways."""

import ctypes

cuda = ctypes.CDLL("libcudart.so.13")
libc = ctypes.CDLL(None)
Compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def allocate(kib):
    assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(kib * 1024)) == 0


def innermost():
    allocate(4)


@Compare
def compare(_, __):
    if not done:
        done.append(1)
        innermost()
    return 0


def sort():
    libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)


def generate():
    for kib in (8, 12):
        allocate(kib)
        yield kib


def consume():
    for _ in generate():
        pass


async def wait():
    allocate(16)


def drive():
    try:
        wait().send(None)
    except StopIteration:
        pass


done = []
sort()
consume()
drive()
