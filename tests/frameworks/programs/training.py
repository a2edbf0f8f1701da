"""A few steps of training with batches of several sizes. Runs on every PyTorch from 1.13 on."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 501)).to(
    "cuda"
)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(8):
    batch = torch.randn(32 * (1 + step * 7 % 5) + step, 512, device="cuda")
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
print(torch.__version__)
