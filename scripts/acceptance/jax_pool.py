"""Fragments JAX's pool until a request fails, for scripts/gpu-acceptance. The pool has 1,100 MiB."""

import os
import sys

os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(1100 * 2**20 / int(sys.argv[1]))

import jax
import numpy

MIB = 2**20


def on_device(mib):
    return jax.device_put(numpy.zeros(mib * MIB // 4, "float32"))


batches = [on_device(16) for _ in range(60)]
del batches[::2]
try:
    on_device(300).block_until_ready()
    print("served")
except jax.errors.JaxRuntimeError:
    print("failed")
