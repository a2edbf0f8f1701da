"""ONNX Runtime: batches of growing sizes, until the arena of 48 MiB fails although enough of it is free.

Arguments change provider options (`gpu_mem_limit=...`, `arena_extend_strategy=...`). `shrink` shrinks the
arena after each run. Prints whether all runs were served.
"""

import sys

import numpy
import onnxruntime
from onnxruntime_layer import SIZE, model

MIB = 2**20
BATCHES_MIB = (1, 3, 6, 11)  # of float32, each with rows of SIZE


def infer(session, batch_mib, options):
    rows = batch_mib * MIB // (4 * SIZE)
    return session.run(None, {"x": numpy.ones((rows, SIZE), "float32")}, options)


def main():
    words = sys.argv[1:]
    options = onnxruntime.RunOptions()
    if "shrink" in words:
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "gpu:0")
    provider = {"gpu_mem_limit": 48 * MIB, **dict(word.split("=") for word in words if "=" in word)}
    session = onnxruntime.InferenceSession(model(), providers=[("CUDAExecutionProvider", provider)])
    try:
        for batch_mib in BATCHES_MIB:
            infer(session, batch_mib, options)
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail as error:
        print("failed:", str(error).rsplit("Stream*) ")[-1].strip())
        return
    print("served")


main()
