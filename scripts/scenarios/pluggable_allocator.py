"""A training with the program's own allocator, 20 lines of C. --pool keeps PyTorch's allocator and gives the
model a MemPool whose segments come from that allocator. --pytorch does not use it."""

import pathlib
import subprocess
import sys
import tempfile

import torch

ALLOCATOR = r"""
#include <stddef.h>
#include <sys/types.h>
extern int cudaMalloc(void**, size_t);
extern int cudaFree(void*);
void* plain_alloc(ssize_t bytes, int device, void* stream) {
    void* address = NULL;
    return cudaMalloc(&address, (size_t)bytes) == 0 ? address : NULL;
}
void plain_free(void* address, ssize_t bytes, int device, void* stream) { cudaFree(address); }
"""


def allocator():
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "plain.c").write_text(ALLOCATOR)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "plain.so", folder / "plain.c"], check=True)
    return torch.cuda.memory.CUDAPluggableAllocator(str(folder / "plain.so"), "plain_alloc", "plain_free")


def main():
    torch.manual_seed(1)
    plain = None if "--pytorch" in sys.argv else allocator()
    if plain and "--pool" not in sys.argv:
        torch.cuda.memory.change_current_allocator(plain)
    from training import optimizer_of, small_gpt, text, train_step

    if plain and "--pool" in sys.argv:
        pool = torch.cuda.MemPool(plain.allocator())
        with torch.cuda.use_mem_pool(pool):
            model = small_gpt()
    else:
        model = small_gpt()
    optimizer = optimizer_of(model)
    for length in (512, 300, 420):
        train_step(model, optimizer, text(8, length))


if __name__ == "__main__":
    main()
