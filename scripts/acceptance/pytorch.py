"""A small training with PyTorch, for scripts/gpu-acceptance: mixed layers, growing batches.

Prints one JSON object: the median time of a step, and the allocator's own counts at the end.
"""

import json
import statistics
import time

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(
    nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 1024)
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
times = []
for step in range(40):
    torch.cuda.synchronize()
    start = time.perf_counter()
    x = torch.randn(256 + 64 * (step % 8), 1024, device="cuda")
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
    if step >= 10:
        times.append(time.perf_counter() - start)
    if step == 20:
        torch.cuda.empty_cache()
stats = torch.cuda.memory_stats()
print(
    json.dumps(
        {
            "step_s": statistics.median(times),
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name(0),
            "peak_allocated": stats.get("allocated_bytes.all.peak", 0),
            "peak_reserved": stats.get("reserved_bytes.all.peak", 0),
        }
    )
)
