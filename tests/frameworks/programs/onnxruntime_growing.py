"""ONNX Runtime: inference with batches of growing and changing sizes."""

import numpy
import onnxruntime
from onnx import TensorProto, helper

SIZE = 256


def model():
    weights = numpy.ones((SIZE, SIZE), "float32")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["y"], ["z"])],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", SIZE])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", SIZE])],
        [helper.make_tensor("w", TensorProto.FLOAT, [SIZE, SIZE], weights.tobytes(), raw=True)],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    return made.SerializeToString()


session = onnxruntime.InferenceSession(model(), providers=["CUDAExecutionProvider"])
assert session.get_providers()[0] == "CUDAExecutionProvider"
for batch in (1, 64, 2048, 100, 4096):
    result = session.run(None, {"x": numpy.ones((batch, SIZE), "float32")})[0]
    assert result.shape == (batch, SIZE)
