"""Beam search: each step keeps some beams, and reorders and extends their caches."""

import torch

WIDTH, BEAMS = 768, 8
weight = torch.zeros(WIDTH, 4000, device="cuda")
with torch.no_grad():
    for prompt in (100, 640, 330):
        cache = torch.zeros(BEAMS, prompt, WIDTH, device="cuda")
        scores = torch.zeros(BEAMS, device="cuda")
        for _ in range(40):
            ahead = torch.log_softmax(cache[:, -1] @ weight, dim=1) + scores[:, None]
            scores, chosen = ahead.flatten().topk(BEAMS)
            cache = cache.index_select(0, chosen // ahead.shape[1])
            cache = torch.cat([cache, torch.zeros(BEAMS, 1, WIDTH, device="cuda")], dim=1)
        del cache
