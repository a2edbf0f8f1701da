"""Ten steps of a small transformer with AdamW; "amp" as argument: under bfloat16 autocast. Prints the
addresses of all segments at the end, so that two runs can be compared."""

import sys

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1 = nn.LayerNorm(width)
        self.norm_2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm_1(x)).chunk(3, -1)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        x = x + self.dropout(self.out(mixed.reshape(batch, length, width)))
        return x + self.mlp(self.norm_2(x))


class Transformer(nn.Module):
    def __init__(self, width=256, layers=4, words=5000):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*[Block(width, 8) for _ in range(layers)])
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)))


torch.manual_seed(0)
model = Transformer().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(10):
    tokens = torch.randint(0, 5000, (4, 128)).cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled="amp" in sys.argv):
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, loss.item())
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
print("peak", stats["allocated_bytes.all.peak"], stats["reserved_bytes.all.peak"])
if torch.cuda.get_allocator_backend() == "native":
    for segment in torch.cuda.memory_snapshot():
        print(hex(segment["address"]), segment["total_size"])
