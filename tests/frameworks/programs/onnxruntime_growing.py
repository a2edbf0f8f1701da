"""ONNX Runtime: inference with batches of growing and changing sizes."""

import numpy
import onnxruntime
from onnxruntime_layer import SIZE, model

session = onnxruntime.InferenceSession(model(), providers=["CUDAExecutionProvider"])
assert session.get_providers()[0] == "CUDAExecutionProvider"
for batch in (1, 64, 2048, 100, 4096):
    result = session.run(None, {"x": numpy.ones((batch, SIZE), "float32")})[0]
    assert result.shape == (batch, SIZE)
