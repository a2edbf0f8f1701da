"""ONNX Runtime: several threads run one session, with batches of changing sizes."""

import threading

import numpy
import onnxruntime
from onnxruntime_layer import SIZE, model

session = onnxruntime.InferenceSession(model(), providers=["CUDAExecutionProvider"])


def infer(first):
    for turn in range(60):
        rows = 1 + (first + 37 * turn) % 500
        session.run(None, {"x": numpy.ones((rows, SIZE), "float32")})


threads = [threading.Thread(target=infer, args=(100 * number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
