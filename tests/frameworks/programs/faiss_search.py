"""faiss: an index that grows on the device, and searches in it."""

import faiss
import numpy

assert faiss.get_num_gpus() > 0
index = faiss.GpuIndexFlatL2(faiss.StandardGpuResources(), 64)
for count in (1000, 10000, 50000):
    index.add(numpy.ones((count, 64), "float32"))
    assert index.search(numpy.ones((5, 64), "float32"), 4)[0].shape == (5, 4)
