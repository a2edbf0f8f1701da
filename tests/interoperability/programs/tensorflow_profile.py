"""Profiles four steps of TensorFlow on the CPU, and prints what the profile says about memory.

Usage: tensorflow_profile.py FOLDER. FOLDER/gpu.xplane.pb is a copy of the profile in which the allocator has
the name of one of GPU 1.
"""

import json
import os
import pathlib
import sys

os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"  # on the CPU it is not the default

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

folder = pathlib.Path(sys.argv[1])
weights = tf.Variable(tf.random.normal([256, 256]))


@tf.function
def step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.relu(tf.matmul(batch, weights)))
    weights.assign_sub(1e-3 * tape.gradient(loss, weights))
    return loss


step(tf.random.normal([64, 256]))
tf.profiler.experimental.start(str(folder))
for number in range(4):
    with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
        step(tf.random.normal([64, 256]))
tf.profiler.experimental.stop()

(file,) = folder.rglob("*.xplane.pb")
space = xplane_pb2.XSpace.FromString(file.read_bytes())
totals = []
for plane in space.planes:
    stats = {number: entry.name for number, entry in plane.stat_metadata.items()}
    for line in plane.lines:
        for event in line.events:
            if plane.event_metadata[event.metadata_id].name in ("MemoryAllocation", "MemoryDeallocation"):
                values = {stats[stat.metadata_id]: stat.int64_value for stat in event.stats}
                totals.append(values["bytes_allocated"])
    for entry in plane.stat_metadata.values():
        if entry.name == "bfc_cpu_allocator_for_gpu":
            entry.name = "GPU_1_bfc"
(folder / "gpu.xplane.pb").write_bytes(space.SerializeToString())
print(json.dumps({"profile": str(file), "events": len(totals), "peak": max(totals)}))
