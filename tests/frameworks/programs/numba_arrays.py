"""Numba: kernels of its own compiler, and device arrays that come and go."""

import numpy
from numba import cuda

COUNT = 1 << 20


@cuda.jit
def add(values, others):
    index = cuda.grid(1)
    if index < values.size:
        values[index] += others[index]


values = cuda.to_device(numpy.ones(COUNT, "float32"))
others = cuda.to_device(numpy.ones(COUNT, "float32"))
add[256, 256](values, others)
assert values.copy_to_host().shape == (COUNT,)
kept = [cuda.device_array(COUNT * (1 + number % 3)) for number in range(20)]
del kept[::2]
