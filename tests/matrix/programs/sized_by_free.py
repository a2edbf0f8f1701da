"""A server that queries the free memory and makes its cache as large as possible."""

import torch
from models import MIB, tensor, transformer

model = transformer(layers=2)
free, _ = torch.cuda.mem_get_info()
pages = [tensor(4 * MIB) for _ in range(int(free * 0.7) // (4 * MIB))]
with torch.no_grad():
    for length in (100, 350, 220, 500):
        model(torch.zeros(4, length, dtype=torch.long, device="cuda"))
