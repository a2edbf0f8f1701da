"""Copies arrays to the card with CTranslate2, for scripts/gpu-acceptance. Prints the address and size of
each, one per line."""

import os

os.environ["CT2_CUDA_ALLOCATOR"] = "cuda_malloc_async"  # its own pool rounds sizes

import ctranslate2
import numpy

kept = []
for i in range(1, 26):
    host = ctranslate2.StorageView.from_array(numpy.zeros(i * 100000, "int8"))
    view = host.to_device(ctranslate2.Device.cuda)
    print(view.__cuda_array_interface__["data"][0], i * 100000)
    if i % 2:
        kept.append(view)
