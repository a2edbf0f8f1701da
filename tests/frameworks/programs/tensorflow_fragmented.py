"""TensorFlow's pool has enough free memory for the last request, but no range of it is large enough.

The argument is the limit of the pool in MiB (256).
"""

import sys

import tensorflow as tf

MIB = 2**20
gpu = tf.config.list_physical_devices("GPU")[0]
limit = int(sys.argv[1]) if len(sys.argv) > 1 else 256
tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=limit)])


def block(mib):
    return tf.zeros((mib * MIB // 4,))


with tf.device("GPU:0"):
    kept, dropped = [], []
    for number in range(30):
        (dropped if number % 2 else kept).append(block(8))
    dropped.clear()
    try:
        block(32)
        print("served")
    except tf.errors.ResourceExhaustedError:
        print("failed")
