"""Calls the functions of ggml's legacy pool in the gpt4all package, and prints the bytes of each block.

ggml uses this pool on cards that cannot map memory, so a model on the virtual GPU does not use it.
"""

import ctypes
import importlib.util
import pathlib

FOLDER = pathlib.Path(importlib.util.find_spec("gpt4all").origin).parent
LIBRARY = FOLDER / "llmodel_DO_NOT_MODIFY" / "build" / "libllamamodel-mainline-cuda.so"
MOST_BYTES = 8192  # of a pool object
HEAD_WORDS = 2  # of a table of virtual functions
DESTROY, ALLOC, FREE = 0, 2, 3  # their places in the table

Address, Size = ctypes.c_void_p, ctypes.c_size_t


class LegacyPool:
    """A pool of device 0, as its constructor leaves it: the table, and zeros."""

    def __init__(self, library):
        table = ctypes.addressof(Address.in_dll(library, "_ZTV18ggml_cuda_pool_leg"))
        self.slots = (Address * 4).from_address(table + HEAD_WORDS * ctypes.sizeof(Address))
        self.memory = ctypes.create_string_buffer(MOST_BYTES)
        Address.from_buffer(self.memory).value = ctypes.addressof(self.slots)
        self.object = ctypes.addressof(self.memory)

    def function(self, slot, result, *arguments):
        return ctypes.CFUNCTYPE(result, Address, *arguments)(self.slots[slot])

    def alloc(self, size):
        actual = Size()
        address = self.function(ALLOC, Address, Size, ctypes.POINTER(Size))(self.object, size, actual)
        return address, actual.value

    def free(self, block):
        self.function(FREE, None, Address, Size)(self.object, *block)

    def end(self):
        self.function(DESTROY, None)(self.object)


def main():
    library = ctypes.CDLL(str(LIBRARY), mode=ctypes.RTLD_LOCAL)
    library.ggml_backend_cuda_init.restype = Address
    library.ggml_backend_cuda_init(0)
    pool = LegacyPool(library)
    blocks = [pool.alloc(size) for size in (1000, 3 << 20, 5 << 20)]
    for block in blocks:
        pool.free(block)
    again = [pool.alloc(size) for size in (2 << 20, 2 << 20, 6 << 20)]
    print(*(size for _, size in blocks + again))
    for block in again:
        pool.free(block)
    pool.end()


if __name__ == "__main__":
    main()
