"""Allocates while a garbage collection is due at every object. None may begin inside the recorder."""

import ctypes
import gc

cuda = ctypes.PyDLL("libcudart.so.13")  # keeps the GIL: a new Python object would start a collection
inside = False
collections_inside = 0
finalizers_inside = 0


class Cycle:
    def __init__(self):
        self.me = self

    def __del__(self):
        global finalizers_inside
        finalizers_inside += inside


def on_collection(phase, _):
    global collections_inside
    collections_inside += inside and phase == "start"


def allocate(depth, address, size, call=cuda.cudaMalloc):
    global inside
    if depth:
        return allocate(depth - 1, address, size)
    inside = True
    error = call(address, size)
    inside = False
    return error


gc.callbacks.append(on_collection)
address = ctypes.byref(ctypes.c_void_p())
size = ctypes.c_size_t(512)
gc.set_threshold(1, 1, 1)
for _ in range(2000):
    Cycle()
    assert allocate(20, address, size) == 0
gc.set_threshold(700)
collections = sum(each["collections"] for each in gc.get_stats())
assert collections > 1000
# From 3.12 on the interpreter also collects between the instructions around the call.
print(collections, collections_inside, finalizers_inside)
