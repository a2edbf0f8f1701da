"""A small model of transformers with random weights: trained, or used with a cache of keys and values.

Prints the bytes of what it holds at the end, as the program counts them.
"""

import json
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=2048,
    hidden_size=256,
    intermediate_size=1024,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=4,
    max_position_embeddings=512,
)
model = LlamaForCausalLM(config).cuda()


def storage_bytes(tensors):
    """Blocks are multiples of 512 bytes; several tensors may share one storage."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in tensors}
    return sum(-(-storage.nbytes() // 512) * 512 for storage in storages.values())


held = {"parameters": storage_bytes([*model.parameters(), *model.buffers()])}
if sys.argv[1] == "train":
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        tokens = torch.zeros(4, 128, dtype=torch.long, device="cuda")
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    state = [value for values in optimizer.state.values() for value in values.values() if value.is_cuda]
    held["optimizer state"] = storage_bytes(state)
else:
    cache = None
    with torch.no_grad():
        for step in range(4):
            tokens = torch.zeros(4, 64, dtype=torch.long, device="cuda")
            cache = model(input_ids=tokens, past_key_values=cache, use_cache=True).past_key_values
    del tokens
    layers = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
    held["kv cache"] = storage_bytes(layers)
    del model
    rest = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")  # the peak, with the cache alone
    held["other"] = storage_bytes([rest])
    held["parameters"] = 0
print(json.dumps(held))
