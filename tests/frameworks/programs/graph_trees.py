"""torch.compile with CUDA graph trees.

Several paths share their first graph, so the pool is set back to where that graph ended. There is a backward
pass, and outputs of a graph outlive their step. Argument: "reduce-overhead" (compiles kernels with triton) or
"cudagraphs" (the same graphs without).
"""

import importlib.util
import pathlib
import shutil
import sys
import sysconfig

import torch
from common import MIB, not_here, say, tensor

how = sys.argv[1]
options = {"backend": how}
if not hasattr(torch.compiler, "cudagraph_mark_step_begin"):
    not_here("torch.compiler.cudagraph_mark_step_begin")
if how == "reduce-overhead":
    options = {"mode": how}
    headers = pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h"
    if importlib.util.find_spec("triton") is None:
        not_here("triton beside it")
    if not headers.exists() or not any(shutil.which(name) for name in ("gcc", "cc", "clang")):
        not_here("C compiler, or no headers of Python, which triton asks for")


@torch.compile(**options)
def first(x):
    return torch.mm(x, x), x + 1


@torch.compile(**options)
def second(x):
    return torch.mm(x, x).relu()


@torch.compile(**options)
def third(x, y):
    return torch.cat([torch.mm(x, y), y, x]) * 2


def step(*then):
    torch.compiler.cudagraph_mark_step_begin()
    with torch.no_grad():
        product, more = first(start)
        for function in then:
            product = third(product, more) if function is third else second(product[:1024])
    return product


kept = [tensor(5 * MIB)]
start = torch.ones(1024, 1024, device="cuda")
for then in ([second], [third], [second, third]):
    for turn in range(3):
        kept.append(step(*then).clone())
        kept.append(tensor(3 * MIB + turn))

layer = torch.nn.Linear(1024, 700).cuda()
train = torch.compile(layer, **options)
for turn in range(4):
    torch.compiler.cudagraph_mark_step_begin()
    train(start).sum().backward()
    layer.zero_grad(set_to_none=True)
held = step(third, second)  # this path is recorded here, so the pool knows its outputs
say()
