"""A private pool that is set back to a checkpoint, as CUDA graph trees do."""

import torch
from common import MIB, say, tensor

device = torch.cuda.current_device()
pool = torch.cuda.graph_pool_handle()
stream = torch.cuda.Stream()


def capture(*sizes):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=stream):
        made = [tensor(size) for size in sizes]
    return graph, made


kept = [tensor(100)]
graphs = []
graph, outputs = capture(3 * MIB, 5 * MIB, 2000)
graphs.append(graph)
state = torch._C._cuda_getCheckpointState(device, pool)
graph, inner = capture(4 * MIB, 700)
graphs.append(graph)
kept.append(tensor(6 * MIB))
# The blocks of the checkpoint continue under new storages, the others are dropped.
old = [made.untyped_storage()._cdata for made in outputs + inner]
storages = [
    torch._C._construct_storage_from_data_pointer(made.data_ptr(), made.device, made.nbytes)
    for made in outputs
]
torch._C._cuda_setCheckpointPoolState(device, state, old, [made._cdata for made in storages])
del outputs, inner
graph, again = capture(1 * MIB, 9 * MIB)
graphs.append(graph)
del storages[0]
say(pools=[list(pool)])
