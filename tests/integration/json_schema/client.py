"""A CUDA program without PyTorch: four epochs of steps in phases.

It keeps BYTES of each step and uses pinned and managed host memory. At the end the card is full, and creating
a context fails.

    client.py BYTES
"""

import ctypes
import sys

import fragtrace

MIB = 1 << 20
kept_bytes = int(sys.argv[1])
cuda = ctypes.CDLL("libcudart.so.13")
driver = ctypes.CDLL("libcuda.so.1")
kept = []


def call(name, *arguments):
    error = getattr(cuda, name)(*arguments)
    if error:
        raise RuntimeError(f"{name}: error {error}")


def allocate(size, name="cudaMalloc", *more):
    address = ctypes.c_void_p()
    call(name, ctypes.byref(address), ctypes.c_size_t(size), *more)
    return address


def step():
    with fragtrace.phase("load"):
        inputs = allocate(2 * MIB)
    with fragtrace.phase("compute"):
        outputs = allocate(3 * MIB)
        kept.append(allocate(kept_bytes))
    call("cudaFree", inputs)
    call("cudaFree", outputs)


def remember():
    return allocate(512 << 10)


pinned = allocate(MIB, "cudaMallocHost")
managed = allocate(MIB, "cudaMallocManaged", ctypes.c_uint(1))
for _ in range(4):
    with fragtrace.phase("epoch"):
        kept.append(remember())
        for _ in range(3):
            with fragtrace.phase("step"):
                step()
address = ctypes.c_void_p()
while not cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(64 * MIB)):
    kept.append(address)
context = ctypes.c_void_p()
print("context:", driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
