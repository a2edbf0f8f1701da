"""Triton: a kernel of its own compiler on PyTorch's tensors."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(values, others, sums, count, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    total = tl.load(values + places, mask=inside) + tl.load(others + places, mask=inside)
    tl.store(sums + places, total, mask=inside)


for count in (1 << 20, 1 << 18, 3 << 20):
    values = torch.ones(count, device="cuda")
    sums = torch.empty_like(values)
    add[(triton.cdiv(count, 1024),)](values, values, sums, count, BLOCK=1024)
torch.cuda.synchronize()
