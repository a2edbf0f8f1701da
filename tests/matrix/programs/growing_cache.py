"""Inference with keys and values that grow by one token per step, for requests of several lengths."""

import torch

WIDTH, LAYERS = 1024, 6
weights = [torch.zeros(WIDTH, 3 * WIDTH, device="cuda") for _ in range(LAYERS)]
with torch.inference_mode():
    for batch, prompt, steps in ((4, 300, 20), (2, 700, 30), (7, 150, 25), (3, 900, 15)):
        x = torch.zeros(batch, prompt, WIDTH, device="cuda")
        caches = [None] * LAYERS
        for _ in range(steps):
            for layer, weight in enumerate(weights):
                query, key, value = (x @ weight).chunk(3, dim=2)
                if caches[layer] is not None:
                    key = torch.cat([caches[layer][0], key], dim=1)
                    value = torch.cat([caches[layer][1], value], dim=1)
                caches[layer] = (key, value)
                x = torch.nn.functional.scaled_dot_product_attention(query, key, value)
            x = x[:, -1:]
        del caches, x, query, key, value
