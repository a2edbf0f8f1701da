"""Keeps every second batch on the device, so that JAX's pool has much free memory in small pieces. A larger
request then fails. The last line is the beginning of JAX's message."""

import jax
import numpy

MIB = 2**20


def on_device(mib):
    return jax.device_put(numpy.zeros(mib * MIB // 4, "float32"))


def load_batches():
    return [on_device(16) for _ in range(60)]


batches = load_batches()
del batches[::2]
try:
    on_device(200).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    print(str(error).split(" while", 1)[0])
