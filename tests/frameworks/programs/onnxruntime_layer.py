"""A layer for the programs of ONNX Runtime: Relu(x * w), with rows of SIZE numbers."""

import numpy
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
