"""Blocks of PyTorch with labels of all kinds. Prints the bytes of each label, as the program counts them."""

import json
import sys
import threading

import fragtrace
import torch

MIB = 1 << 20
own = hasattr(torch.cuda.memory, "_annotate_tensor")
expected = {}
kept = []


def block(mib, label):
    before = torch.cuda.memory_allocated() if kept else 0
    tensor = torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")
    kept.append(tensor)
    if label:  # a block can be larger than the request
        expected[label] = expected.get(label, 0) + torch.cuda.memory_allocated() - before
    return tensor


@fragtrace.label("in a function")
def decorated():
    block(2, "in a function")
    return "result"


def in_a_thread():
    block(3, None)  # labels belong to the thread that began them
    with fragtrace.label("of the thread"):
        block(4, "of the thread")


with fragtrace.label("before CUDA"):
    block(5, "before CUDA")
with fragtrace.label("outer"):
    block(6, "outer")
    with fragtrace.label("inner ä"):
        block(7, "inner ä")
        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()
    with fragtrace.label(""):
        block(8, None)
    block(9, "outer")
assert decorated() == "result"
try:
    with fragtrace.label("fails"):
        raise KeyError
except KeyError:
    pass
block(10, None)
named = block(11, "named later")
view = named[5:]
assert fragtrace.label_tensor(view, "earlier") is view
fragtrace.label_tensor(view, "named later")
fragtrace.label_tensor(torch.ones(4), "not on a GPU")
if own:
    torch.cuda.memory._set_memory_metadata("metadata")
    block(12, "metadata")
    with fragtrace.label("inside"):
        block(13, "inside")
    torch.cuda.memory._set_memory_metadata({"step": 1})
    block(14, '{"step":1}')
    torch.cuda.memory._set_memory_metadata("")
    torch.cuda.memory._annotate_tensor(block(15, "annotated")[1:], "annotated")
fragtrace.label_tensor(block(16, None), "freed")
kept.pop()
if "pause" in sys.argv:
    fragtrace.stop()
    with fragtrace.label("in the pause"):
        block(17, "in the pause")
    fragtrace.start()
for depth in range(40):
    fragtrace._recorder.label_begin and fragtrace._recorder.label_begin(b"deep %d" % depth)
block(1, "deep 39")
for _ in range(40):
    fragtrace._recorder.label_begin and fragtrace._recorder.label_end()
block(18, None)
print(json.dumps(expected))
