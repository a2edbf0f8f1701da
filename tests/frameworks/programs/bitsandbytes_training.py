"""bitsandbytes: a layer of 8-bit weights, and a step of an optimizer with 8-bit state."""

import bitsandbytes
import torch

layer = bitsandbytes.nn.Linear8bitLt(512, 512, has_fp16_weights=False).cuda()
assert layer(torch.ones(4, 512, dtype=torch.half, device="cuda")).shape == (4, 512)
parameter = torch.nn.Parameter(torch.ones(1 << 16, device="cuda"))
optimizer = bitsandbytes.optim.Adam8bit([parameter])
parameter.grad = torch.ones_like(parameter)
optimizer.step()
torch.cuda.synchronize()
